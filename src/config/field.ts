import { z } from "zod";
import { MAX_TIMER_MS } from "./value-rules.ts";

/** What a field says about itself beyond its type. It travels with the schema, so that nothing is listed twice. */
export interface FieldFacts {
  /** Shown masked everywhere. */
  readonly secret?: true;
  /** Further environment variables that set this key, beside the derived `MCP_SERVER_…`. */
  readonly env?: readonly string[];
  /** Another path that sets this key, in the file and with `--set`. */
  readonly alias?: string;
  /** Relative paths are resolved against the place they were written in. `pem`: PEM text, or the path of a file with it. */
  readonly path?: "file" | "glob" | "pem" | "program" | "volume";
}

export const fieldFacts: z.core.$ZodRegistry<FieldFacts> = z.registry<FieldFacts>();

const MAX_TIMER_SECONDS = Math.floor(MAX_TIMER_MS / 1000);
const MAX_MESSAGE_BYTES = 256 * 1024 * 1024;

export const seconds = (): z.ZodNumber => z.number().positive().max(MAX_TIMER_SECONDS);
export const count = (): z.ZodInt => z.int().min(1).max(1_000_000);
export const messageBytes = (): z.ZodInt => z.int().min(1024).max(MAX_MESSAGE_BYTES);
