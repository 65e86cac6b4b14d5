import * as z from "zod";
import { defineSandboxTool, type SandboxTool } from "../sandbox-tool.ts";
import type { ToolLimits } from "../tool-services.ts";
import { actOutcome, actShape } from "./browser-act.ts";
import {
  ACT,
  ACT_SECONDS,
  browserTimeout,
  LOOK,
  NAVIGATE_SECONDS,
  pageShape,
  selectorField,
  toMs,
} from "./browser-fields.ts";
import { toOutcome } from "./browser-goto.ts";

const SEE = "Returns where the browser is then; call browser_snapshot to see the page.";

export function browserHistory(limits: ToolLimits): SandboxTool {
  return defineSandboxTool({
    toolset: "browser-extra",
    title: "Go back, forward or reload",
    description: `Goes one page back or forward in the current tab, or loads the page again. ${SEE}`,
    effect: ACT,
    scope: "network",
    input: { action: z.enum(["back", "forward", "reload"]), timeout_seconds: browserTimeout(limits, NAVIGATE_SECONDS) },
    output: pageShape,
    run: async ({ sandbox, signal }, { action, timeout_seconds: seconds }) =>
      toOutcome(await sandbox.browse("browser.history", { action, timeoutMs: toMs(seconds) }, { signal })),
  });
}

export function browserPress(limits: ToolLimits): SandboxTool {
  return defineSandboxTool({
    toolset: "browser-extra",
    title: "Press a key",
    description: `Presses a key or a combination, such as Enter, Escape, ArrowDown or Control+A, in an element or where the focus is. ${SEE}`,
    effect: ACT,
    scope: "network",
    input: {
      key: z.string().min(1).max(50),
      selector: selectorField.optional(),
      timeout_seconds: browserTimeout(limits, ACT_SECONDS),
    },
    output: actShape,
    run: async ({ sandbox, signal }, { key, selector, timeout_seconds: seconds }) => {
      const params = { key, ...(selector !== undefined && { selector }), timeoutMs: toMs(seconds) };
      return actOutcome(`pressed ${key}`, await sandbox.browse("browser.press", params, { signal }));
    },
  });
}

export function browserSelect(limits: ToolLimits): SandboxTool {
  return defineSandboxTool({
    toolset: "browser-extra",
    title: "Choose from a list",
    description: `Chooses options of a select field by their label or value; several where the field takes several. ${SEE}`,
    effect: ACT,
    scope: "network",
    input: {
      selector: selectorField,
      values: z.array(z.string()).min(1).max(100),
      timeout_seconds: browserTimeout(limits, ACT_SECONDS),
    },
    output: actShape,
    run: async ({ sandbox, signal }, { selector, values, timeout_seconds: seconds }) => {
      const params = { selector, values, timeoutMs: toMs(seconds) };
      return actOutcome("chose in", await sandbox.browse("browser.select", params, { signal }));
    },
  });
}

export function browserHover(limits: ToolLimits): SandboxTool {
  return defineSandboxTool({
    toolset: "browser-extra",
    title: "Point at an element",
    description: `Moves the mouse over an element, which opens menus and hints of some pages. ${SEE}`,
    effect: ACT,
    scope: "network",
    input: { selector: selectorField, timeout_seconds: browserTimeout(limits, ACT_SECONDS) },
    output: actShape,
    run: async ({ sandbox, signal }, { selector, timeout_seconds: seconds }) =>
      actOutcome(
        "points at",
        await sandbox.browse("browser.hover", { selector, timeoutMs: toMs(seconds) }, { signal }),
      ),
  });
}

export function browserUpload(limits: ToolLimits): SandboxTool {
  return defineSandboxTool({
    toolset: "browser-extra",
    title: "Put files into a file field",
    description: `Puts files of the workspace (${limits.workspacePath}) into a file field of the page. ${SEE}`,
    effect: ACT,
    scope: "network",
    input: {
      selector: selectorField,
      paths: z.array(z.string().min(1)).min(1).max(100).describe("Relative to the workspace, or absolute inside it."),
      timeout_seconds: browserTimeout(limits, ACT_SECONDS),
    },
    output: actShape,
    run: async ({ sandbox, signal }, { selector, paths, timeout_seconds: seconds }) => {
      const params = { selector, paths, timeoutMs: toMs(seconds) };
      return actOutcome("put files into", await sandbox.browse("browser.upload", params, { signal }));
    },
  });
}

export function browserScroll(limits: ToolLimits): SandboxTool {
  return defineSandboxTool({
    toolset: "browser-extra",
    title: "Scroll the page",
    description: `Scrolls by almost a screen up or down, to the top or the bottom, or to an element. Pages that load more at their end do so then. ${SEE}`,
    effect: { ...LOOK, readOnly: false, idempotent: false },
    scope: "network",
    input: {
      to: z.enum(["up", "down", "top", "bottom"]).default("down"),
      selector: selectorField.optional().describe("Scrolls to this element: a ref or a CSS selector."),
      timeout_seconds: browserTimeout(limits, ACT_SECONDS),
    },
    output: actShape,
    run: async ({ sandbox, signal }, { to, selector, timeout_seconds: seconds }) => {
      const params = { to, ...(selector !== undefined && { selector }), timeoutMs: toMs(seconds) };
      return actOutcome("scrolled", await sandbox.browse("browser.scroll", params, { signal }));
    },
  });
}
