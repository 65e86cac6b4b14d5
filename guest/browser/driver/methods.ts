import type { BrowserMethod, GuestParams, GuestResult } from "../../../contract/guest.ts";
import { click, hover, press, select, type, upload } from "./act.ts";
import { goThroughHistory, goto } from "./goto.ts";
import { evaluate, readLog, scroll, useTabs, waitForText } from "./look.ts";
import { savePdf, takeScreenshot } from "./screenshot.ts";
import type { BrowserSession } from "./session.ts";
import { showPage, takeInput } from "./show.ts";
import { takeSnapshot } from "./snapshot.ts";

type DriverMethods = {
  readonly [M in BrowserMethod]: (
    session: BrowserSession,
    params: GuestParams[M],
    signal: AbortSignal,
  ) => Promise<GuestResult<M>>;
};

export const driverMethods: DriverMethods = {
  "browser.goto": goto,
  "browser.click": click,
  "browser.type": type,
  "browser.snapshot": takeSnapshot,
  "browser.screenshot": takeScreenshot,
  "browser.history": goThroughHistory,
  "browser.press": press,
  "browser.select": select,
  "browser.hover": hover,
  "browser.scroll": scroll,
  "browser.wait": waitForText,
  "browser.evaluate": evaluate,
  "browser.log": readLog,
  "browser.tabs": useTabs,
  "browser.pdf": savePdf,
  "browser.upload": upload,
  "browser.picture": showPage,
  "browser.input": takeInput,
};
