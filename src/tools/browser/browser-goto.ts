import type { GuestResult } from "../../../contract/guest.ts";
import * as z from "zod";
import { networkNote } from "../network-note.ts";
import { defineSandboxTool, type Outcome, type SandboxTool } from "../sandbox-tool.ts";
import type { ToolLimits } from "../tool-services.ts";
import { browserTimeout, NAVIGATE_SECONDS, pageFields, pageName, pageShape, toMs } from "./browser-fields.ts";

export function browserGoto(limits: ToolLimits): SandboxTool {
  return defineSandboxTool({
    toolset: "browser",
    title: "Open a page",
    description: [
      "Opens a page in the sandbox's own Chromium and waits until it has loaded. Returns the address it ended at, the title and the HTTP status; browser_snapshot then shows what is on it.",
      `Servers started in the sandbox are at http://localhost:PORT; file:// works for files in ${limits.workspacePath}.`,
      networkNote(limits.network),
      "The browser starts with the first call and keeps its tabs and cookies until the sandbox ends.",
    ].join(" "),
    effect: { readOnly: false, destructive: false, idempotent: true, openWorld: true },
    scope: "network",
    input: {
      url: z
        .string()
        .min(1)
        .max(100_000)
        .describe("The address; without a scheme https:// is meant, for localhost http://."),
      wait_until: z
        .enum(["load", "domcontentloaded", "networkidle", "commit"])
        .default("load")
        .describe(
          "When the page counts as there: load is everything, domcontentloaded the page without its pictures, commit the first byte.",
        ),
      timeout_seconds: browserTimeout(limits, NAVIGATE_SECONDS),
      timeout: z.number().positive().max(limits.maxTimeoutSeconds).optional().describe("The same as timeout_seconds."),
    },
    output: pageShape,
    run: async ({ sandbox, signal }, { url, wait_until: waitUntil, timeout_seconds: seconds, timeout }) => {
      const timeoutMs = toMs(timeout ?? seconds);
      return toOutcome(await sandbox.browse("browser.goto", { url, waitUntil, timeoutMs }, { signal }));
    },
  });
}

/** A page of an error is there to be looked at, and still not what was asked for. */
export function toOutcome(result: GuestResult<"browser.goto">): Outcome {
  const { status } = result;
  const value = { ...pageFields(result), ...(status !== undefined && { status }) };
  const summary = `${pageName(result)}${status === undefined ? "" : `, status ${status}`}`;
  if (status === undefined || status < 400) return { summary, value };
  const hint =
    status >= 500
      ? "the server has a fault: look at its log, or try again later; browser_snapshot shows what the page says"
      : "check the address and whether it needs a login; browser_snapshot shows what the page says";
  return { summary, value, failure: { reason: `the server answered ${status} for ${result.url.slice(0, 200)}`, hint } };
}
