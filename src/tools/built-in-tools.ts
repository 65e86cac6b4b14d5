import type { HandlerDefinition } from "../capabilities/define.ts";
import { codeRun } from "./code/code-run.ts";
import { executeCode, executeCommand } from "./dialects/microsandbox.ts";
import { getSessions, getVolumePath, stopSession } from "./dialects/microsandbox-sessions.ts";
import { fileList } from "./files/file-list.ts";
import { fileRead } from "./files/file-read.ts";
import { fileReplace } from "./files/file-replace.ts";
import { fileSearch } from "./files/file-search.ts";
import { fileWrite } from "./files/file-write.ts";
import { sandboxCreate } from "./sandbox/sandbox-create.ts";
import { sandboxDestroy } from "./sandbox/sandbox-destroy.ts";
import { sandboxList } from "./sandbox/sandbox-list.ts";
import type { SandboxTool, Toolset } from "./sandbox-tool.ts";
import { serveSandboxTool } from "./serve-sandbox-tool.ts";
import { shellExec } from "./shell/shell-exec.ts";
import { shellKill } from "./shell/shell-kill.ts";
import { shellOutput } from "./shell/shell-output.ts";
import type { ToolServices } from "./tool-services.ts";

export type Dialect = "native" | "microsandbox" | "open-sandbox";

export interface BuiltInTool {
  readonly dialect: Dialect;
  readonly toolset: Toolset;
  readonly definition: HandlerDefinition;
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
  ];
  const serve = (dialect: Dialect, name: string | undefined, tool: SandboxTool): BuiltInTool[] =>
    name === undefined ? [] : [{ dialect, toolset: tool.toolset, definition: serveSandboxTool(name, tool, services) }];
  return [
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
}
