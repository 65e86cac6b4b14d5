export interface DiffLine {
  readonly mark: " " | "-" | "+" | "…";
  readonly text: string;
}

/** Above this product of line counts, the middle is shown as removed and added, without a search for common lines. */
const MOST_CELLS = 1_000_000;
const CONTEXT_LINES = 3;

export function lineDiff(before: string, after: string): readonly DiffLine[] {
  const [old, fresh] = [toLines(before), toLines(after)];
  let head = 0;
  while (head < old.length && head < fresh.length && old[head] === fresh[head]) head += 1;
  let tail = 0;
  const most = Math.min(old.length, fresh.length) - head;
  while (tail < most && old.at(-1 - tail) === fresh.at(-1 - tail)) tail += 1;
  const same = (lines: readonly string[]): DiffLine[] => lines.map((text) => ({ mark: " ", text }));
  return shortened([
    ...same(old.slice(0, head)),
    ...middle(old.slice(head, old.length - tail), fresh.slice(head, fresh.length - tail)),
    ...same(old.slice(old.length - tail)),
  ]);
}

function toLines(text: string): readonly string[] {
  if (text === "") return [];
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
}

function middle(old: readonly string[], fresh: readonly string[]): readonly DiffLine[] {
  const out = (text: string): DiffLine => ({ mark: "-", text });
  const put = (text: string): DiffLine => ({ mark: "+", text });
  if (old.length * fresh.length > MOST_CELLS) return [...old.map(out), ...fresh.map(put)];
  const common = commonRuns(old, fresh);
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < old.length && j < fresh.length) {
    const [before = "", after = ""] = [old[i], fresh[j]];
    if (before === after) lines.push({ mark: " ", text: before });
    else lines.push(common(i + 1, j) >= common(i, j + 1) ? out(before) : put(after));
    const mark = lines.at(-1)?.mark;
    if (mark !== "+") i += 1;
    if (mark !== "-") j += 1;
  }
  return [...lines, ...old.slice(i).map(out), ...fresh.slice(j).map(put)];
}

/** Returns a function that gives the length of the longest common subsequence of lines from two positions on. */
function commonRuns(old: readonly string[], fresh: readonly string[]): (i: number, j: number) => number {
  const width = fresh.length + 1;
  const longest = new Uint32Array((old.length + 1) * width);
  const at = (i: number, j: number): number => longest[i * width + j] ?? 0;
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = fresh.length - 1; j >= 0; j -= 1) {
      longest[i * width + j] = old[i] === fresh[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  return at;
}

/** Long unchanged parts become one line with their number of lines. */
function shortened(lines: readonly DiffLine[]): readonly DiffLine[] {
  const isNear = lines.map(() => false);
  lines.forEach(({ mark }, index) => {
    if (mark === " ") return;
    for (let near = index - CONTEXT_LINES; near <= index + CONTEXT_LINES; near += 1)
      if (near in isNear) isNear[near] = true;
  });
  const short: DiffLine[] = [];
  let hidden = 0;
  const flush = (): void => {
    if (hidden > 0) short.push({ mark: "…", text: hidden === 1 ? "1 line as before" : `${hidden} lines as before` });
    hidden = 0;
  };
  lines.forEach((line, index) => {
    if (isNear[index] === true) {
      flush();
      short.push(line);
    } else hidden += 1;
  });
  flush();
  return short;
}
