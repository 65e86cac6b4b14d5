import type { GuestResult } from "../../contract/guest.ts";
import * as z from "zod";
import type { JsonObject } from "./fit-value.ts";
import { sandboxUri } from "./workspace-files.ts";

type BoundedText = GuestResult<"shell.exec">["stdout"];

/** How many of the result's characters stdout and stderr may each use; the rest is for other members and for escapes. */
export function outputChars(maxResultChars: number): number {
  return Math.floor(maxResultChars * 0.35);
}

const cutShape = (name: string) => ({
  [`${name}_total_chars`]: z.number().optional().describe(`Set when ${name} was cut: how long it is in full.`),
  [`${name}_uri`]: z
    .string()
    .optional()
    .describe(`Set when ${name} was cut: the whole as a resource, read in pages with resources/read.`),
  [`${name}_kept_bytes`]: z.number().optional().describe(`Set when not even the resource is the whole: what it has.`),
});

export const outputShape = {
  stdout: z.string(),
  stderr: z.string(),
  ...cutShape("stdout"),
  ...cutShape("stderr"),
};

export function outputFields(
  sandboxId: string,
  { stdout, stderr }: { readonly stdout: BoundedText; readonly stderr: BoundedText },
): JsonObject {
  return { ...fields("stdout", stdout, sandboxId), ...fields("stderr", stderr, sandboxId) };
}

function fields(name: string, { text, totalChars, file, keptBytes }: BoundedText, sandboxId: string): JsonObject {
  if (file === undefined) return { [name]: text };
  return {
    [name]: text,
    [`${name}_total_chars`]: totalChars,
    [`${name}_uri`]: sandboxUri(sandboxId, file),
    ...(keptBytes !== undefined && { [`${name}_kept_bytes`]: keptBytes }),
  };
}

export const processesShape = z
  .array(z.object({ pid: z.number(), command: z.string() }))
  .optional()
  .describe("Processes that were started and still run.");

export function leftRunning(processes: GuestResult<"shell.exec">["leftRunning"]): JsonObject {
  return processes.length === 0 ? {} : { left_running: processes };
}
