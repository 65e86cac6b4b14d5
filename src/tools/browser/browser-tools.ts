import type { SandboxTool } from "../sandbox-tool.ts";
import type { ToolLimits } from "../tool-services.ts";
import { browserClick, browserType } from "./browser-act.ts";
import {
  browserHistory,
  browserHover,
  browserPress,
  browserScroll,
  browserSelect,
  browserUpload,
} from "./browser-extra.ts";
import { browserGoto } from "./browser-goto.ts";
import { browserEvaluate, browserLog, browserPdf, browserTabs, browserWait } from "./browser-inspect.ts";
import { browserScreenshot } from "./browser-screenshot.ts";
import { browserSnapshot } from "./browser-snapshot.ts";

/** The browser's tools: native name, open-sandbox name where that dialect has one. */
export function browserTools(
  limits: ToolLimits,
): [native: string, openSandbox: string | undefined, tool: SandboxTool][] {
  return [
    ["browser_goto", "browser.navigate", browserGoto(limits)],
    ["browser_click", undefined, browserClick(limits)],
    ["browser_type", undefined, browserType(limits)],
    ["browser_snapshot", undefined, browserSnapshot(limits)],
    ["browser_screenshot", "browser.screenshot", browserScreenshot(limits)],
    ["browser_history", undefined, browserHistory(limits)],
    ["browser_press", undefined, browserPress(limits)],
    ["browser_select", undefined, browserSelect(limits)],
    ["browser_hover", undefined, browserHover(limits)],
    ["browser_scroll", undefined, browserScroll(limits)],
    ["browser_upload", undefined, browserUpload(limits)],
    ["browser_wait", undefined, browserWait(limits)],
    ["browser_evaluate", undefined, browserEvaluate(limits)],
    ["browser_console", undefined, browserLog("console", limits)],
    ["browser_requests", undefined, browserLog("requests", limits)],
    ["browser_tabs", undefined, browserTabs(limits)],
    ["browser_pdf", undefined, browserPdf(limits)],
  ];
}
