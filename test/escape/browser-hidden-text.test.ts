import type { Client } from "@modelcontextprotocol/client";
import { beforeAll, expect, test } from "vitest";
import { connectToSite, snapshot } from "../e2e/browser-site.ts";
import { call } from "../e2e/sandbox-client.ts";

/** Text that no person sees must not stand among what the page says: each attempt says "secret", and what is seen must not be marked. */
let client: Client;

beforeAll(async () => {
  client = await connectToSite("stdio");
});

const svg = (content: string): string => `<svg width="400" height="40">${content}</svg>`;
const text = (words: string, attributes: string): string => `<text x="10" y="20" ${attributes}>${words}</text>`;
const clipped = (background: string, content: string): string =>
  `<p style="background: ${background}; background-clip: text; color: transparent">${content}</p>`;
const frame = (words: string, attributes: string): string => `<iframe srcdoc="<p>${words}</p>" ${attributes}></iframe>`;

const HIDDEN: Readonly<Record<string, string>> = {
  "SVG without a fill": svg(text("secret", `fill="none"`)),
  "SVG with a fill of a missing gradient": svg(text("secret", `fill="url(#missing)"`)),
  "SVG with a white gradient": svg(
    `<linearGradient id="white"><stop stop-color="white"/><stop offset="1" stop-color="#fefefe"/></linearGradient>${text("secret", `fill="url(#white)"`)}`,
  ),
  "SVG in white": svg(text("secret", `fill="white"`)),
  "SVG in white with a white outline": svg(text("secret", `fill="white" stroke="white"`)),
  "SVG in white with a background that SVG does not paint": svg(
    text("secret", `fill="white" style="background: black"`),
  ),
  "SVG in white on a shape without a fill": svg(
    `<rect width="400" height="40" fill="none"/>${text("secret", `fill="white"`)}`,
  ),
  "SVG in white on a shape that is not drawn": svg(
    `<defs><rect width="400" height="40"/></defs>${text("secret", `fill="white"`)}`,
  ),
  "SVG in white on the box of a hollow shape": svg(
    `<path d="M0 0H400V40H0Z M2 2V38H398V2Z"/>${text("secret", `fill="white"`)}`,
  ),
  "SVG in black on black": svg(`<rect width="400" height="40"/>${text("secret", "")}`),
  "SVG with a transparent fill": svg(text("secret", `fill="transparent"`)),
  "SVG with a fill opacity of 0": svg(text("secret", `fill-opacity="0"`)),
  "SVG with an inherited fill opacity of 0": svg(`<g fill-opacity="0">${text("<tspan>secret</tspan>", "")}</g>`),
  "SVG with an opacity of 0": svg(text("secret", `opacity="0"`)),
  "a blur": `<p style="filter: blur(8px)">secret</p>`,
  "a blur around": `<div style="filter: grayscale(1) blur(0.3em)"><p>secret</p></div>`,
  "two blurs": `<div style="filter: blur(2px)"><p style="filter: blur(2px)">secret</p></div>`,
  "black that is screened": `<p style="mix-blend-mode: screen">secret</p>`,
  "black that lightens": `<div style="mix-blend-mode: lighten"><p>secret</p></div>`,
  "a dark ground that is screened": `<div style="mix-blend-mode: screen; background: black; color: #111"><p>secret</p></div>`,
  "white that is multiplied": `<p style="mix-blend-mode: multiply; color: #fffffe">secret</p>`,
  "a colour that a blend removes": `<div style="background: red"><p style="mix-blend-mode: lighten; color: #800000">secret</p></div>`,
  "white that shows through letters": clipped("white", "secret"),
  "white that shows through letters inside": clipped("white", "<b>secret</b>"),
  "white gradients that show through letters": clipped("linear-gradient(white, #fefefe)", "secret"),
  "the ground of letters that are clipped": `<p style="background: black; background-clip: text; color: white">secret</p>`,
  "a ground that is not painted": `<div style="display: contents; background: black"><p style="color: white">secret</p></div>`,
  "a frame of one pixel": frame("secret", `width="1" height="1"`),
  "a frame of three pixels": frame("secret", `style="width: 3px; height: 3px; border: 5px solid; padding: 5px"`),
  "a frame that is flat inside its border": frame("secret", `style="width: 300px; height: 2px; border: 3px solid"`),
};

const SEEN: Readonly<Record<string, string>> = {
  "SVG in black": svg(text("is seen", "")),
  "SVG in white on a dark shape": svg(`<rect width="400" height="40" fill="#222"/>${text("is seen", `fill="white"`)}`),
  "SVG in white on a dark circle": svg(
    `<g transform="translate(9 0)"><circle cx="20" cy="16" r="99"/></g>${text("is seen", `fill="white"`)}`,
  ),
  "SVG in white on a dark ground": `<div style="background: black">${svg(text("is seen", `fill="white"`))}</div>`,
  "SVG in white on a picture": svg(
    `<image width="400" height="40" href="data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAAC"/>${text("is seen", `fill="white"`)}`,
  ),
  "SVG in outline": svg(text("is seen", `fill="none" stroke="black"`)),
  "SVG with a gradient": svg(
    `<linearGradient id="colours"><stop stop-color="white"/><stop offset="1" stop-color="red"/></linearGradient>${text("is seen", `fill="url(#colours)"`)}`,
  ),
  "a slight blur": `<p style="filter: blur(1px)">is seen</p>`,
  "a blur of large letters": `<h1 style="filter: blur(4px); font-size: 64px">is seen</h1>`,
  "black that is multiplied": `<p style="mix-blend-mode: multiply">is seen</p>`,
  "white that is screened on black": `<div style="background: black; color: white"><p style="mix-blend-mode: screen">is seen</p></div>`,
  "colours that show through letters": clipped("linear-gradient(red, blue)", "is seen"),
  "colours that show through letters inside": clipped("linear-gradient(red, white)", "<b>is seen</b>"),
  "a colour that shows through letters": clipped("green", "is seen"),
  "white letters with an outline": `<p style="color: white; -webkit-text-stroke: 1px black">is seen</p>`,
  "a small frame": frame("is seen", `width="120" height="40"`),
};

async function shownBy(content: string): Promise<string> {
  await call(client, "file_write", { path: "hidden-text.html", content: `<!doctype html><p>before</p>${content}` });
  await call(client, "browser_goto", { url: "file:///workspace/hidden-text.html" });
  const lines = (await snapshot(client)).text.split("\n");
  expect(lines[0]).toBe("before");
  return lines.filter((line) => !line.startsWith("[hidden] ")).join("\n");
}

test.each(Object.keys(HIDDEN))("text that is hidden by %s does not stand among what is seen", async (how) => {
  expect(await shownBy(HIDDEN[how] ?? "")).not.toContain("secret");
});

test.each(Object.keys(SEEN))("%s is seen", async (how) => {
  expect(await shownBy(SEEN[how] ?? "")).toContain("is seen");
});

test("buttons with letters that are blurred, or of the colour behind them in SVG, say so", async () => {
  const content = `<button style="filter: blur(9px)">secret</button><button>${svg(text("secret", `fill="none"`))}</button>`;
  expect(await shownBy(content)).not.toContain("secret");
  const { elements } = await snapshot(client);
  expect(elements.split("\n").map((line) => line.replace(/^\[ref_\d+\] /, ""))).toEqual(
    Array.from({ length: 2 }, () => 'button "secret" (text not visible)'),
  );
});
