import type { ToolResult } from "../capabilities/content.ts";
import type { CallContext } from "../capabilities/context.ts";
import { toOwlError } from "../errors/owl-error.ts";
import type { Logger } from "../telemetry/logger.ts";

export interface LoggedCall {
  readonly name: string;
  readonly input: unknown;
  readonly context: CallContext;
  readonly logger: Logger;
}

/** Texts that say what a call is about and never hold a secret. */
const SHOWN = new Set(["path", "language", "template", "flavor", "mode", "encoding", "glob", "signal", "process_id"]);

/** Writes one line for each call: the tool, how long it took, how it ended, and its parameters without their contents. */
export async function logCall<T extends ToolResult>(
  { name, input, context, logger }: LoggedCall,
  run: () => Promise<T>,
): Promise<T> {
  const startedAtMs = performance.now();
  const write = (outcome: string): void =>
    logger.info("tool call", {
      tool: name,
      duration_ms: Math.round(performance.now() - startedAtMs),
      outcome,
      parameters: redacted(input),
      principal: context.principal.id,
      trace_id: context.traceId,
    });
  try {
    const result = await run();
    write(result.isError === true ? "failed" : "ok");
    return result;
  } catch (error) {
    write(toOwlError(error).kind);
    throw error;
  }
}

function redacted(input: unknown): Record<string, unknown> {
  if (typeof input !== "object" || input === null) return {};
  return Object.fromEntries(Object.entries(input).map(([name, value]) => [name, shown(name, value)]));
}

function shown(name: string, value: unknown): unknown {
  if (typeof value === "number" || typeof value === "boolean") return value;
  if (typeof value !== "string") return `[${typeof value}]`;
  return SHOWN.has(name) ? value.slice(0, 200) : `[${value.length} characters]`;
}
