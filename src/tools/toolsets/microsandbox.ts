import type { ContentBlock, ToolResult } from "../../capability/content.ts";
import type { HandlerDefinition } from "../../capability/define.ts";
import type { JsonSchema } from "../../capability/schema.ts";
import { OwlError } from "../../errors/owl-error.ts";
import type { Flavor } from "../../sandbox/flavors.ts";
import type { SandboxUse } from "../../sandbox/sandboxes.ts";
import { runCode, codeFailure, pictureBlocks } from "./code.ts";
import { networkHint, networkNote } from "../network-note.ts";
import type { Outcome, SandboxCall, ToolServices } from "../sandbox-tool.ts";
import { inSandbox, sessionFacts, sessionIdOf } from "../serve-sandbox-tool.ts";
import { shellFailure } from "./shell.ts";

/** The schemas are those of the microsandbox server, word for word: its clients compare them. */
const TEMPLATE = { type: "string", description: "Sandbox template", enum: ["python", "node"], default: "python" };
const SESSION_ID = { type: "string", description: "Optional session ID" };
const FLAVOR = { type: "string", enum: ["small", "medium", "large"], default: "small" };

const CODE_INPUT: JsonSchema = {
  type: "object",
  properties: {
    code: { type: "string", description: "Code to execute" },
    template: TEMPLATE,
    session_id: SESSION_ID,
    flavor: FLAVOR,
  },
  required: ["code"],
};

const COMMAND_INPUT: JsonSchema = {
  type: "object",
  properties: {
    command: { type: "string", description: "Command to execute" },
    template: TEMPLATE,
    session_id: SESSION_ID,
    flavor: FLAVOR,
  },
  required: ["command"],
};

/** What the dialect puts beside `content`. */
interface ExecutionResult extends ToolResult {
  readonly session_id: string;
  readonly execution_time_ms: number;
  readonly session_created: boolean;
}

interface Execution {
  readonly stdout: string;
  readonly stderr: string;
  readonly durationMs: number;
  readonly failure: Outcome["failure"];
  readonly blocks: readonly ContentBlock[];
}

export function executeCode(services: ToolServices): HandlerDefinition {
  return execution(services, {
    name: "execute_code",
    title: "Execute code",
    description: `Execute code in a sandbox with automatic session management. The first block of the result is what the code printed. Variables persist between calls with the same session_id; without one, the sandbox of this connection is used and made if there is none. ${networkNote(services.limits.network)}`,
    input: CODE_INPUT,
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

export function executeCommand(services: ToolServices): HandlerDefinition {
  return execution(services, {
    name: "execute_command",
    title: "Execute a command",
    description: `Execute a shell command in a sandbox with automatic session management. The first block of the result is its stdout. Files in the workspace persist between calls with the same session_id. ${networkNote(services.limits.network)}`,
    input: COMMAND_INPUT,
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

interface ExecutionTool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input: JsonSchema;
  execute(call: SandboxCall, input: Readonly<Record<string, unknown>>): Promise<Execution>;
}

function execution(services: ToolServices, tool: ExecutionTool): HandlerDefinition {
  const { name, title, description, input: schema } = tool;
  return {
    name,
    title,
    description,
    effect: { readOnly: false, destructive: true, idempotent: false, openWorld: true },
    scope: "exec",
    input: schema,
    run: (value, context) => {
      const input = toRecord(value);
      const request = { template: templateOf(input), flavor: flavorOf(input) };
      return inSandbox(
        services,
        { context, sessionId: sessionIdOf(input), request, use: { tool: name, input } },
        async (call, sandboxUse) => {
          const { failure, blocks, ...value } = await tool.execute(call, input);
          call.recorder?.outcome({ value, blocks, ...(failure !== undefined && { failure }) });
          return toResult(name, sandboxUse, { failure, blocks, ...value });
        },
      );
    },
  };
}

/** stdout stands first and alone; what went wrong comes after it. */
function toResult(
  name: string,
  sandboxUse: SandboxUse,
  { stdout, stderr, durationMs, failure, blocks }: Execution,
): ExecutionResult {
  const facts = sessionFacts(sandboxUse);
  const content: ContentBlock[] = [{ type: "text", text: stdout }];
  if (stderr !== "") content.push({ type: "text", text: stderr });
  if (failure !== undefined) {
    const network = networkHint(`${failure.reason} ${stderr}`, sandboxUse.sandbox.plan.network.allow);
    const hint = network === undefined ? failure.hint : `${network} ${failure.hint}`;
    content.push({ type: "text", text: `${name} failed: ${failure.reason}\nhint: ${hint}` });
  }
  return {
    ...facts,
    content: [...content, ...blocks],
    isError: failure !== undefined,
    session_id: sandboxUse.sandbox.facts.id,
    execution_time_ms: Math.round(durationMs),
    session_created: sandboxUse.wasCreated,
  };
}

function toRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? Object.fromEntries(Object.entries(value)) : {};
}

function textOf(input: Readonly<Record<string, unknown>>, name: string): string {
  const value = input[name];
  return typeof value === "string" ? value : "";
}

/** Clients of the microsandbox SDK send them beside the command, in its schema or not; each is one word for the shell. */
function argumentsOf({ args = [] }: Readonly<Record<string, unknown>>): readonly string[] {
  const words = Array.isArray(args) ? args.filter((each): each is string => typeof each === "string") : [];
  if (!Array.isArray(args) || words.length < args.length || words.some((word) => word.includes("\0"))) {
    throw new OwlError("invalid_arguments", "args must be a list of strings without NUL", {
      hint: "give each argument as one string of a list, or write them into command",
    });
  }
  return words.map((word) => `'${word.replaceAll("'", "'\\''")}'`);
}

/** The schema has checked both already, and filled in their defaults. */
function templateOf({ template }: Readonly<Record<string, unknown>>): "python" | "node" {
  return template === "node" ? "node" : "python";
}

function flavorOf({ flavor }: Readonly<Record<string, unknown>>): Flavor {
  return flavor === "medium" || flavor === "large" ? flavor : "small";
}

const OPTIONAL_SESSION: JsonSchema = {
  type: "object",
  properties: { session_id: { type: "string", description: "Optional session ID" } },
};

const REQUIRED_SESSION: JsonSchema = {
  type: "object",
  properties: { session_id: { type: "string", description: "ID of the session to stop" } },
  required: ["session_id"],
};

export function getSessions({ sandboxes }: ToolServices): HandlerDefinition {
  const name = "get_sessions";
  return {
    name,
    title: "Get sessions",
    description: "Get information about your active sandbox sessions. Changes nothing.",
    effect: { readOnly: true, destructive: false, idempotent: true, openWorld: false },
    scope: "exec",
    input: OPTIONAL_SESSION,
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
      return { content: [{ type: "text", text: JSON.stringify({ sessions }) }], isError: false, sessions };
    },
  };
}

export function stopSession({ sandboxes }: ToolServices): HandlerDefinition {
  const name = "stop_session";
  return {
    name,
    title: "Stop a session",
    description: "Stop a sandbox session with everything that runs in it, and remove its files. This cannot be undone.",
    effect: { readOnly: false, destructive: true, idempotent: true, openWorld: false },
    scope: "exec",
    input: REQUIRED_SESSION,
    run: async (input, context) => {
      const { id } = await sandboxes.destroy(context, sessionIdOf(input));
      const text = JSON.stringify({ session_id: id, success: true });
      return { content: [{ type: "text", text }], isError: false, session_id: id, success: true };
    },
  };
}

export function getVolumePath({ volumes, limits }: ToolServices): HandlerDefinition {
  const name = "get_volume_path";
  return {
    name,
    title: "Get volume mappings",
    description: "Get the folders of the host that are visible in every sandbox, and where. Changes nothing.",
    effect: { readOnly: true, destructive: false, idempotent: true, openWorld: false },
    scope: "workspace",
    input: OPTIONAL_SESSION,
    run: async () => {
      const mappings = volumes.map(({ hostPath, guestPath, isReadOnly }) => ({
        host_path: hostPath,
        container_path: guestPath,
        read_only: isReadOnly,
      }));
      const facts = { volume_mappings: mappings, workspace: limits.workspacePath };
      return { content: [{ type: "text", text: JSON.stringify(facts) }], isError: false, ...facts };
    },
  };
}
