import * as z from "zod";
import type { GuestResult } from "../../../contract/guest.ts";
import type { JsonObject } from "../fit-value.ts";
import { type Outcome, type ToolLimits, toParams } from "../sandbox-tool.ts";

/** Members of every browser tool's result: the page, and events since the last call. */
export const pageShape = {
  url: z.string(),
  title: z.string(),
  status: z.number().optional().describe("What the server answered, as in 200."),
  tabs: z
    .array(z.object({ tab: z.number(), url: z.string(), title: z.string(), is_current: z.boolean() }))
    .optional()
    .describe("Set when there are several."),
  events: z
    .array(z.string())
    .optional()
    .describe(
      "What happened by itself since the last call: dialogs and how they were answered, downloads, new tabs, pages that did not open.",
    ),
  downloads: z.array(z.string()).optional().describe("Files that were downloaded, in the workspace."),
};

type Page = GuestResult<"browser.click">;

export function pageFields({ url, title, tabs, events, downloads }: Page): JsonObject {
  return {
    url,
    title,
    ...(tabs.length > 0 && { tabs: tabs.map(({ isCurrent, ...tab }) => ({ ...tab, is_current: isCurrent })) }),
    ...(events.length > 0 && { events }),
    ...(downloads.length > 0 && { downloads }),
  };
}

export function pageName({ url, title }: Page): string {
  return title === "" ? url : `${url} (${title})`;
}

export const selectorField = z
  .string()
  .min(1)
  .max(2000)
  .describe("A ref of the last browser_snapshot, such as ref_12, or a CSS selector that one element has.");

/** Timeout of one browser operation. */
export function browserTimeout({ maxTimeoutSeconds }: ToolLimits, seconds: number) {
  return z
    .number()
    .positive()
    .max(maxTimeoutSeconds)
    .default(Math.min(seconds, maxTimeoutSeconds))
    .describe("In seconds; after this the call gives up.");
}

export const ACT_SECONDS = 5;
export const NAVIGATE_SECONDS = 30;
export const SNAPSHOT_SECONDS = 10;

/** The arguments of a browser tool as parameters of the guest's method. */
export function pageParams<T extends { readonly timeout_seconds: number }>({ timeout_seconds: seconds, ...args }: T) {
  return { ...toParams(args), timeoutMs: toMs(seconds) };
}

export function toMs(seconds: number): number {
  return Math.round(seconds * 1000);
}

export const READS_PAGE = { readOnly: true, destructive: false, idempotent: true, openWorld: true } as const;
export const ACTS_ON_PAGE = { readOnly: false, destructive: true, idempotent: false, openWorld: true } as const;

/** Result of tools that use an element of the page. */
export const actShape = {
  ...pageShape,
  target: z.string().optional().describe("The element that was used."),
};

export function actOutcome(verb: string, result: GuestResult<"browser.click">): Outcome {
  const { target } = result;
  const what = target === undefined ? verb : `${verb} ${target}`;
  return {
    summary: `${what}; at ${pageName(result)}`,
    value: { ...pageFields(result), ...(target !== undefined && { target }) },
  };
}

/** A page with an HTTP error status is a failure, although the browser shows it. */
export function pageOutcome(result: GuestResult<"browser.goto">): Outcome {
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
