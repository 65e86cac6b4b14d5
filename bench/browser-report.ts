import { availableParallelism } from "node:os";
import type { BrowserCase, BrowserResults } from "./browser.ts";
import { type Goal, atMost, toTable } from "./report.ts";

const MAX_CHARS_RATIO = 0.5;
/** Equal but for the noise of a median. */
const MAX_TIME_RATIO = 1;
const MAX_GOTO_RATIO = 1.2;

export function browserReport({ cases, loadBefore }: BrowserResults): string {
  const rows = cases.map((each) => [
    each.name,
    each.firstGotoMs.toFixed(0),
    each.gotoMs.toFixed(1),
    each.largeGotoMs.toFixed(1),
    each.snapshotMs.toFixed(1),
    String(each.snapshotChars),
    String(each.missing),
  ]);
  const head = ["browser", "first goto ms", "goto ms", "large ms", "snapshot ms", "characters", "missing"];
  return [
    `browsers, asked by turns; the large page has 5,000 cells and 2,000 links and buttons, and the snapshot is of that\n${toTable(head, rows)}`,
    `load of the machine before the run: ${loadBefore.toFixed(1)} on ${availableParallelism()} processors`,
  ].join("\n");
}

export function checkBrowserGoals({ cases }: BrowserResults): readonly Goal[] {
  const ours = find(cases, "owlclaw");
  const server = find(cases, "@playwright/mcp");
  const library = find(cases, "playwright");
  return [
    atMost("snapshot characters against @playwright/mcp", ours.snapshotChars / server.snapshotChars, MAX_CHARS_RATIO),
    atMost("texts and elements missing in the snapshot", ours.missing, 0),
    atMost("snapshot time against @playwright/mcp", ours.snapshotMs / server.snapshotMs, MAX_TIME_RATIO),
    atMost("second goto, a small page, against plain Playwright", ours.gotoMs / library.gotoMs, MAX_GOTO_RATIO),
    atMost("the same with the large page", ours.largeGotoMs / library.largeGotoMs, MAX_GOTO_RATIO),
  ];
}

function find(cases: readonly BrowserCase[], name: string): BrowserCase {
  const found = cases.find((each) => each.name === name);
  if (found === undefined) throw new Error(`${name} was not measured`);
  return found;
}
