import type { BrowserMethod, GuestParams, GuestResult } from "../../contract/guest.ts";
import type { Handlers } from "../connection.ts";
import type { SandboxBrowser } from "./browser.ts";
import { Failure } from "../failure.ts";

const NO_PICTURE: GuestResult<"browser.picture"> = {
  isRunning: false,
  url: "",
  title: "",
  width: 0,
  height: 0,
  data: "",
};

/** The browser's methods of the guest. */
export function browserHandlers(browser: SandboxBrowser): Pick<Handlers, BrowserMethod> {
  const ask =
    <M extends BrowserMethod>(method: M) =>
    (params: GuestParams[M], signal: AbortSignal): Promise<GuestResult<M>> =>
      browser.ask(method, params, signal);
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
