import { type DoctorCheck, failed, ok, warning } from "./check.ts";
import type { Called, ChildLine } from "./child-line.ts";
import { firstPixel } from "./first-pixel.ts";

const NAMED = { category: "whole way", name: "browser" } as const;
const RED = "255,0,0";
/** A script writes the version, so that it is there only if the page has run. */
const PAGE = `data:text/html,<body style="background:rgb(${RED})"><p id=said></p><script>said.textContent=navigator.userAgent</script>`;
const INSTALL =
  "install it where sandboxes find it: apt-get install chromium, or for containers in sandbox.image; or name it in sandbox.browser.executable";

/** Has the sandbox's browser draw a page, by the tools that a model has. */
export async function browserCheck(line: Pick<ChildLine, "call">): Promise<DoctorCheck> {
  const startMs = performance.now();
  const opened = await line.call("browser_goto", { url: PAGE, timeout_seconds: 60 });
  if (opened.isError === true) return explain(opened);
  const tookMs = Math.round(performance.now() - startMs);
  const seen = await line.call("browser_snapshot", {});
  const version = /Chrome\/(\d+)/.exec(textOf(seen))?.[1];
  if (version === undefined) return broken(`the page did not run: ${textOf(seen)}`);
  const taken = await line.call("browser_screenshot", {});
  if (taken.isError === true) return explain(taken);
  const colour = firstPixel(Buffer.from(taken.content.find(({ type }) => type === "image")?.data ?? "", "base64"));
  if (colour !== RED) return broken(`a red page came out as ${colour ?? "no picture"}`);
  return ok(NAMED, `Chromium ${version} opened a page in a sandbox in ${tookMs} ms, and drew it`);
}

/** Not everybody needs a browser; whoever has one needs one that works. */
function explain(result: Called): DoctorCheck {
  const said = textOf(result);
  return said.includes("there is no Chromium") ? warning(NAMED, "sandboxes have no Chromium", INSTALL) : broken(said);
}

function broken(said: string): DoctorCheck {
  const [reason = ""] = said.split("\n");
  return failed(NAMED, reason.slice(0, 600), "see docs/browser.md; leave browser out of tools.toolsets to do without");
}

function textOf({ content }: Called): string {
  return content.map(({ text = "" }) => text).join(" ");
}
