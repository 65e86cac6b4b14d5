import { z } from "zod";

/** What a field says about itself beyond its type. It travels with the schema, so that nothing is listed twice. */
export interface FieldFacts {
  /** Shown masked everywhere. */
  readonly secret?: true;
  /** Further environment variables that set this key, beside the derived `MCP_SERVER_…`. */
  readonly env?: readonly string[];
  /** Relative paths are resolved against the place they were written in. `pem`: PEM text, or the path of a file with it. */
  readonly path?: "file" | "glob" | "pem" | "program" | "volume";
}

export const fieldFacts: z.core.$ZodRegistry<FieldFacts> = z.registry<FieldFacts>();

// Longer delays overflow the 32-bit milliseconds of Node's timers and fire at once.
const MAX_TIMER_SECONDS = 2_147_483;
const MAX_MESSAGE_BYTES = 256 * 1024 * 1024;

export const seconds = (): z.ZodNumber => z.number().positive().max(MAX_TIMER_SECONDS);
export const count = (): z.ZodInt => z.int().min(1).max(1_000_000);
export const messageBytes = (): z.ZodInt => z.int().min(1024).max(MAX_MESSAGE_BYTES);
