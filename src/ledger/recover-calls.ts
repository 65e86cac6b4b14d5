import { existsSync, readdirSync, renameSync, rmSync, statSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { identifySelf, isSharerAlive } from "../processes/identity.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { LedgerKeys } from "./keys.ts";
import { COLUMNS, type Draft, type LedgerRow, type Value } from "./row.ts";
import {
  ENDING,
  ownerOf,
  readStarted,
  type Reserved,
  startedFolder,
  TAKEN,
  takenBy,
  takerOf,
} from "./started-lines.ts";
import type { LedgerStore } from "./store.ts";

/** A file of a process that cannot be looked up, and that nobody has touched for this long, is left by a dead one. */
const SILENCE_MS = 120_000;

export interface RecoverOptions {
  readonly dataFolder: string;
  readonly keys: LedgerKeys;
  readonly store: Pick<LedgerStore, "append" | "list">;
  readonly logger: Logger;
  /** The file of this process. */
  readonly own: string;
  /** Books what the calls had reserved. */
  readonly charge: (budgets: readonly string[], micros: number) => Promise<void>;
  /** What has its row and could not be booked: it is booked the next time. */
  readonly owed: Reserved[];
}

/** Makes rows of the calls that dead processes had begun and did not end. Says how many. */
export async function recoverCalls(options: RecoverOptions): Promise<number> {
  const folder = startedFolder(options.dataFolder);
  if (!existsSync(folder)) return 0;
  let count = 0;
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (path === options.own || !name.includes(ENDING)) continue;
    try {
      count += await recoverFile(options, path);
    } catch (error) {
      options.logger.error("calls of a server that has ended could not be recorded; it is tried again", { error });
    }
  }
  await pay(options);
  return count;
}

async function recoverFile(options: RecoverOptions, path: string): Promise<number> {
  const { keys, logger } = options;
  if (!isLeft(keys, path)) return 0;
  const taken = take(path);
  if (taken === undefined) return 0;
  const left = readStarted(keys, taken);
  if (left.foreign > 0)
    logger.error("a file of begun calls has lines that this server's key did not make; they are left out", {
      file: path,
      lines: left.foreign,
    });
  const missing = await withoutRows(options.store, left);
  if (missing.length > 0) await options.store.append(missing.map(({ draft }) => draft));
  options.owed.push(...missing.map(({ reserved }) => reserved).filter(({ micros }) => micros > 0));
  rmSync(taken, { force: true });
  if (missing.length > 0)
    logger.warning("calls of a server that has ended are recorded as unknown", { calls: missing.length });
  return missing.length;
}

async function pay({ owed, charge }: RecoverOptions): Promise<void> {
  for (let debt = owed[0]; debt !== undefined; debt = owed[0]) {
    await charge(debt.budgets, debt.micros);
    owed.shift();
  }
}

type Left = ReturnType<typeof readStarted>;

function isLeft(keys: LedgerKeys, path: string): boolean {
  if (path.endsWith(takenBy(identifySelf()))) return true;
  const owner = TAKEN.test(path) ? takerOf(path) : ownerOf(keys, path);
  const isAlive = owner === undefined ? undefined : isSharerAlive(owner);
  if (isAlive !== undefined) return !isAlive;
  return Date.now() - statSync(path).mtimeMs > SILENCE_MS;
}

/** Several servers may find the same file: the one whose rename succeeds has it. */
function take(path: string): string | undefined {
  const taken = `${path.replace(TAKEN, "")}${takenBy(identifySelf())}`;
  try {
    // In another container this time alone says that the file is being worked on.
    const now = new Date();
    utimesSync(path, now, now);
    if (taken !== path) renameSync(path, taken);
    return taken;
  } catch {
    // Another server was faster.
    return undefined;
  }
}

/** A process may be killed between a row and the line that says so: of calls that look alike, as many are missing as have no row. */
async function withoutRows(store: RecoverOptions["store"], { open, all }: Left): Promise<Left["open"]> {
  const missing: Left["open"][number][] = [];
  for (const facts of new Set(open.map(({ draft }) => factsOf(draft)))) {
    const calls = open.filter(({ draft }) => factsOf(draft) === facts);
    const [first] = calls;
    if (first === undefined) continue;
    const begun = all.filter((draft) => factsOf(draft) === facts).length;
    const rows = await rowsLike(store, first.draft, facts);
    missing.push(...calls.slice(0, Math.max(0, Math.min(calls.length, begun - rows))));
  }
  return missing;
}

const FACTS = ["time", "principal", "transport", "kind", "name", "called_as", "args", "trace_id", "count"] as const;

function factsOf(draft: Draft): string {
  return JSON.stringify(FACTS.map((name) => valueOf(draft, name)));
}

function valueOf(draft: Draft, name: (typeof COLUMNS)[number]): Value {
  // `seq` is no part of a draft.
  return draft[COLUMNS.indexOf(name) - 1] ?? null;
}

async function rowsLike(store: RecoverOptions["store"], draft: Draft, facts: string): Promise<number> {
  const time = Number(valueOf(draft, "time"));
  const rows = await store.list({ fromMs: time, toMs: time + 1 }, { limit: 1000 });
  return rows.filter((row: LedgerRow) => JSON.stringify(FACTS.map((name) => row[name])) === facts).length;
}
