import type { GuestResult } from "../../../contract/guest.ts";
import * as z from "zod";
import { defineSandboxTool, type Outcome, type SandboxTool } from "../sandbox-tool.ts";
import type { ToolLimits } from "../tool-services.ts";
import {
  ACT,
  ACT_SECONDS,
  browserTimeout,
  pageFields,
  pageName,
  pageShape,
  selectorField,
  toMs,
} from "./browser-fields.ts";

const AFTERWARDS =
  "It waits until the element can be used, and afterwards for a page that it leads to. Returns where the browser is then, not what the page shows: call browser_snapshot for that.";

export const actShape = {
  ...pageShape,
  target: z.string().optional().describe("The element that was used."),
};

export function browserClick(limits: ToolLimits): SandboxTool {
  return defineSandboxTool({
    toolset: "browser",
    title: "Click an element",
    description: `Clicks an element of the page. ${AFTERWARDS} Dialogs of the page are answered at once and reported in events: alerts are accepted, questions are declined unless accept_dialogs is true, and a page that asks whether to leave it is left.`,
    effect: ACT,
    scope: "network",
    input: {
      selector: selectorField,
      button: z.enum(["left", "right", "middle"]).default("left"),
      double: z.boolean().default(false).describe("Click twice."),
      accept_dialogs: z.boolean().default(false).describe("Answer questions that the click brings up with OK."),
      timeout_seconds: browserTimeout(limits, ACT_SECONDS),
    },
    output: actShape,
    run: async (
      { sandbox, signal },
      { selector, button, double, accept_dialogs: acceptDialogs, timeout_seconds: seconds },
    ) => {
      const params = { selector, button, clickCount: double ? 2 : 1, acceptDialogs, timeoutMs: toMs(seconds) };
      return actOutcome("clicked", await sandbox.browse("browser.click", params, { signal }));
    },
  });
}

export function browserType(limits: ToolLimits): SandboxTool {
  return defineSandboxTool({
    toolset: "browser",
    title: "Type into a field",
    description: `Puts text into a field of the page in place of what is in it. ${AFTERWARDS}`,
    effect: ACT,
    scope: "network",
    input: {
      selector: selectorField,
      text: z.string().max(1_000_000),
      clear: z.boolean().default(true).describe("false: the text is added at the end."),
      submit: z.boolean().default(false).describe("Press Enter afterwards."),
      timeout_seconds: browserTimeout(limits, ACT_SECONDS),
    },
    output: actShape,
    run: async ({ sandbox, signal }, { selector, text, clear, submit, timeout_seconds: seconds }) => {
      const params = { selector, text, clear, submit, timeoutMs: toMs(seconds) };
      return actOutcome("typed into", await sandbox.browse("browser.type", params, { signal }));
    },
  });
}

/** `verb` and the element for the first line, then where the browser is. */
export function actOutcome(verb: string, result: GuestResult<"browser.click">): Outcome {
  const { target } = result;
  const what = target === undefined ? verb : `${verb} ${target}`;
  return {
    summary: `${what}; at ${pageName(result)}`,
    value: { ...pageFields(result), ...(target !== undefined && { target }) },
  };
}
