/** The candidate that a typing mistake most likely meant; nothing when none is close. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  const wanted = word.toLowerCase();
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.floor(wanted.length / 3)) + 1;
  for (const candidate of candidates) {
    const known = candidate.toLowerCase();
    // Who writes "dev" has not mistyped but shortened.
    const distance = wanted.length > 1 && known.startsWith(wanted) ? 1 : editDistance(wanted, known);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** The same for dotted paths, where a key with the right last word in another section is the next best guess. */
export function nearestPath(path: string, candidates: readonly string[]): string | undefined {
  const last = path.slice(path.lastIndexOf(".") + 1).toLowerCase();
  const sameName = candidates.filter(
    (candidate) => candidate.toLowerCase().endsWith(`.${last}`) || candidate.toLowerCase() === last,
  );
  return (sameName.length === 1 ? sameName[0] : nearest(path, sameName)) ?? nearest(path, candidates);
}

function editDistance(left: string, right: string): number {
  let previous = Array.from({ length: right.length + 1 }, (_, column) => column);
  for (let row = 1; row <= left.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= right.length; column += 1) {
      const substituted = (previous[column - 1] ?? 0) + (left[row - 1] === right[column - 1] ? 0 : 1);
      const removed = (previous[column] ?? 0) + 1;
      const inserted = (current[column - 1] ?? 0) + 1;
      current.push(Math.min(substituted, removed, inserted));
    }
    previous = current;
  }
  return previous[right.length] ?? 0;
}
