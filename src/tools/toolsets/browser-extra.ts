import * as z from "zod";
import { defineSandboxTool, type SandboxTool, type ToolLimits } from "../sandbox-tool.ts";
import {
  ACTS_ON_PAGE,
  ACT_SECONDS,
  browserTimeout,
  READS_PAGE,
  NAVIGATE_SECONDS,
  pageShape,
  selectorField,
  toMs,
  pageFields,
  pageName,
  actOutcome,
  actShape,
  pageOutcome,
  pageParams,
} from "./browser-fields.ts";
import { askedPath, sandboxUri } from "../workspace-files.ts";

const SEE = "Returns where the browser is then; call browser_snapshot to see the page.";

const MAX_ENTRIES = 200;

const LOGS = {
  console: {
    name: "browser_console",
    title: "Read the page's console",
    description:
      "Messages and errors that the current tab's scripts wrote to the console, oldest first. Changes nothing.",
  },
  requests: {
    name: "browser_requests",
    title: "See requests that failed",
    description:
      "Requests of the current tab that failed or were answered with an error, oldest first. Changes nothing.",
  },
} as const;

export function browserExtraTools(limits: ToolLimits): readonly SandboxTool[] {
  return [
    browserHistory(limits),
    browserPress(limits),
    browserSelect(limits),
    browserHover(limits),
    browserScroll(limits),
    browserUpload(limits),
    browserWait(limits),
    browserEvaluate(limits),
    browserLog("console", limits),
    browserLog("requests", limits),
    browserTabs(limits),
    browserPdf(limits),
  ];
}

function browserHistory(limits: ToolLimits): SandboxTool {
  return defineSandboxTool({
    name: "browser_history",
    toolset: "browser-extra",
    title: "Go back, forward or reload",
    description: `Goes one page back or forward in the current tab, or loads the page again. ${SEE}`,
    effect: ACTS_ON_PAGE,
    scope: "network",
    input: { action: z.enum(["back", "forward", "reload"]), timeout_seconds: browserTimeout(limits, NAVIGATE_SECONDS) },
    output: pageShape,
    run: async ({ sandbox, signal }, input) =>
      pageOutcome(await sandbox.browse("browser.history", pageParams(input), { signal })),
  });
}

function browserPress(limits: ToolLimits): SandboxTool {
  return defineSandboxTool({
    name: "browser_press",
    toolset: "browser-extra",
    title: "Press a key",
    description: `Presses a key or a combination, such as Enter, Escape, ArrowDown or Control+A, in an element or where the focus is. ${SEE}`,
    effect: ACTS_ON_PAGE,
    scope: "network",
    input: {
      key: z.string().min(1).max(50),
      selector: selectorField.optional(),
      timeout_seconds: browserTimeout(limits, ACT_SECONDS),
    },
    output: actShape,
    run: async ({ sandbox, signal }, input) =>
      actOutcome(`pressed ${input.key}`, await sandbox.browse("browser.press", pageParams(input), { signal })),
  });
}

function browserSelect(limits: ToolLimits): SandboxTool {
  return defineSandboxTool({
    name: "browser_select",
    toolset: "browser-extra",
    title: "Choose from a list",
    description: `Chooses options of a select field by their label or value; several where the field takes several. ${SEE}`,
    effect: ACTS_ON_PAGE,
    scope: "network",
    input: {
      selector: selectorField,
      values: z.array(z.string()).min(1).max(100),
      timeout_seconds: browserTimeout(limits, ACT_SECONDS),
    },
    output: actShape,
    run: async ({ sandbox, signal }, input) =>
      actOutcome("chose in", await sandbox.browse("browser.select", pageParams(input), { signal })),
  });
}

function browserHover(limits: ToolLimits): SandboxTool {
  return defineSandboxTool({
    name: "browser_hover",
    toolset: "browser-extra",
    title: "Point at an element",
    description: `Moves the mouse over an element, which opens menus and hints of some pages. ${SEE}`,
    effect: ACTS_ON_PAGE,
    scope: "network",
    input: { selector: selectorField, timeout_seconds: browserTimeout(limits, ACT_SECONDS) },
    output: actShape,
    run: async ({ sandbox, signal }, input) =>
      actOutcome("points at", await sandbox.browse("browser.hover", pageParams(input), { signal })),
  });
}

function browserUpload(limits: ToolLimits): SandboxTool {
  return defineSandboxTool({
    name: "browser_upload",
    toolset: "browser-extra",
    title: "Put files into a file field",
    description: `Puts files of the workspace (${limits.workspacePath}) into a file field of the page. ${SEE}`,
    effect: ACTS_ON_PAGE,
    scope: "network",
    input: {
      selector: selectorField,
      paths: z.array(z.string().min(1)).min(1).max(100).describe("Relative to the workspace, or absolute inside it."),
      timeout_seconds: browserTimeout(limits, ACT_SECONDS),
    },
    output: actShape,
    run: async ({ sandbox, signal }, input) =>
      actOutcome("put files into", await sandbox.browse("browser.upload", pageParams(input), { signal })),
  });
}

function browserScroll(limits: ToolLimits): SandboxTool {
  return defineSandboxTool({
    name: "browser_scroll",
    toolset: "browser-extra",
    title: "Scroll the page",
    description: `Scrolls by almost a screen up or down, to the top or the bottom, or to an element. Pages that load more at their end do so then. ${SEE}`,
    effect: { ...READS_PAGE, readOnly: false, idempotent: false },
    scope: "network",
    input: {
      to: z.enum(["up", "down", "top", "bottom"]).default("down"),
      selector: selectorField.optional().describe("Scrolls to this element: a ref or a CSS selector."),
      timeout_seconds: browserTimeout(limits, ACT_SECONDS),
    },
    output: actShape,
    run: async ({ sandbox, signal }, input) =>
      actOutcome("scrolled", await sandbox.browse("browser.scroll", pageParams(input), { signal })),
  });
}

function browserWait(limits: ToolLimits): SandboxTool {
  return defineSandboxTool({
    name: "browser_wait",
    toolset: "browser-extra",
    title: "Wait for a text",
    description: "Waits until a text can be seen on the page, or until it is gone. Changes nothing.",
    effect: READS_PAGE,
    scope: "network",
    input: {
      text: z.string().min(1).max(1000),
      state: z.enum(["visible", "gone"]).default("visible"),
      timeout_seconds: browserTimeout(limits, NAVIGATE_SECONDS),
    },
    output: actShape,
    run: async ({ sandbox, signal }, input) => {
      const result = await sandbox.browse("browser.wait", pageParams(input), { signal });
      return actOutcome(`the text is ${input.state === "gone" ? "gone" : "there"}`, result);
    },
  });
}

function browserEvaluate(limits: ToolLimits): SandboxTool {
  return defineSandboxTool({
    name: "browser_evaluate",
    toolset: "browser-extra",
    title: "Run a script in the page",
    description:
      "Evaluates a JavaScript expression in the page, with its document and window, and returns the value as JSON. Promises are waited for. It can change the page, and nothing outside it.",
    effect: ACTS_ON_PAGE,
    scope: "exec",
    input: {
      expression: z
        .string()
        .min(1)
        .max(200_000)
        .describe("As in document.title, or (() => { … })() for several statements."),
      timeout_seconds: browserTimeout(limits, NAVIGATE_SECONDS),
    },
    output: { ...pageShape, value: z.string().describe("JSON.") },
    run: async ({ sandbox, signal }, input) => {
      const params = { ...pageParams(input), maxChars: Math.floor(limits.maxResultChars * 0.4) };
      const result = await sandbox.browse("browser.evaluate", params, { signal });
      const cut = result.isTruncated ? { is_truncated: true } : {};
      return { summary: pageName(result), value: { ...pageFields(result), value: result.value, ...cut } };
    },
  });
}

function browserLog(kind: keyof typeof LOGS, limits: ToolLimits): SandboxTool {
  return defineSandboxTool({
    ...LOGS[kind],
    toolset: "browser-extra",
    effect: READS_PAGE,
    scope: "network",
    input: { limit: z.int().min(1).max(MAX_ENTRIES).default(50).describe("The newest so many.") },
    output: {
      ...pageShape,
      entries: z.array(z.string()),
      dropped: z.number().optional().describe("Older ones that are not shown."),
    },
    run: async ({ sandbox, signal }, { limit }) => {
      const timeoutMs = toMs(Math.min(ACT_SECONDS, limits.maxTimeoutSeconds));
      const result = await sandbox.browse("browser.log", { kind, maxEntries: limit, timeoutMs }, { signal });
      const { entries, droppedEntries } = result;
      const dropped = droppedEntries > 0 ? { dropped: droppedEntries } : {};
      return { summary: `${entries.length} entries`, value: { ...pageFields(result), entries, ...dropped } };
    },
  });
}

function browserTabs(limits: ToolLimits): SandboxTool {
  return defineSandboxTool({
    name: "browser_tabs",
    toolset: "browser-extra",
    title: "List, open, choose and close tabs",
    description:
      "Lists the tabs of the browser, opens an empty one, makes one the current tab that the other tools work on, or closes one.",
    effect: ACTS_ON_PAGE,
    scope: "network",
    input: {
      action: z.enum(["list", "open", "select", "close"]).default("list"),
      tab: z.int().min(1).optional().describe("The number that tabs lists. Default: the current one."),
    },
    output: actShape,
    run: async ({ sandbox, signal }, { action, tab }) => {
      const timeoutMs = toMs(Math.min(NAVIGATE_SECONDS, limits.maxTimeoutSeconds));
      const params = { action, ...(tab !== undefined && { tab }), timeoutMs };
      return actOutcome(`tabs: ${action}`, await sandbox.browse("browser.tabs", params, { signal }));
    },
  });
}

function browserPdf(limits: ToolLimits): SandboxTool {
  return defineSandboxTool({
    name: "browser_pdf",
    toolset: "browser-extra",
    title: "Save the page as PDF",
    description: `Writes the page as PDF to a file in ${limits.workspacePath}.`,
    effect: { readOnly: false, destructive: true, idempotent: true, openWorld: true },
    scope: "workspace",
    input: {
      path: z.string().min(1).default("page.pdf"),
      timeout_seconds: browserTimeout(limits, NAVIGATE_SECONDS),
    },
    output: {
      ...pageShape,
      path: z.string(),
      uri: z.string().describe("The file as a resource."),
      size_bytes: z.number(),
    },
    run: async ({ sandbox, signal }, input) => {
      const result = await sandbox.browse("browser.pdf", pageParams(input), { signal });
      const file = { path: result.path, uri: sandboxUri(sandbox.facts.id, result.path), size_bytes: result.sizeBytes };
      return {
        summary: `${askedPath(input.path, limits)} (${result.sizeBytes} bytes)`,
        value: { ...pageFields(result), ...file },
      };
    },
  });
}
