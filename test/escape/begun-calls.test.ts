import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, expect, onTestFinished, test } from "vitest";
import { draftFromEntry } from "../../src/ledger/draft-from-entry.ts";
import { type OpenStore, openStore } from "../../src/ledger/open-store.ts";
import { recoverCalls, type RecoverOptions } from "../../src/ledger/recover-calls.ts";
import type { Draft } from "../../src/ledger/row.ts";
import { StartedCalls } from "../../src/ledger/started-calls.ts";
import { readStarted, sealLine, startedFolder } from "../../src/ledger/started-lines.ts";
import { identifySelf } from "../../src/processes/identity.ts";
import { SILENT_LOGGER } from "../../src/telemetry/logger.ts";
import { createRedactor } from "../../src/telemetry/redact.ts";
import { entry } from "../unit/ledger/ledger-entry.ts";
import { ledgerConfig } from "../unit/ledger/ledger-fixture.ts";

/** Calls of a killed server that would be recorded or paid twice, or not at all. */
const run = promisify(execFile);
const isRoot = process.getuid?.() === 0;
const RESERVED = { micros: 5, budgets: ["budget of ada"] };
/** Greater than any number that Linux gives to a process. */
const NO_PROCESS = 2 ** 22 + 1;

const opened: OpenStore[] = [];
afterEach(async () => {
  for (const { store } of opened.splice(0)) await store.close();
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "owlclaw-begun-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function draft(text: string): Draft {
  return draftFromEntry(entry({ args: { text }, outcome: "unknown" }), createRedactor([]));
}

/** A data folder with one call that a killed server had begun. */
async function leftBehind(): Promise<Omit<RecoverOptions, "charge">> {
  const dataFolder = newFolder();
  const place = await openStore({ config: ledgerConfig(), dataFolder });
  opened.push(place);
  mkdirSync(startedFolder(dataFolder));
  const path = join(startedFolder(dataFolder), "1-00.calls");
  const lines = [
    { process: { ...identifySelf(), pid: NO_PROCESS } },
    { call: 1, draft: draft("x"), reserved: RESERVED },
  ];
  writeFileSync(path, lines.map((line) => sealLine(place.keys, path, line)).join(""));
  return { dataFolder, ...place, logger: SILENT_LOGGER, own: "", owed: [] };
}

async function rowsOf({ store }: Pick<RecoverOptions, "store">): Promise<number> {
  return (await store.list({ outcome: "unknown" }, { limit: 10 })).length;
}

test("a call whose budgets cannot be charged at first has one row, and is paid once", async () => {
  const options = await leftBehind();
  const charged: number[] = [];
  let isDown = true;
  const charge = async (_budgets: readonly string[], micros: number): Promise<void> => {
    if (isDown) throw new Error("the store of limits does not answer");
    charged.push(micros);
  };
  await expect(recoverCalls({ ...options, charge })).rejects.toThrow("does not answer");
  isDown = false;
  for (let turn = 0; turn < 3; turn += 1) await recoverCalls({ ...options, charge });
  expect(charged).toEqual([5]);
  expect(await rowsOf(options)).toBe(1);
  expect(readdirSync(startedFolder(options.dataFolder))).toEqual([]);
});

test.skipIf(!isRoot)("a call that one server records is left to it by a server of another container", async () => {
  const options = await leftBehind();
  const beside: string[] = [];
  const append: RecoverOptions["store"]["append"] = async (drafts) => {
    const command = [
      "--pid",
      "--fork",
      "--mount-proc",
      process.execPath,
      "--import",
      "tsx",
      "test/escape/recover-once.ts",
    ];
    beside.push((await run("unshare", [...command, options.dataFolder])).stdout);
    return options.store.append(drafts);
  };
  const store = { append, list: options.store.list.bind(options.store) };
  let charges = 0;
  const charge = async (): Promise<void> => void (charges += 1);
  expect(await recoverCalls({ ...options, store, charge })).toBe(1);
  expect(beside).toEqual(["0\n"]);
  expect(charges).toBe(1);
  expect(await rowsOf(options)).toBe(1);
});

test.skipIf(!isRoot)("a line that a full disk cut off spoils no other", async () => {
  const folder = join(newFolder(), "disk");
  mkdirSync(folder);
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=64k", "owlclaw-test", folder]);
  onTestFinished(() => void execFileSync("umount", ["-l", folder]));
  const place = await openStore({ config: ledgerConfig(), dataFolder: newFolder() });
  opened.push(place);
  const calls = new StartedCalls(folder, place.keys);
  onTestFinished(() => calls.close());
  const begin = (text: string): unknown => calls.begin(draft(text), { reserved: RESERVED, secrets: undefined });
  begin("first");
  const filler = join(folder, "filler");
  expect(() => writeFileSync(filler, Buffer.alloc(128 * 1024))).toThrow("ENOSPC");
  // What is left of the file's last page takes a part of it.
  expect(() => begin("refused ".repeat(400))).toThrow("could not be recorded");
  rmSync(filler);
  begin("second");
  const { open, foreign } = readStarted(place.keys, calls.path);
  expect(open.map(({ draft: row }) => row.find((value) => String(value).startsWith('{"text"')))).toEqual([
    '{"text":"first"}',
    '{"text":"second"}',
  ]);
  expect(foreign).toBe(0);
});
