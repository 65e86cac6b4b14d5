import type { HandlerDefinition } from "../capability/define.ts";
import type { Operation } from "../capability/registry.ts";
import type { SandboxTool, ToolLimits, ToolServices, Toolset } from "./sandbox-tool.ts";
import { serveSandboxTool } from "./serve-sandbox-tool.ts";
import { browserExtraTools } from "./toolsets/browser-extra.ts";
import { browserTools } from "./toolsets/browser.ts";
import { codeTools } from "./toolsets/code.ts";
import { fileTools } from "./toolsets/files.ts";
import { microsandboxTools } from "./toolsets/microsandbox.ts";
import { sandboxTools } from "./toolsets/sandbox.ts";
import { shellTools } from "./toolsets/shell.ts";
import { withRelativePaths } from "./workspace-files.ts";

type Dialect = "native" | "microsandbox" | "open-sandbox";

/** A tool under one of its names. */
interface BuiltInTool {
  readonly dialect: Dialect;
  readonly toolset: Toolset;
  readonly definition: HandlerDefinition;
  /** A dialect's name stands for the native operation, so that a policy rule on one name holds for all of them. */
  readonly operation: Operation;
}

interface NamedTool extends Omit<BuiltInTool, "operation"> {
  readonly nativeName: string;
  readonly paths?: readonly string[];
}

/** docs/adding-a-tool.md: a tool of one of these files needs no other change here. */
const TOOLSETS: readonly ((limits: ToolLimits) => readonly SandboxTool[])[] = [
  codeTools,
  shellTools,
  fileTools,
  browserTools,
  browserExtraTools,
];

/** Every built-in tool under every name it has. */
export function builtInTools(services: ToolServices): BuiltInTool[] {
  const { limits } = services;
  const inSandbox = TOOLSETS.flatMap((toolsOf) => toolsOf(limits));
  const served = (dialect: Dialect, name: string, tool: SandboxTool): NamedTool => {
    const { name: nativeName, toolset, paths } = tool;
    return { dialect, toolset, nativeName, paths, definition: serveSandboxTool(name, tool, services) };
  };
  const tools: readonly NamedTool[] = [
    ...inSandbox.map((tool) => served("native", tool.name, tool)),
    ...inSandbox.flatMap((tool) =>
      tool.openSandboxName === undefined ? [] : [served("open-sandbox", tool.openSandboxName, tool)],
    ),
    ...sandboxTools(services).map((definition): NamedTool => {
      return { dialect: "native", toolset: "sandbox", nativeName: definition.name, definition };
    }),
    ...microsandboxTools(services).map((tool): NamedTool => ({ dialect: "microsandbox", ...tool })),
  ];
  return tools.map(({ nativeName, paths = [], ...tool }) => {
    const names = tools.filter((other) => other.nativeName === nativeName).map(({ definition }) => definition.name);
    const normalize = paths.length === 0 ? {} : { normalize: withRelativePaths(paths, limits.workspacePath) };
    return { ...tool, operation: { name: nativeName, names, ...normalize } };
  });
}
