import { isRecord } from "../../platform/records.ts";
import type { ContentBlock, ToolResult } from "../../capability/content.ts";
import type { HandlerDefinition } from "../../capability/define.ts";
import type { JsonSchema } from "../../capability/schema.ts";
import { OwlError } from "../../errors/owl-error.ts";
import type { Flavor } from "../../sandbox/flavors.ts";
import type { SandboxUse } from "../../sandbox/sandboxes.ts";
import { runCode, codeFailure, pictureBlocks } from "./code.ts";
import type { JsonObject } from "../fit-value.ts";
import { networkHint, networkNote } from "../network-note.ts";
import type { Outcome, SandboxCall, ToolServices, Toolset } from "../sandbox-tool.ts";
import { inSandbox, sessionFacts, sessionIdOf } from "../serve-sandbox-tool.ts";
import { shellFailure } from "./shell.ts";

/** Properties and descriptions are those of the microsandbox server, word for word: its clients compare them. */
const TEMPLATE = { type: "string", description: "Sandbox template", enum: ["python", "node"], default: "python" };
const OPTIONAL_SESSION = { type: "string", description: "Optional session ID" };
const FLAVOR = { type: "string", enum: ["small", "medium", "large"], default: "small" };

const SESSION_INPUT: JsonSchema = { type: "object", properties: { session_id: OPTIONAL_SESSION } };
const STOP_INPUT: JsonSchema = {
  type: "object",
  properties: { session_id: { type: "string", description: "ID of the session to stop" } },
  required: ["session_id"],
};

const READS = { readOnly: true, destructive: false, idempotent: true, openWorld: false } as const;

interface MicrosandboxTool {
  /** The native tool that does the same. */
  readonly nativeName: string;
  readonly toolset: Toolset;
  readonly definition: HandlerDefinition;
}

export function microsandboxTools(services: ToolServices): readonly MicrosandboxTool[] {
  return [
    { nativeName: "code_run", toolset: "code", definition: executeCode(services) },
    { nativeName: "shell_exec", toolset: "shell", definition: executeCommand(services) },
    { nativeName: "sandbox_list", toolset: "sandbox", definition: getSessions(services) },
    { nativeName: "sandbox_destroy", toolset: "sandbox", definition: stopSession(services) },
    { nativeName: "get_volume_path", toolset: "files", definition: getVolumePath(services) },
  ];
}

function executeCode(services: ToolServices): HandlerDefinition {
  return execution(services, {
    name: "execute_code",
    title: "Execute code",
    description: `Execute code in a sandbox with automatic session management. The first block of the result is what the code printed. Variables persist between calls with the same session_id; without one, the sandbox of this connection is used and made if there is none. ${networkNote(services.limits.network)}`,
    source: { name: "code", description: "Code to execute" },
    execute: async (call, input) => {
      const language = templateOf(input);
      const { limits } = call;
      const timeoutSeconds = Math.min(limits.defaultTimeoutSeconds, limits.maxTimeoutSeconds);
      const maxOutputChars = limits.maxResultChars;
      const result = await runCode(call, { code: textOf(input, "code"), language, timeoutSeconds, maxOutputChars });
      return {
        stdout: result.stdout.text,
        stderr: [result.stderr.text, result.error?.traceback ?? ""].filter((text) => text !== "").join("\n"),
        durationMs: result.durationMs,
        failure: codeFailure(result, { language, seconds: timeoutSeconds, maxSeconds: limits.maxTimeoutSeconds }),
        blocks: pictureBlocks(result, call.sandbox.facts.id),
      };
    },
  });
}

function executeCommand(services: ToolServices): HandlerDefinition {
  return execution(services, {
    name: "execute_command",
    title: "Execute a command",
    description: `Execute a shell command in a sandbox with automatic session management. The first block of the result is its stdout. Files in the workspace persist between calls with the same session_id. ${networkNote(services.limits.network)}`,
    source: { name: "command", description: "Command to execute" },
    execute: async ({ sandbox, limits, signal, onOutput }, input) => {
      const seconds = Math.min(limits.defaultTimeoutSeconds, limits.maxTimeoutSeconds);
      const command = [textOf(input, "command"), ...argumentsOf(input)].join(" ");
      const params = { command, timeoutMs: seconds * 1000, maxOutputChars: limits.maxResultChars, background: false };
      const result = await sandbox.runTimed("shell.exec", params, { signal, onOutput });
      return {
        stdout: result.stdout.text,
        stderr: result.stderr.text,
        durationMs: result.durationMs,
        failure: shellFailure(result, { seconds, maxSeconds: limits.maxTimeoutSeconds }),
        blocks: [],
      };
    },
  });
}

interface Execution {
  readonly stdout: string;
  readonly stderr: string;
  readonly durationMs: number;
  readonly failure: Outcome["failure"];
  readonly blocks: readonly ContentBlock[];
}

interface ExecutionTool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  /** The argument that is executed. */
  readonly source: { readonly name: string; readonly description: string };
  execute(call: SandboxCall, input: Readonly<Record<string, unknown>>): Promise<Execution>;
}

function execution(services: ToolServices, tool: ExecutionTool): HandlerDefinition {
  const { name, title, description, source } = tool;
  return {
    name,
    title,
    description,
    effect: { readOnly: false, destructive: true, idempotent: false, openWorld: true },
    scope: "exec",
    input: {
      type: "object",
      properties: {
        [source.name]: { type: "string", description: source.description },
        template: TEMPLATE,
        session_id: OPTIONAL_SESSION,
        flavor: FLAVOR,
      },
      required: [source.name],
    },
    run: (value, context) => {
      const input = isRecord(value) ? value : {};
      const request = { template: templateOf(input), flavor: flavorOf(input) };
      return inSandbox(
        services,
        { context, sessionId: sessionIdOf(input), request, use: { tool: name, input } },
        async (call, sandboxUse) => {
          const outcome = await tool.execute(call, input);
          const { failure, blocks, ...value } = outcome;
          call.recorder?.outcome({ value, blocks, ...(failure !== undefined && { failure }) });
          return toResult(name, sandboxUse, outcome);
        },
      );
    },
  };
}

/** The first block is stdout alone; stderr and the failure follow. */
function toResult(
  name: string,
  sandboxUse: SandboxUse,
  { stdout, stderr, durationMs, failure, blocks }: Execution,
): ToolResult & Readonly<Record<string, unknown>> {
  const content: ContentBlock[] = [{ type: "text", text: stdout }];
  if (stderr !== "") content.push({ type: "text", text: stderr });
  if (failure !== undefined) {
    const network = networkHint(`${failure.reason} ${stderr}`, sandboxUse.sandbox.plan.network.allow);
    const hint = network === undefined ? failure.hint : `${network} ${failure.hint}`;
    content.push({ type: "text", text: `${name} failed: ${failure.reason}\nhint: ${hint}` });
  }
  return {
    ...sessionFacts(sandboxUse),
    content: [...content, ...blocks],
    isError: failure !== undefined,
    execution_time_ms: Math.round(durationMs),
  };
}

function textOf(input: Readonly<Record<string, unknown>>, name: string): string {
  const value = input[name];
  return typeof value === "string" ? value : "";
}

/** Clients of the microsandbox SDK send `args` beside the command, without a schema; each item is one word for the shell. */
function argumentsOf({ args = [] }: Readonly<Record<string, unknown>>): readonly string[] {
  const words = Array.isArray(args) ? args.filter((each): each is string => typeof each === "string") : [];
  if (!Array.isArray(args) || words.length < args.length || words.some((word) => word.includes("\0"))) {
    throw new OwlError("invalid_arguments", "args must be a list of strings without NUL", {
      hint: "give each argument as one string of a list, or write them into command",
    });
  }
  return words.map((word) => `'${word.replaceAll("'", "'\\''")}'`);
}

/** The schema has checked both values and filled in their defaults. */
function templateOf({ template }: Readonly<Record<string, unknown>>): "python" | "node" {
  return template === "node" ? "node" : "python";
}

function flavorOf({ flavor }: Readonly<Record<string, unknown>>): Flavor {
  return flavor === "medium" || flavor === "large" ? flavor : "small";
}

function getSessions({ sandboxes }: ToolServices): HandlerDefinition {
  return {
    name: "get_sessions",
    title: "Get sessions",
    description: "Get information about your active sandbox sessions. Changes nothing.",
    effect: READS,
    scope: "exec",
    input: SESSION_INPUT,
    run: async (input, context) => {
      const asked = sessionIdOf(input);
      const sessions = sandboxes
        .list(context)
        .filter(({ id }) => asked === undefined || id === asked)
        .map(({ id, state, template, flavor, createdAtMs, lastUsedAtMs }) => ({
          session_id: id,
          template,
          flavor,
          status: state,
          created_at: new Date(createdAtMs).toISOString(),
          last_accessed: new Date(lastUsedAtMs).toISOString(),
        }));
      return factsResult({ sessions });
    },
  };
}

function stopSession({ sandboxes }: ToolServices): HandlerDefinition {
  return {
    name: "stop_session",
    title: "Stop a session",
    description: "Stop a sandbox session with everything that runs in it, and remove its files. This cannot be undone.",
    effect: { readOnly: false, destructive: true, idempotent: true, openWorld: false },
    scope: "exec",
    input: STOP_INPUT,
    run: async (input, context) => {
      const { id } = await sandboxes.destroy(context, sessionIdOf(input));
      return factsResult({ session_id: id, success: true });
    },
  };
}

function getVolumePath({ volumes, limits }: ToolServices): HandlerDefinition {
  return {
    name: "get_volume_path",
    title: "Get volume mappings",
    description: "Get the folders of the host that are visible in every sandbox, and where. Changes nothing.",
    effect: READS,
    scope: "workspace",
    input: SESSION_INPUT,
    run: async () => {
      const mappings = volumes.map(({ hostPath, guestPath, isReadOnly }) => ({
        host_path: hostPath,
        container_path: guestPath,
        read_only: isReadOnly,
      }));
      return factsResult({ volume_mappings: mappings, workspace: limits.workspacePath });
    },
  };
}

/** The facts as text, and beside `content`, where clients of the microsandbox server look for them. */
function factsResult(facts: JsonObject): ToolResult {
  return { content: [{ type: "text", text: JSON.stringify(facts) }], isError: false, ...facts };
}
