import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";

const FONTS = "/usr/share/fonts/truetype/dejavu";
/** Letters of our own choice, whatever the machine takes for its own. */
const FACES = [
  { family: "Still Sans", weight: "400", file: "DejaVuSans.ttf" },
  { family: "Still Sans", weight: "700", file: "DejaVuSans-Bold.ttf" },
  { family: "Still Mono", weight: "400", file: "DejaVuSansMono.ttf" },
  { family: "Still Mono", weight: "700", file: "DejaVuSansMono-Bold.ttf" },
] as const;

/** What depends on the day, the machine or its load keeps its place and is not seen. */
const UNSEEN = [
  ".xterm-screen",
  ".chart .column",
  ".meter",
  ".budgets p",
  ".figure.expected dd",
  ".health",
  ".figure.good, .figure.warn, .figure.bad",
  ".sandbox-row:not(.head) .num",
].join(", ");
/** Facts of a sandbox that depend on the moment. */
const MOMENTS = ["State", "CPU and memory", "Age"];

const STYLE = `
  :root { --sans: "Still Sans" !important; --mono: "Still Mono" !important; }
  *, *::before, *::after { caret-color: transparent !important; }
  ${UNSEEN} { visibility: hidden !important; }
`;

/** A number of any length becomes one of the same, so that what stands beside it keeps its place. */
const SAME_TEXTS = String.raw`[
  [/owl-[0-9a-f]{20}/g, "owl-00000000000000000000"],
  [/\b[0-9a-f]{12,}\b/g, (text) => "0".repeat(text.length)],
  [/\b(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{1,2}\b/g, "Jan 01"],
  [/\b\d{2}:\d{2}:\d{2}\b/g, "00:00:00"],
  [/\b\d+ h \d+ min\b/g, "0 min"],
  [/\b[\d.]+ (ms|s|min)\b/g, "0 min"],
  [/\b[\d.]+ (B|KB|MB|GB)\b/g, "0 MB"],
  [/\b\d+ %/g, "0 %"],
  [/version \d\S*/g, "version 0.0.0"],
]`;

const STILL = `async ({ faces, style, moments }) => {
  for (const { family, weight, base64 } of faces) {
    const bytes = Uint8Array.from(atob(base64), (sign) => sign.charCodeAt(0));
    document.fonts.add(await new FontFace(family, bytes, { weight }).load());
  }
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(style);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  // A copy, which nothing that still comes from the server can reach.
  const copy = document.body.cloneNode(true);
  const chosen = [...document.querySelectorAll("select")].map((select) => select.selectedIndex);
  document.body.replaceWith(copy);
  copy.querySelectorAll("select").forEach((select, at) => (select.selectedIndex = chosen[at]));
  const setAll = (selector, text) => copy.querySelectorAll(selector).forEach((element) => (element.textContent = text));
  setAll("time", "0 min");
  setAll(".ledger-row .num a", "0");
  // Each Python has words of its own for it.
  setAll(".cell-part.error .code", "ZeroDivisionError: division by zero");
  for (const name of copy.querySelectorAll("dt"))
    if (moments.includes(name.textContent)) name.nextElementSibling.textContent = "–";
  const walker = document.createTreeWalker(copy, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    for (const [pattern, same] of ${SAME_TEXTS}) node.data = node.data.replaceAll(pattern, same);
  }
  await document.fonts.ready;
  await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
}`;

const faces = FACES.map(({ file, ...face }) => ({
  ...face,
  base64: (): string => readFileSync(`${FONTS}/${file}`).toString("base64"),
}));

/** Stops the page and takes out of it what is other each time; then a picture of it is made. */
export async function stillPicture(page: Page): Promise<Buffer> {
  const loaded = faces.map((face) => ({ ...face, base64: face.base64() }));
  await page.evaluate(`(${STILL})(${JSON.stringify({ faces: loaded, style: STYLE, moments: MOMENTS })})`);
  return await page.screenshot({ animations: "disabled", caret: "hide" });
}
