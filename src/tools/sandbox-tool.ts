import * as z from "zod";
import type { ContentBlock } from "../capability/content.ts";
import type { Effect, PermissionScope } from "../capability/define.ts";
import type { VolumeSetting } from "../config/volume.ts";
import type { OnOutput } from "../../contract/guest.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { Sandboxes } from "../sandbox/sandboxes.ts";
import type { Templates } from "../sandbox/templates.ts";
import type { SandboxObserver, CallRecorder } from "../sandbox/sandbox-observer.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { JsonObject } from "./fit-value.ts";

export type Toolset = "sandbox" | "code" | "shell" | "files" | "browser" | "browser-extra";

/** Reading a large file or searching a large tree may take this long. */
export const FILE_TIMEOUT_MS = 120_000;

/** Values of the configuration that tools put into their descriptions and enforce. */
export interface ToolLimits {
  readonly maxResultChars: number;
  /** Timeout for code and commands when the call sets none. */
  readonly defaultTimeoutSeconds: number;
  /** Below the tool's own timeout, so that the inner one ends first. */
  readonly maxTimeoutSeconds: number;
  readonly idleTimeoutSeconds: number;
  readonly maxAgeSeconds: number;
  readonly workspacePath: string;
  /** Hosts that a sandbox of the default template can reach. */
  readonly network: readonly string[];
  /** The same for templates with an allowlist of their own. */
  readonly networkOfTemplates: Readonly<Record<string, readonly string[]>>;
}

export interface ToolServices {
  readonly sandboxes: Sandboxes;
  readonly templates: Templates;
  readonly limits: ToolLimits;
  readonly volumes: readonly VolumeSetting[];
  readonly logger: Logger;
  /** Shows the use of sandboxes to operators. */
  readonly sandboxObserver?: SandboxObserver | undefined;
}

/** What a tool gets to do its work in one sandbox. */
export interface SandboxCall {
  readonly sandbox: Sandbox;
  readonly limits: ToolLimits;
  readonly signal: AbortSignal;
  readonly onOutput: OnOutput;
  readonly recorder?: CallRecorder | undefined;
}

/** The outcome of a call. A `failure` is caused by the caller's code or request; internal errors are thrown. */
export interface Outcome {
  /** Key facts for the first line: `exit code 0 in 12 ms`. */
  readonly summary: string;
  readonly value: JsonObject;
  readonly blocks?: readonly ContentBlock[];
  readonly failure?: { readonly reason: string; readonly hint: string };
}

interface ToolFacts {
  readonly name: string;
  /** The name in the open-sandbox dialect, if that dialect has the tool. */
  readonly openSandboxName?: string;
  readonly toolset: Toolset;
  readonly title: string;
  readonly description: string;
  readonly effect: Effect;
  readonly scope: PermissionScope;
}

/** A tool that works in a sandbox, without its connection to the server: `serveSandboxTool` adds that. */
export interface SandboxTool extends ToolFacts {
  /** Arguments that are paths in the sandbox, or lists of them. */
  readonly paths: readonly string[];
  readonly input: z.ZodObject;
  readonly output: z.ZodObject;
  run(call: SandboxCall, input: unknown): Promise<Outcome>;
}

interface SandboxToolDefinition<I extends z.ZodRawShape> extends ToolFacts {
  readonly input: I;
  readonly output: z.ZodRawShape;
  run(call: SandboxCall, input: z.output<z.ZodObject<I>>): Promise<Outcome>;
}

const SESSION_ID = z
  .string()
  .min(1)
  .max(128)
  .optional()
  .describe("The sandbox to use, as another call returned it. Without it: the default sandbox of this session.");

/** Members of every result that name its sandbox. */
export const sessionShape = {
  session_id: z.string().describe("Pass it to later calls to use the same sandbox."),
  session_created: z.boolean().describe("Whether this call made the sandbox: then it was empty."),
  sandbox_restarted: z
    .boolean()
    .optional()
    .describe("The sandbox had to be started again: files are there, variables and processes are gone."),
  is_truncated: z.boolean().optional().describe("Something was left out to keep the result short."),
  note: z.string().optional().describe("What you should know about this result."),
};

/** Every argument of a built-in tool that is a path in the sandbox has one of these names. */
const PATH_ARGUMENTS: readonly string[] = ["path", "paths", "cwd"];

/** Adds the arguments and result members that all sandbox tools have in common. */
export function defineSandboxTool<I extends z.ZodRawShape>(definition: SandboxToolDefinition<I>): SandboxTool {
  const own = z.object(definition.input);
  return {
    ...definition,
    paths: PATH_ARGUMENTS.filter((name) => name in definition.input),
    input: z.strictObject({ ...definition.input, session_id: SESSION_ID }),
    output: z.object({ ...definition.output, ...sessionShape }),
    run: (call, value) => definition.run(call, own.parse(value)),
  };
}

/** `timeout_seconds` of code and commands. */
export function timeoutField({ defaultTimeoutSeconds, maxTimeoutSeconds }: ToolLimits) {
  return z
    .number()
    .positive()
    .max(maxTimeoutSeconds)
    .default(Math.min(defaultTimeoutSeconds, maxTimeoutSeconds))
    .describe("After this it is stopped, with everything it started.");
}

type CamelCase<S extends string> = S extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : S;

type GuestParamsOf<T> = { [K in keyof T as CamelCase<K & string>]: Exclude<T[K], undefined> };

/** Arguments of a tool (`start_line`) as parameters of a guest method (`startLine`), without those that are undefined. */
export function toParams<T extends object>(args: T): GuestParamsOf<T> {
  const entries: readonly [string, unknown][] = Object.entries(args);
  const given = entries.filter(([, value]) => value !== undefined);
  const named = given.map(([name, value]) => [
    name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase()),
    value,
  ]);
  // oxlint-disable-next-line typescript/consistent-type-assertions -- GuestParamsOf says the same as these lines
  return Object.fromEntries(named) as GuestParamsOf<T>;
}
