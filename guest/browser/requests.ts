import { ParamReader } from "../params.ts";
import { optional } from "../requests.ts";
import type { BrowserMethods } from "./rpc.ts";

type Readers = {
  readonly [M in keyof BrowserMethods]: (reader: ParamReader) => Omit<BrowserMethods[M]["params"], "timeoutMs">;
};

const READERS: Readers = {
  "browser.goto": (reader) => ({
    url: reader.text("url"),
    waitUntil: reader.oneOf("waitUntil", ["load", "domcontentloaded", "networkidle", "commit"]),
  }),
  "browser.click": (reader) => ({
    selector: reader.text("selector"),
    button: reader.oneOf("button", ["left", "right", "middle"]),
    clickCount: reader.integer("clickCount"),
    acceptDialogs: reader.flag("acceptDialogs"),
  }),
  "browser.type": (reader) => ({
    selector: reader.text("selector"),
    text: reader.text("text"),
    clear: reader.flag("clear"),
    submit: reader.flag("submit"),
  }),
  "browser.snapshot": (reader) => ({
    maxChars: reader.integer("maxChars"),
    ...optional("cursor", reader.optionalText("cursor")),
  }),
  "browser.screenshot": (reader) => ({
    ...optional("path", reader.optionalText("path")),
    fullPage: reader.flag("fullPage"),
    ...optional("selector", reader.optionalText("selector")),
    maxSidePx: reader.integer("maxSidePx"),
  }),
  "browser.history": (reader) => ({ action: reader.oneOf("action", ["back", "forward", "reload"]) }),
  "browser.press": (reader) => ({
    key: reader.text("key"),
    ...optional("selector", reader.optionalText("selector")),
  }),
  "browser.select": (reader) => ({ selector: reader.text("selector"), values: reader.texts("values") }),
  "browser.hover": (reader) => ({ selector: reader.text("selector") }),
  "browser.scroll": (reader) => ({
    to: reader.oneOf("to", ["up", "down", "top", "bottom"]),
    ...optional("selector", reader.optionalText("selector")),
  }),
  "browser.wait": (reader) => ({ text: reader.text("text"), state: reader.oneOf("state", ["visible", "gone"]) }),
  "browser.evaluate": (reader) => ({ expression: reader.text("expression"), maxChars: reader.integer("maxChars") }),
  "browser.log": (reader) => ({
    kind: reader.oneOf("kind", ["console", "requests"]),
    maxEntries: reader.integer("maxEntries"),
  }),
  "browser.tabs": (reader) => ({
    action: reader.oneOf("action", ["list", "open", "select", "close"]),
    ...optional("tab", reader.optionalInteger("tab")),
  }),
  "browser.pdf": (reader) => ({ path: reader.text("path") }),
  "browser.upload": (reader) => ({ selector: reader.text("selector"), paths: reader.texts("paths") }),
  "browser.picture": () => ({}),
  "browser.input": (reader) => ({
    kind: reader.oneOf("kind", ["click", "type", "key", "scroll"]),
    x: reader.integer("x"),
    y: reader.integer("y"),
    text: reader.text("text"),
    amount: reader.integer("amount"),
    isUp: reader.flag("isUp"),
  }),
};

/** What the host sent for a method, read field by field. */
export function readBrowserParams<M extends keyof BrowserMethods>(
  method: M,
  params: unknown,
): BrowserMethods[M]["params"] {
  const reader = new ParamReader(params);
  return { ...READERS[method](reader), timeoutMs: reader.integer("timeoutMs") };
}
