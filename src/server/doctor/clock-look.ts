import { execFile } from "node:child_process";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { type DoctorCheck, type DoctorLook, failed, ok, warning } from "./check.ts";

const DAY_MS = 86_400_000;
/** A time service corrects in smaller steps. */
const TOLERANCE_MS = 60_000;
const ASK_TIMEOUT_MS = 5000;
const RECORDS = ["ledger.db", "ledger.db-wal"];

const NAMED = { category: "machine", name: "clock" } as const;
const FIX = "set the clock, best with a time service: timedatectl set-ntp true";

/** What there is to hold a clock against without asking anybody. */
export interface ClockFacts {
  readonly nowMs: number;
  readonly installedAtMs: number;
  /** When the server wrote into its data folder for the last time. */
  readonly recordedAtMs?: number | undefined;
  /** Whether a time service keeps the clock; undefined: nobody knows. */
  readonly isKept?: boolean | undefined;
}

/** @param dataFolder Where the server keeps its records; undefined while it is not known. */
export function clockLook(dataFolder: string | undefined): DoctorLook {
  return {
    async look() {
      // Files from a registry say that they were written in 1985; when they came to this disk, nobody can set.
      const { ctimeMs } = await stat(new URL("../../../package.json", import.meta.url));
      const recordedAtMs = dataFolder === undefined ? undefined : await newestRecord(dataFolder);
      return [clockCheck({ nowMs: Date.now(), installedAtMs: ctimeMs, recordedAtMs, isKept: await isKept() })];
    },
  };
}

/** A wrong clock gives wrong times to records, ends budgets early or late, and refuses good tokens. */
export function clockCheck({ nowMs, installedAtMs, recordedAtMs, isKept }: ClockFacts): DoctorCheck {
  const says = `the clock says ${new Date(nowMs).toISOString()}`;
  if (nowMs < installedAtMs - DAY_MS) return failed(NAMED, `${says}, which is before this program was installed`, FIX);
  if (recordedAtMs !== undefined && nowMs < recordedAtMs - TOLERANCE_MS) {
    const written = new Date(recordedAtMs).toISOString();
    return failed(NAMED, `${says}, and the server's records were written at ${written}`, FIX);
  }
  if (isKept === false) return warning(NAMED, `${says}; no time service has set it`, FIX);
  return ok(NAMED, isKept === true ? `${says}, kept by a time service` : says);
}

async function newestRecord(folder: string): Promise<number | undefined> {
  const found = await Promise.all(RECORDS.map((name) => stat(join(folder, name)).catch(() => undefined)));
  const times = found.flatMap((file) => (file === undefined ? [] : [file.mtimeMs]));
  return times.length === 0 ? undefined : Math.max(...times);
}

/** The kernel knows, and systemd says it; without systemd nobody can be asked. */
async function isKept(): Promise<boolean | undefined> {
  const args = ["show", "--property=NTPSynchronized", "--value"];
  const options = { timeout: ASK_TIMEOUT_MS, encoding: "utf8" } as const;
  const answer = await promisify(execFile)("timedatectl", args, options).catch(() => undefined);
  const word = answer?.stdout.trim();
  return word === "yes" ? true : word === "no" ? false : undefined;
}
