import type { PageTruth } from "./browser-peers.ts";

/** How many texts and widgets of the page are not in the snapshot: each must be there whole, as often as the page has it. */
export function missingIn(snapshot: string, { texts, widgets }: PageTruth): number {
  const said = snapshot.replaceAll('\\"', '"').replaceAll("\\n", "\n");
  const names = [...said.matchAll(/ "([^"\n]*)"/g)].map(([, name = ""]) => name);
  return lacking(texts, wholeTexts(said, texts)) + lacking(widgets, names);
}

/** A text within a longer one is not there for itself: the longest that fits is taken, and the next begins after it. */
function wholeTexts(said: string, texts: readonly string[]): string[] {
  const longestFirst = [...new Set(texts)].toSorted((one, other) => other.length - one.length);
  const any = longestFirst.map((text) => text.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`)).join("|");
  return said.match(new RegExp(`(?<![^\\s"])(?:${any})(?![^\\s"])`, "g")) ?? [];
}

function lacking(wanted: readonly string[], found: readonly string[]): number {
  const counts = new Map<string, number>();
  for (const one of found) counts.set(one, (counts.get(one) ?? 0) + 1);
  let missing = 0;
  for (const one of wanted) {
    const left = counts.get(one) ?? 0;
    if (left === 0) missing += 1;
    else counts.set(one, left - 1);
  }
  return missing;
}
