import { expect, test } from "vitest";
import { connectToSite, goto, HOME } from "../e2e/browser-site.ts";
import { call } from "../e2e/sandbox-client.ts";

/** A page that opens hundreds of windows must not keep the agent from opening pages. What the page itself does to its own call is its matter. */
const STORMS: Readonly<Record<string, string>> = {
  "empty windows": `window.open("about:blank")`,
  "windows of a server": `window.open("${HOME}/index.html?" + n)`,
  "windows with much in them": `window.open("${HOME}/table?rows=2000&n=" + n)`,
};

/** The one that takes most memory; the others need minutes too. */
const HEAVIEST = "windows with much in them";
const IS_LONG = process.env["OWLCLAW_TEST_LONG"] === "1";
const WINDOWS = IS_LONG ? 300 : 80;

test.each(IS_LONG ? Object.keys(STORMS) : [HEAVIEST])("pages open after a storm of %s", async (what) => {
  const client = await connectToSite("stdio");
  const script = `for (let n = 0; n < ${WINDOWS}; n++) ${STORMS[what]}`;
  await call(client, "file_write", { path: "storm.html", content: `<title>Storm</title><script>${script}</script>` });
  await call(client, "browser_goto", { url: "file:///workspace/storm.html" });
  const failed: unknown[] = [];
  for (let number = 0; number < 4; number += 1) {
    const { isError, content } = await goto(client, "/index.html");
    if (isError === true) failed.push(content[0]?.text);
  }
  // The first page may find a browser without memory; the one after it has a new browser.
  expect(failed.slice(1)).toEqual([]);
});
