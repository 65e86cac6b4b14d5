import { z } from "zod";

const callCountSchema = z.strictObject({
  key: z.string(),
  day: z.string().regex(/^\d{1,6}-\d\d-\d\d$/),
  at: z.int(),
  n: z.int().nonnegative(),
});

const spentCountSchema = z.strictObject({
  key: z.string(),
  month: z.string().regex(/^\d{1,6}-\d\d$/),
  micros: z.number().nonnegative(),
});

const lineSchema = z.strictObject({
  number: z.int().positive(),
  calls: z.array(callCountSchema),
  spent: z.array(spentCountSchema),
});

/** Calls of one key in one millisecond of the steady clock, and the day that they belong to. */
export type CallCount = z.infer<typeof callCountSchema>;

/** What was spent under one key in one month. */
export type SpentCount = z.infer<typeof spentCountSchema>;

/** What is to be added to the tables. */
export interface Counts {
  readonly calls: readonly CallCount[];
  readonly spent: readonly SpentCount[];
}

/** Counts as they stand in a journal. Numbers rise, and each is given once in the life of a process. */
export interface CountLine extends Counts {
  readonly number: number;
}

/** So much is parsed at a time, whoever wrote it. */
export const MAX_LINE_CHARS = 1 << 20;

export function toText(line: CountLine): string {
  return `${JSON.stringify(line)}\n`;
}

/** The lines up to the first that is torn or not ours: nothing after it can be trusted. */
export function linesOf(text: string): CountLine[] {
  const lines: CountLine[] = [];
  let last = 0;
  for (let start = 0, end = text.indexOf("\n"); end >= 0; start = end + 1, end = text.indexOf("\n", start)) {
    const line = end - start < MAX_LINE_CHARS ? lineOf(text.slice(start, end)) : undefined;
    if (line === undefined || line.number <= last) break;
    lines.push(line);
    last = line.number;
  }
  return lines;
}

function lineOf(text: string): CountLine | undefined {
  try {
    return lineSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** Sums by key, and then by day, month or moment: one for each row of a table. */
export type Sums<Time> = ReadonlyMap<string, ReadonlyMap<Time, number>>;

/** What belongs into one row is written once, however many lines it came in. */
export function sumsOf(all: readonly Counts[]): {
  readonly moments: Sums<number>;
  readonly days: Sums<string>;
  readonly months: Sums<string>;
} {
  const moments = new Map<string, Map<number, number>>();
  const days = new Map<string, Map<string, number>>();
  const months = new Map<string, Map<string, number>>();
  for (const { calls, spent } of all) {
    for (const { key, day, at, n } of calls) {
      addTo(moments, key, at, n);
      addTo(days, key, day, n);
    }
    for (const { key, month, micros } of spent) addTo(months, key, month, micros);
  }
  return { moments, days, months };
}

function addTo<Time>(sums: Map<string, Map<Time, number>>, key: string, time: Time, n: number): void {
  let ofKey = sums.get(key);
  if (ofKey === undefined) sums.set(key, (ofKey = new Map<Time, number>()));
  ofKey.set(time, (ofKey.get(time) ?? 0) + n);
}
