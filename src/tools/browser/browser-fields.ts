import type { GuestResult } from "../../../contract/guest.ts";
import * as z from "zod";
import type { JsonObject } from "../fit-value.ts";
import type { ToolLimits } from "../tool-services.ts";

/** What every tool of the browser says about the page and what happened by itself. */
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

/** Time for the browser; it ends before the tool's own time-out does. */
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

export function toMs(seconds: number): number {
  return Math.round(seconds * 1000);
}

export const LOOK = { readOnly: true, destructive: false, idempotent: true, openWorld: true } as const;
export const ACT = { readOnly: false, destructive: true, idempotent: false, openWorld: true } as const;
