import { z } from "zod";
import { list } from "./guest-list.ts";

/** What the host accepts from a guest about its browser. */

const MAX_TEXT = 8 * 1024 * 1024;
const MAX_ENTRIES = 1000;

const text = (): z.ZodString => z.string().max(MAX_TEXT);
const line = (): z.ZodString => z.string().max(4096);
const count = (): z.ZodNumber => z.number().nonnegative();

const page = z.strictObject({
  url: line(),
  title: line(),
  tabs: list(z.strictObject({ tab: z.int(), url: line(), title: line(), isCurrent: z.boolean() }), 100),
  events: list(line(), 100),
  downloads: list(line(), MAX_ENTRIES),
});

const opened = page.extend({ status: z.int().optional() });

const acted = page.extend({ target: line().optional() });

const snapshot = page.extend({
  text: text(),
  elements: text(),
  cursor: z.string().max(64).optional(),
  totalChars: count(),
});

const screenshot = page.extend({
  path: z.string().max(8192),
  width: count(),
  height: count(),
  sizeBytes: count(),
  picture: z.strictObject({
    mimeType: z.enum(["image/png", "image/jpeg"]),
    data: text().regex(/^[A-Za-z0-9+/]*={0,2}$/),
  }),
});

const evaluated = page.extend({ value: text(), isTruncated: z.boolean() });

const log = page.extend({ entries: list(line(), MAX_ENTRIES), droppedEntries: count() });

const pdf = page.extend({ path: z.string().max(8192), sizeBytes: count() });

const picture = z.strictObject({
  isRunning: z.boolean(),
  url: line(),
  title: line(),
  width: count(),
  height: count(),
  data: text().regex(/^[A-Za-z0-9+/]*={0,2}$/),
});

export const browserResultSchemas = {
  "browser.goto": opened,
  "browser.click": acted,
  "browser.type": acted,
  "browser.snapshot": snapshot,
  "browser.screenshot": screenshot,
  "browser.history": opened,
  "browser.press": acted,
  "browser.select": acted,
  "browser.hover": acted,
  "browser.scroll": acted,
  "browser.wait": acted,
  "browser.evaluate": evaluated,
  "browser.log": log,
  "browser.tabs": acted,
  "browser.pdf": pdf,
  "browser.upload": acted,
  "browser.picture": picture,
  "browser.input": z.strictObject({}),
} as const;
