import { z } from "zod";
import { base64, count, line, list, path, text } from "./bounded-schemas.ts";

/** What the server asks a guest about its browser, and what it accepts as answers. Part of `guest.ts`. */

/** The driver ends a request that takes longer. */
interface Timed {
  readonly timeoutMs: number;
}

interface OnElement extends Timed {
  /** `ref_N` of the last snapshot, or CSS. */
  readonly selector: string;
}

export interface BrowserParams {
  readonly "browser.goto": Timed & {
    readonly url: string;
    readonly waitUntil: "load" | "domcontentloaded" | "networkidle" | "commit";
  };
  readonly "browser.click": OnElement & {
    readonly button: "left" | "right" | "middle";
    readonly clickCount: number;
    readonly acceptDialogs: boolean;
  };
  readonly "browser.type": OnElement & { readonly text: string; readonly clear: boolean; readonly submit: boolean };
  readonly "browser.snapshot": Timed & {
    /** Of text and elements together, as they are in JSON. */
    readonly maxChars: number;
    /** From an earlier answer: continues where that one ended. */
    readonly cursor?: string;
  };
  readonly "browser.screenshot": Timed & {
    readonly path?: string;
    readonly fullPage: boolean;
    readonly selector?: string;
    /** The longest side of the picture that is sent back. */
    readonly maxSidePx: number;
  };
  readonly "browser.history": Timed & { readonly action: "back" | "forward" | "reload" };
  readonly "browser.press": Timed & { readonly key: string; readonly selector?: string };
  readonly "browser.select": OnElement & { readonly values: readonly string[] };
  readonly "browser.hover": OnElement;
  /** With a selector: scrolls that element into view. */
  readonly "browser.scroll": Timed & { readonly to: "up" | "down" | "top" | "bottom"; readonly selector?: string };
  readonly "browser.wait": Timed & { readonly text: string; readonly state: "visible" | "gone" };
  readonly "browser.evaluate": Timed & { readonly expression: string; readonly maxChars: number };
  readonly "browser.log": Timed & { readonly kind: "console" | "requests"; readonly maxEntries: number };
  readonly "browser.tabs": Timed & { readonly action: "list" | "open" | "select" | "close"; readonly tab?: number };
  readonly "browser.pdf": Timed & { readonly path: string };
  readonly "browser.upload": OnElement & { readonly paths: readonly string[] };
  /** For the dashboard: does not start a browser. */
  readonly "browser.picture": Timed;
  /** Input of an operator on the picture. All fields are present; `kind` says which count. */
  readonly "browser.input": Timed & {
    readonly kind: "click" | "type" | "key" | "scroll";
    readonly x: number;
    readonly y: number;
    readonly text: string;
    readonly amount: number;
    readonly isUp: boolean;
  };
}

const MAX_ENTRIES = 1000;

const tab = z.strictObject({ tab: z.int(), url: line(), title: line(), isCurrent: z.boolean() });

/** In every answer: the page, and what happened since the last answer. */
const page = z.strictObject({
  url: line(),
  title: line(),
  /** Listed when there is more than one. */
  tabs: list(tab, 100),
  /** Sentences about dialogs and their answers, downloads, new tabs, pages that did not open, restarts. */
  events: list(line(), 100),
  /** Paths in the workspace. */
  downloads: list(line(), MAX_ENTRIES),
});

const opened = page.extend({ status: z.int().optional() });

/** `target`: the element that was used, as in `button "Sign in"`. */
const acted = page.extend({ target: line().optional() });

export const browserResultSchemas = {
  "browser.goto": opened,
  "browser.click": acted,
  "browser.type": acted,
  "browser.snapshot": page.extend({
    text: text(),
    elements: text(),
    /** Absent at the end of the page. */
    cursor: z.string().max(64).optional(),
    totalChars: count(),
  }),
  "browser.screenshot": page.extend({
    path: path(),
    width: count(),
    height: count(),
    sizeBytes: count(),
    picture: z.strictObject({ mimeType: z.enum(["image/png", "image/jpeg"]), data: base64() }),
  }),
  "browser.history": opened,
  "browser.press": acted,
  "browser.select": acted,
  "browser.hover": acted,
  "browser.scroll": acted,
  "browser.wait": acted,
  /** `value`: JSON, or text where the value has no JSON form. */
  "browser.evaluate": page.extend({ value: text(), isTruncated: z.boolean() }),
  /** `droppedEntries`: older ones that are no longer kept. */
  "browser.log": page.extend({ entries: list(line(), MAX_ENTRIES), droppedEntries: count() }),
  "browser.tabs": acted,
  "browser.pdf": page.extend({ path: path(), sizeBytes: count() }),
  "browser.upload": acted,
  "browser.picture": z.strictObject({
    isRunning: z.boolean(),
    url: line(),
    title: line(),
    width: count(),
    height: count(),
    /** A JPEG; empty when no browser runs. */
    data: base64(),
  }),
  "browser.input": z.strictObject({}),
} as const satisfies Record<keyof BrowserParams, z.ZodType>;

export type BrowserTab = z.output<typeof tab>;
export type BrowserPage = z.output<typeof page>;

export type BrowserFailureKind =
  | "bad_address"
  | "bad_certificate"
  | "bad_key"
  | "bad_selector"
  | "bad_value"
  | "browser_crashed"
  | "browser_hung"
  | "browser_missing"
  | "cancelled"
  | "element_covered"
  | "element_disabled"
  | "element_hidden"
  | "element_not_found"
  | "no_history"
  | "no_such_option"
  | "no_such_tab"
  | "page_crashed"
  | "page_hung"
  | "refused_address"
  | "refused_by_policy"
  | "script_error"
  | "several_elements"
  | "stale_ref"
  | "changed_element"
  | "timeout"
  | "unknown_cursor"
  | "unreachable"
  | "wrong_element";
