import { z } from "zod";
import { MAX_TIMER_MS } from "./value-rules.ts";

/** Facts of a field beyond its type. They are registered with the schema, so that there is no second list. */
export interface FieldFacts {
  /** Its value is masked in all output. */
  readonly secret?: true;
  /** Environment variables that set this key, in addition to the derived `MCP_SERVER_…`. */
  readonly env?: readonly string[];
  /** Another path that sets this key, in the file and with `--set`. */
  readonly alias?: string;
  /**
   * Relative paths are resolved against the folder of the file, or the working directory for flags and variables.
   * `pem`: PEM text, or the path of a file with PEM text.
   */
  readonly path?: "file" | "glob" | "pem" | "program" | "volume";
}

export const fieldFacts: z.core.$ZodRegistry<FieldFacts> = z.registry<FieldFacts>();

const MAX_TIMER_SECONDS = Math.floor(MAX_TIMER_MS / 1000);
const MAX_MESSAGE_BYTES = 256 * 1024 * 1024;

export const seconds = (): z.ZodNumber => z.number().positive().max(MAX_TIMER_SECONDS);
export const count = (): z.ZodInt => z.int().min(1).max(1_000_000);
export const messageBytes = (): z.ZodInt => z.int().min(1024).max(MAX_MESSAGE_BYTES);
