import type { OnOutput } from "../../contract/guest.ts";
import * as z from "zod";
import type { ContentBlock } from "../capability/content.ts";
import type { Effect, PermissionScope } from "../capability/define.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { CallRecorder } from "../sandbox/sandbox-observer.ts";
import type { JsonObject } from "./fit-value.ts";
import type { ToolLimits } from "./tool-services.ts";

export type Toolset = "sandbox" | "code" | "shell" | "files" | "browser" | "browser-extra";

/** What a tool has to do its work in one sandbox. */
export interface SandboxCall {
  readonly sandbox: Sandbox;
  readonly limits: ToolLimits;
  readonly signal: AbortSignal;
  readonly onOutput: OnOutput;
  /** For people who look on. */
  readonly recorder?: CallRecorder | undefined;
}

/** What came of it. A `failure` is what the user's own code or request did; faults of ours are thrown. */
export interface Outcome {
  /** Key facts for the first line: `exit code 0 in 12 ms`. */
  readonly summary: string;
  readonly value: JsonObject;
  readonly blocks?: readonly ContentBlock[];
  readonly failure?: { readonly reason: string; readonly hint: string };
}

/** A tool that works in a sandbox, before it has a name on the wire: dialects give the same one other names. */
export interface SandboxTool {
  readonly toolset: Toolset;
  readonly title: string;
  readonly description: string;
  readonly effect: Effect;
  readonly scope: PermissionScope;
  /** Arguments that are paths in the sandbox, or lists of them. */
  readonly paths: readonly string[];
  readonly input: z.ZodObject;
  readonly output: z.ZodObject;
  run(call: SandboxCall, input: unknown): Promise<Outcome>;
}

interface Definition<I extends z.ZodRawShape> {
  readonly toolset: Toolset;
  readonly title: string;
  readonly description: string;
  readonly effect: Effect;
  readonly scope: PermissionScope;
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

/** Every result says which sandbox it is about. */
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

/** Every argument of a tool of ours that is a path in the sandbox has one of these names. */
const PATH_ARGUMENTS: readonly string[] = ["path", "paths", "cwd"];

/** Adds what all of them have in common: the session id that goes in, and what is said about it in the result. */
export function defineSandboxTool<I extends z.ZodRawShape>(definition: Definition<I>): SandboxTool {
  const { toolset, title, description, effect, scope } = definition;
  const own = z.object(definition.input);
  const input = z.strictObject({ ...definition.input, session_id: SESSION_ID });
  return {
    toolset,
    title,
    description,
    effect,
    scope,
    paths: PATH_ARGUMENTS.filter((name) => name in definition.input),
    input,
    output: z.object({ ...definition.output, ...sessionShape }),
    run: (call, value) => definition.run(call, own.parse(value)),
  };
}
