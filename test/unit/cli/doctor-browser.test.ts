import { deflateSync } from "node:zlib";
import { expect, test } from "vitest";
import { browserCheck } from "../../../src/cli/doctor/end-to-end-probe.ts";
import type { Called } from "../../../src/cli/doctor/child-connection.ts";

/** A picture of one pixel; readers here look at no checksum. */
function picture(red: number, green: number, blue: number): string {
  const chunk = (type: string, data: Buffer): Buffer => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(data.length);
    return Buffer.concat([length, Buffer.from(type), data, Buffer.alloc(4)]);
  };
  const pixels = deflateSync(Buffer.from([0, red, green, blue]));
  return Buffer.concat([Buffer.alloc(8), chunk("IHDR", Buffer.alloc(13)), chunk("IDAT", pixels)]).toString("base64");
}

function said(text: string, more: Partial<Called> = {}): Called {
  return { content: [{ type: "text", text }], ...more };
}

const WELL: Readonly<Record<string, Called>> = {
  browser_goto: said("browser_goto ok"),
  browser_snapshot: said("Mozilla/5.0 HeadlessChrome/150.0.0.0"),
  browser_screenshot: { content: [{ type: "text" }, { type: "image", data: picture(255, 0, 0) }] },
};

async function check(answers: Readonly<Record<string, Called>>) {
  return await browserCheck({ call: async (name) => ({ ...WELL, ...answers })[name] ?? said("no such tool") });
}

test("a page that ran and was drawn is well, and the version is told", async () => {
  expect(await check({})).toMatchObject({ status: "ok", message: expect.stringContaining("Chromium 150 ") });
});

test("sandboxes without Chromium are a warning that says how to get it", async () => {
  const text = "browser_goto failed: there is no Chromium in the sandbox";
  expect(await check({ browser_goto: said(text, { isError: true }) })).toMatchObject({
    status: "warning",
    fix: expect.stringMatching(/apt-get install chromium.*sandbox\.image.*sandbox\.browser\.executable/),
  });
});

test.each([
  ["a page that does not run", { browser_snapshot: said("nothing") }, /did not run/],
  ["a page that is not drawn", { browser_screenshot: said("ok") }, /no picture/],
  [
    "a page that is drawn wrongly",
    { browser_screenshot: { content: [{ type: "image", data: picture(0, 0, 0) }] } },
    /came out as 0,0,0/,
  ],
])("%s is a failure", async (_what, answers, message) => {
  expect(await check(answers)).toMatchObject({ status: "failed", message: expect.stringMatching(message) });
});
