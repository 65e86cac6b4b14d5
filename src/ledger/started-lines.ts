import { closeSync, constants, openSync, readFileSync, readSync } from "node:fs";
import { basename, join } from "node:path";
import * as z from "zod";
import { linkHash } from "./chain.ts";
import type { LedgerKeys } from "./keys.ts";
import { COLUMNS, type Draft } from "./row.ts";

/** Of the files with calls that have begun. */
export const ENDING = ".calls";
const HEADER_BYTES = 1024;
/** Behind the name of a file of which a server makes rows: who that is. */
export const TAKEN = /\.taken-[\w-]+$/;

export function startedFolder(dataFolder: string): string {
  return join(dataFolder, "calls");
}

const processSchema = z.strictObject({ pid: z.int(), startedAt: z.string(), namespace: z.string() });
const reservedSchema = z.strictObject({ micros: z.int().nonnegative(), budgets: z.array(z.string()) });
const draftSchema = z
  .array(z.union([z.string(), z.number(), z.null()]))
  .refine((values) => values.length === COLUMNS.length - 1);

const lineSchema = z.union([
  z.strictObject({ call: z.int(), draft: draftSchema, reserved: reservedSchema }),
  z.strictObject({ ended: z.int() }),
  z.strictObject({ settled: z.int(), micros: z.int() }),
  z.strictObject({ process: processSchema }),
]);

export type StartedLine =
  | { readonly call: number; readonly draft: Draft; readonly reserved: z.infer<typeof reservedSchema> | Reserved }
  | { readonly ended: number }
  | { readonly settled: number; readonly micros: number }
  | { readonly process: z.infer<typeof processSchema> };

export interface Reserved {
  readonly micros: number;
  readonly budgets: readonly string[];
}

/** What a process left in its file. */
export interface LeftCalls {
  readonly process: z.infer<typeof processSchema> | undefined;
  /** Calls that begun and did not end, as far as the file says. */
  readonly open: readonly { readonly draft: Draft; readonly reserved: Reserved }[];
  /** All calls in the file, ended ones too. */
  readonly all: readonly Draft[];
  /** Lines that this key did not make. */
  readonly foreign: number;
}

export function takenBy(process: z.infer<typeof processSchema>): string {
  return `.taken-${Buffer.from(JSON.stringify(process)).toString("base64url")}`;
}

/** Nothing where the name does not say it. */
export function takerOf(path: string): LeftCalls["process"] {
  const text = TAKEN.exec(path)?.[0].replace(".taken-", "") ?? "";
  try {
    return processSchema.safeParse(JSON.parse(Buffer.from(text, "base64url").toString())).data;
  } catch {
    // Its time says whether a server still works on it.
    return undefined;
  }
}

/** The MAC is over the file's name too, so that no line can be carried to another file. */
export function sealLine(keys: LedgerKeys, path: string, line: StartedLine): string {
  const text = JSON.stringify(line);
  return `${macOf(keys, path, text)} ${text}\n`;
}

function macOf({ chainKey }: LedgerKeys, path: string, text: string): string {
  return linkHash(chainKey, `started ${basename(path).replace(TAKEN, "")}`, text);
}

/** The last line may be half written: its call never began. */
export function readStarted(keys: LedgerKeys, path: string): LeftCalls {
  const open = new Map<number, LeftCalls["open"][number]>();
  const all: Draft[] = [];
  let process: LeftCalls["process"];
  let foreign = 0;
  for (const text of readFileSync(path, "utf8").split("\n").slice(0, -1)) {
    const line = parseLine(keys, path, text);
    if (line === undefined) foreign += 1;
    else if ("process" in line) process = line.process;
    else if ("ended" in line) open.delete(line.ended);
    else if ("settled" in line) settle(open, line);
    else {
      open.set(line.call, line);
      all.push(line.draft);
    }
  }
  return { process, open: [...open.values()], all, foreign };
}

/** Its cost is booked, or was about to be when the process ended: nobody books it again. */
function settle(
  open: Map<number, LeftCalls["open"][number]>,
  { settled, micros }: { readonly settled: number; readonly micros: number },
): void {
  const call = open.get(settled);
  if (call === undefined) return;
  open.set(settled, settledAs(call.draft, micros));
}

/** A call whose cost is known, and is not to be booked any more. */
export function settledAs(draft: Draft, micros: number): LeftCalls["open"][number] {
  return { draft: draft.with(COLUMNS.indexOf("cost_micros") - 1, micros), reserved: { micros: 0, budgets: [] } };
}

/** The process that writes the file, by its first line; nothing where that is not whole. */
export function ownerOf(keys: LedgerKeys, path: string): LeftCalls["process"] {
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const bytes = Buffer.alloc(HEADER_BYTES);
    const text = bytes.toString("utf8", 0, readSync(file, bytes, 0, HEADER_BYTES, 0));
    const end = text.indexOf("\n");
    const line = end < 0 ? undefined : parseLine(keys, path, text.slice(0, end));
    return line !== undefined && "process" in line ? line.process : undefined;
  } finally {
    closeSync(file);
  }
}

function parseLine(keys: LedgerKeys, path: string, line: string): z.infer<typeof lineSchema> | undefined {
  const space = line.indexOf(" ");
  const text = line.slice(space + 1);
  if (space < 0 || line.slice(0, space) !== macOf(keys, path, text)) return undefined;
  return lineSchema.safeParse(JSON.parse(text)).data;
}
