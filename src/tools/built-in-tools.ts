import type { HandlerDefinition } from "../capability/define.ts";
import type { Operation } from "../capability/registry.ts";
import { codeRun } from "./toolsets/code.ts";
import { executeCode, executeCommand, getSessions, getVolumePath, stopSession } from "./toolsets/microsandbox.ts";
import { fileRead, fileWrite, fileList, fileSearch, fileReplace } from "./toolsets/files.ts";
import { sandboxCreate, sandboxList, sandboxDestroy } from "./toolsets/sandbox.ts";
import type { SandboxTool, Toolset, ToolServices, ToolLimits } from "./sandbox-tool.ts";
import { serveSandboxTool } from "./serve-sandbox-tool.ts";
import { shellExec, shellOutput, shellKill } from "./toolsets/shell.ts";
import { withRelativePaths } from "./workspace-files.ts";
import { browserGoto, browserClick, browserType, browserSnapshot, browserScreenshot } from "./toolsets/browser.ts";
import {
  browserHistory,
  browserHover,
  browserPress,
  browserScroll,
  browserSelect,
  browserUpload,
  browserEvaluate,
  browserLog,
  browserPdf,
  browserTabs,
  browserWait,
} from "./toolsets/browser-extra.ts";

type Dialect = "native" | "microsandbox" | "open-sandbox";

interface BuiltInTool {
  readonly dialect: Dialect;
  readonly toolset: Toolset;
  readonly definition: HandlerDefinition;
  /** Under which names the same thing can be called. */
  readonly operation: Operation;
}

/** Every tool of ours under every name it has. */
export function builtInTools(services: ToolServices): BuiltInTool[] {
  const { limits } = services;
  const inSandbox: readonly (readonly [native: string, openSandbox: string | undefined, tool: SandboxTool])[] = [
    ["code_run", "code.exec", codeRun(limits)],
    ["shell_exec", "shell.exec", shellExec(limits)],
    ["shell_output", undefined, shellOutput(limits)],
    ["shell_kill", undefined, shellKill()],
    ["file_read", "file.read", fileRead(limits)],
    ["file_write", "file.write", fileWrite(limits)],
    ["file_list", "file.list", fileList()],
    ["file_search", "file.search", fileSearch()],
    ["file_replace", "file.replace", fileReplace()],
    ...browserTools(limits),
  ];
  const serve = (dialect: Dialect, name: string | undefined, tool: SandboxTool): NamedTool[] =>
    name === undefined
      ? []
      : [{ dialect, toolset: tool.toolset, paths: tool.paths, definition: serveSandboxTool(name, tool, services) }];
  const tools: readonly NamedTool[] = [
    ...inSandbox.flatMap(([native, , tool]) => serve("native", native, tool)),
    ...inSandbox.flatMap(([, openSandbox, tool]) => serve("open-sandbox", openSandbox, tool)),
    { dialect: "native", toolset: "sandbox", definition: sandboxCreate(services) },
    { dialect: "native", toolset: "sandbox", definition: sandboxList(services) },
    { dialect: "native", toolset: "sandbox", definition: sandboxDestroy(services) },
    { dialect: "microsandbox", toolset: "code", definition: executeCode(services) },
    { dialect: "microsandbox", toolset: "shell", definition: executeCommand(services) },
    { dialect: "microsandbox", toolset: "sandbox", definition: getSessions(services) },
    { dialect: "microsandbox", toolset: "sandbox", definition: stopSession(services) },
    { dialect: "microsandbox", toolset: "files", definition: getVolumePath(services) },
  ];
  const names = new Map(inSandbox.map(([native, openSandbox]) => [openSandbox, native] as const));
  return withOperations(tools, names, limits.workspacePath);
}

interface NamedTool extends Omit<BuiltInTool, "operation"> {
  readonly paths?: readonly string[];
}

const MICROSANDBOX_OPERATIONS: ReadonlyMap<string, string> = new Map([
  ["execute_code", "code_run"],
  ["execute_command", "shell_exec"],
  ["get_sessions", "sandbox_list"],
  ["stop_session", "sandbox_destroy"],
]);

/** A dialect's name stands for the native operation, so that no rule is passed by under another name. */
function withOperations(
  tools: readonly NamedTool[],
  openSandbox: ReadonlyMap<string | undefined, string>,
  workspacePath: string,
): BuiltInTool[] {
  const nativeOf = ({ name }: HandlerDefinition): string =>
    MICROSANDBOX_OPERATIONS.get(name) ?? openSandbox.get(name) ?? name;
  const names = new Map<string, string[]>();
  for (const { definition } of tools) {
    const native = nativeOf(definition);
    names.set(native, [...(names.get(native) ?? []), definition.name]);
  }
  return tools.map((tool) => {
    const name = nativeOf(tool.definition);
    const operation: Operation = { name, names: names.get(name) ?? [name] };
    const { paths = [] } = tool;
    if (paths.length === 0) return { ...tool, operation };
    return { ...tool, operation: { ...operation, normalize: withRelativePaths(paths, workspacePath) } };
  });
}

/** The browser's tools: native name, open-sandbox name where that dialect has one. */
function browserTools(limits: ToolLimits): [native: string, openSandbox: string | undefined, tool: SandboxTool][] {
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
