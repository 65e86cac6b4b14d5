import { execFileSync } from "node:child_process";
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import Database from "libsql";
import { expect, onTestFinished, test, vi } from "vitest";
import { OwlError } from "../../../../src/errors/owl-error.ts";
import type { Ledger } from "../../../../src/governance/ledger/ledger.ts";
import { openStoreAndLedger } from "../../../../src/governance/store/open-governance-store.ts";
import { openStore } from "../../../../src/governance/ledger/open-store.ts";
import { SILENT_LOGGER } from "../../../../src/telemetry/logger.ts";
import { entry } from "./ledger-entry.ts";
import { appendMany, dataFolder, ledgerConfig, openTestLedger } from "./ledger-fixture.ts";

const isRoot = process.getuid?.() === 0;

/** A file system of its own, so that it can be full or read-only for real. */
function smallDisk(megabytes: number): string {
  const folder = join(dataFolder(), "disk");
  mkdirSync(folder);
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m`, "owlclaw-test", folder]);
  onTestFinished(() => void execFileSync("umount", ["-l", folder]));
  return folder;
}

/** The library keeps a file open until the statements on it are collected. */
async function collectGarbage(): Promise<void> {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc()");
  await setImmediate();
}

/** Empty for one that is closed meanwhile, such as that of the listing itself. */
function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

async function refusal(ledger: Ledger): Promise<OwlError> {
  const error: unknown = await ledger.append(entry()).then(
    () => new Error("it was written"),
    (thrown: unknown) => thrown,
  );
  if (error instanceof OwlError) return error;
  throw error;
}

test("a full disk refuses at once and says so, and goes on when there is room again", async (context) => {
  if (!isRoot) context.skip("only root can mount a small disk");
  const disk = smallDisk(4);
  const { ledger, log } = await openTestLedger(disk);
  await appendMany(ledger, 10);
  const filler = join(disk, "filler");
  try {
    writeFileSync(filler, Buffer.alloc(8 * 1024 * 1024));
  } catch {
    // It is full: as wanted.
  }
  let acknowledged = 10;
  const written = (): void => void (acknowledged += 1);
  const errors: OwlError[] = [];
  while (errors.length === 0) await ledger.append(entry()).then(written, (thrown: OwlError) => errors.push(thrown));
  const [error] = errors;
  expect(error).toMatchObject({ kind: "store_unavailable", retryable: true });
  expect(error?.message).toContain("the disk is full");
  expect(ledger.isHealthy).toBe(false);
  await refusal(ledger);
  expect(log.filter(({ level }) => level === "error")).toHaveLength(1);
  rmSync(filler);
  await appendMany(ledger, 5);
  expect(ledger.isHealthy).toBe(true);
  expect(await ledger.reader.verify({})).toMatchObject({ isIntact: true, rows: acknowledged + 5 });
});

test("a disk that has room again is found out without a call, and not before", async (context) => {
  if (!isRoot) context.skip("only root can mount a small disk");
  const disk = smallDisk(4);
  const { ledger } = await openTestLedger(disk);
  let rows = (await appendMany(ledger, 10)).length;
  const { store } = await openStore({ config: ledgerConfig(), dataFolder: disk });
  onTestFinished(() => store.close());
  await store.append([]);
  const filler = join(disk, "filler");
  try {
    writeFileSync(filler, Buffer.alloc(8 * 1024 * 1024));
  } catch {
    // It is full: as wanted.
  }
  const written = (): void => void (rows += 1);
  while (ledger.isHealthy) await ledger.append(entry()).then(written, () => undefined);
  await expect(store.append([])).rejects.toMatchObject({ kind: "store_unavailable" });
  rmSync(filler);
  await vi.waitFor(() => expect(ledger.isHealthy).toBe(true), { timeout: 30_000, interval: 20 });
  expect(await ledger.reader.verify({})).toMatchObject({ isIntact: true, rows });
});

test("a ledger that cannot be written is tried again until it is closed, and not while it is well", async () => {
  const folder = dataFolder();
  const { ledger } = await openStoreAndLedger({ config: ledgerConfig(), dataFolder: folder, logger: SILENT_LOGGER });
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  await appendMany(ledger, 1);
  expect(vi.getTimerCount()).toBe(0);
  renameSync(join(folder, "ledger.db"), join(folder, "away.db"));
  await refusal(ledger);
  expect(vi.getTimerCount()).toBe(1);
  await ledger.close();
  expect(vi.getTimerCount()).toBe(0);
});

/** A disk that takes every write, and fails when it must bring them to what it stands on. */
function thinDisk(folder: string): string {
  const image = join(folder, "image");
  const mountPoint = join(folder, "thin");
  mkdirSync(mountPoint);
  writeFileSync(image, "");
  truncateSync(image, 64 * 1024 * 1024);
  execFileSync("mkfs.ext4", ["-q", "-O", "^has_journal", "-E", "nodiscard", image]);
  execFileSync("mount", ["-o", "loop,errors=continue", image, mountPoint]);
  onTestFinished(() => void execFileSync("umount", ["-l", mountPoint]));
  return mountPoint;
}

test("what the disk took and could not keep is no record, and nothing is built on it", async (context) => {
  if (!isRoot) context.skip("only root can mount a small disk");
  const below = smallDisk(24);
  const disk = thinDisk(below);
  const { ledger } = await openTestLedger(disk);
  await appendMany(ledger, 10);
  const filler = join(below, "filler");
  try {
    writeFileSync(filler, Buffer.alloc(32 * 1024 * 1024));
  } catch {
    // It is full: as wanted.
  }
  let acknowledged = 10;
  const written = (): void => void (acknowledged += 1);
  const errors: OwlError[] = [];
  while (errors.length === 0) await ledger.append(entry()).then(written, (thrown: OwlError) => errors.push(thrown));
  expect(errors[0]).toMatchObject({ kind: "store_unavailable", retryable: true });
  expect(ledger.isHealthy).toBe(false);
  rmSync(filler);
  while (errors.length > 0)
    await ledger.append(entry()).then(
      () => void (errors.length = 0),
      () => undefined,
    );
  await appendMany(ledger, 5);
  expect(ledger.isHealthy).toBe(true);
  const report = await ledger.reader.verify({});
  expect(report).toMatchObject({ isIntact: true });
  // The row that nobody was told of may be there; none that somebody was told of is missing.
  expect(report.rows).toBeGreaterThanOrEqual(acknowledged + 6);
});

test("after a failure the log that is synced is the one that is written, not one that is gone", async (context) => {
  if (!isRoot) context.skip("only root can mount a small disk");
  const disk = smallDisk(4);
  const { ledger } = await openTestLedger(disk);
  await appendMany(ledger, 10);
  const filler = join(disk, "filler");
  try {
    writeFileSync(filler, Buffer.alloc(8 * 1024 * 1024));
  } catch {
    // It is full: as wanted.
  }
  while (ledger.isHealthy) await ledger.append(entry()).catch(() => undefined);
  rmSync(filler);
  // The old connection ends here, and takes its log with it.
  await collectGarbage();
  await appendMany(ledger, 1);
  const open = readdirSync("/proc/self/fd").map((fd) => linkOf(`/proc/self/fd/${fd}`));
  expect(open.filter((file) => file.startsWith(disk) && file.endsWith("(deleted)"))).toEqual([]);
});

test("a read-only disk refuses to start, and does no harm", async (context) => {
  if (!isRoot) context.skip("only root can mount a small disk");
  const disk = smallDisk(16);
  const { ledger } = await openTestLedger(disk);
  await appendMany(ledger, 3);
  await ledger.close();
  await collectGarbage();
  execFileSync("mount", ["-o", "remount,ro", disk]);
  expect(await openTestLedger(disk).catch((error: unknown) => error)).toMatchObject({
    kind: "store_unavailable",
    hint: expect.stringContaining("right to write"),
  });
  execFileSync("mount", ["-o", "remount,rw", disk]);
  const { ledger: again } = await openTestLedger(disk);
  await appendMany(again, 2);
  expect(await again.reader.verify({})).toMatchObject({ isIntact: true, rows: 6 });
});

test("a removed file refuses until it is back, and never begins anew in silence", async () => {
  const folder = dataFolder();
  const { ledger } = await openTestLedger(folder);
  await appendMany(ledger, 5);
  const path = join(folder, "ledger.db");
  for (const end of ["", "-wal", "-shm"]) renameSync(`${path}${end}`, join(folder, `away${end}`));
  expect(await refusal(ledger)).toMatchObject({ kind: "store_unavailable" });
  expect((await refusal(ledger)).message).toContain("was removed or replaced");
  for (const end of ["", "-wal", "-shm"]) renameSync(join(folder, `away${end}`), `${path}${end}`);
  expect(await ledger.append(entry())).toMatchObject({ seq: 6 });
  expect(await ledger.reader.verify({})).toMatchObject({ isIntact: true, rows: 6 });
});

test("a file replaced by an older copy is refused: rows that were acknowledged are missing", async () => {
  const folder = dataFolder();
  const path = join(folder, "ledger.db");
  const first = await openTestLedger(folder);
  await appendMany(first.ledger, 5);
  await first.ledger.close();
  const older = readFileSync(path);
  const { ledger } = await openTestLedger(folder);
  await appendMany(ledger, 5);
  for (const end of ["", "-wal", "-shm"]) rmSync(`${path}${end}`, { force: true });
  writeFileSync(path, older);
  await refusal(ledger);
  expect((await refusal(ledger)).message).toContain("ends with row 6, and row 11 was written");
});

test("a damaged file refuses to start and says what to do", async () => {
  const folder = dataFolder();
  const { ledger } = await openTestLedger(folder);
  await appendMany(ledger, 50);
  await ledger.close();
  writeFileSync(join(folder, "ledger.db"), Buffer.alloc(65_536, 0x5a));
  const error = await openTestLedger(folder).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ kind: "store_unavailable", hint: expect.stringContaining("ledger verify") });
  expect(String(error)).toContain("the file is damaged");
});

test("a lost key is not made anew beside rows that it would not fit", async () => {
  const folder = dataFolder();
  const { ledger } = await openTestLedger(folder);
  await appendMany(ledger, 2);
  await ledger.close();
  rmSync(join(folder, "keys", "ledger-chain.key"));
  const error = await openTestLedger(folder).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ kind: "store_unavailable", retryable: false });
  expect(String(error)).toContain("ledger-chain.key");
});

test("a ledger of a newer version is refused, not migrated back", async () => {
  const folder = dataFolder();
  const { ledger } = await openTestLedger(folder);
  await ledger.close();
  const db = new Database(join(folder, "ledger.db"));
  db.exec("PRAGMA user_version = 99");
  db.close();
  const error = await openTestLedger(folder).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ kind: "store_unavailable", retryable: false });
  expect(String(error)).toContain("has the schema 99");
});

test("another chain key is refused at the start", async () => {
  const folder = dataFolder();
  const { ledger } = await openTestLedger(folder);
  await appendMany(ledger, 2);
  await ledger.close();
  writeFileSync(join(folder, "keys", "ledger-chain.key"), `${"ab".repeat(32)}\n`);
  const error = await openTestLedger(folder).catch((thrown: unknown) => thrown);
  expect(String(error)).toContain("was made with the chain key");
});

test("a tail that was lost while the server was down is told at the next start", async () => {
  const folder = dataFolder();
  const path = join(folder, "ledger.db");
  const first = await openTestLedger(folder);
  await appendMany(first.ledger, 5);
  await first.ledger.close();
  const older = readFileSync(path);
  const second = await openTestLedger(folder);
  await appendMany(second.ledger, 5);
  await second.ledger.close();
  writeFileSync(path, older);
  const { log } = await openTestLedger(folder);
  expect(log.find(({ level }) => level === "error")?.["message"]).toMatch(
    /^The ledger has lost rows: rows 7 to 11 were lost: /,
  );
});
