import type { Handlers } from "../connection.ts";
import type { SandboxBrowser } from "./browser.ts";
import { readBrowserParams } from "./requests.ts";
import { Failure } from "../failure.ts";
import type { BrowserMethods, BrowserPictureResult } from "./rpc.ts";

const NO_PICTURE: BrowserPictureResult = { isRunning: false, url: "", title: "", width: 0, height: 0, data: "" };

/** The browser's methods of the guest. */
export function browserHandlers(browser: SandboxBrowser): Pick<Handlers, keyof BrowserMethods> {
  const ask =
    <M extends keyof BrowserMethods>(method: M) =>
    (params: unknown, signal: AbortSignal): Promise<BrowserMethods[M]["result"]> =>
      browser.ask(method, readBrowserParams(method, params), signal);
  return {
    "browser.goto": ask("browser.goto"),
    "browser.click": ask("browser.click"),
    "browser.type": ask("browser.type"),
    "browser.snapshot": ask("browser.snapshot"),
    "browser.screenshot": ask("browser.screenshot"),
    "browser.history": ask("browser.history"),
    "browser.press": ask("browser.press"),
    "browser.select": ask("browser.select"),
    "browser.hover": ask("browser.hover"),
    "browser.scroll": ask("browser.scroll"),
    "browser.wait": ask("browser.wait"),
    "browser.evaluate": ask("browser.evaluate"),
    "browser.log": ask("browser.log"),
    "browser.tabs": ask("browser.tabs"),
    "browser.pdf": ask("browser.pdf"),
    "browser.upload": ask("browser.upload"),
    "browser.picture": async (params, signal) =>
      browser.isRunning ? ask("browser.picture")(params, signal) : NO_PICTURE,
    "browser.input": async (params, signal) => {
      if (browser.isRunning) return ask("browser.input")(params, signal);
      throw new Failure("browser_missing", "no browser runs in this sandbox", "open a page first");
    },
  };
}
