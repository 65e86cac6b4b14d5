import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startGuest, type Guest } from "./guest-process.ts";

const DATA_BYTES = 400 * 1024 * 1024;
const READ_LIMIT = "grep '^Max data size' /proc/self/limits";

interface DataLimit {
  readonly soft: string | undefined;
  readonly hard: string | undefined;
}

function toLimit(line: string): DataLimit {
  const [soft, hard] = line.replace("Max data size", "").trim().split(/\s+/u);
  return { soft, hard };
}

/** Of this process, and so of a guest that it starts. */
const OWN = toLimit(/^Max data size.*$/mu.exec(readFileSync("/proc/self/limits", "utf8"))?.[0] ?? "");
const TOLD: DataLimit = { soft: String(DATA_BYTES), hard: OWN.hard };

async function ofShell(guest: Guest): Promise<DataLimit> {
  const command = { callId: "s", command: READ_LIMIT, timeoutMs: 20_000, maxOutputChars: 1_000, background: false };
  return toLimit((await guest.call("shell.exec", command)).stdout.text);
}

async function ofCode(guest: Guest, language: "python" | "node"): Promise<DataLimit> {
  const read = {
    python: "print([line for line in open('/proc/self/limits') if 'data size' in line][0])",
    node: "console.log(require('node:fs').readFileSync('/proc/self/limits', 'utf8').match(/^Max data size.*$/mu)[0])",
  };
  const code = { callId: "c", language, code: read[language], timeoutMs: 20_000, maxOutputChars: 1_000 };
  return toLimit((await guest.call("code.run", code)).stdout.text);
}

/** A PATH with a shell and no Python. */
function pathWithoutPython(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "guest-path-")));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, "bin"));
  for (const name of ["bash", "grep"]) symlinkSync(join("/usr/bin", name), join(folder, "bin", name));
  symlinkSync(process.execPath, join(folder, "bin", "node"));
  return join(folder, "bin");
}

test("programs may allocate what the guest is told, again and again, and Node may as much as the guest", async () => {
  const guest = await startGuest({ env: { OWLCLAW_DATA_BYTES: String(DATA_BYTES) } });
  expect(await ofShell(guest)).toEqual(TOLD);
  expect(await ofCode(guest, "python")).toEqual(TOLD);
  expect(await ofCode(guest, "node")).toEqual(OWN);
  expect(await ofShell(guest)).toEqual(TOLD);
});

test("the same holds where no Python starts the programs", async () => {
  const PATH = pathWithoutPython();
  const guest = await startGuest({ env: { OWLCLAW_DATA_BYTES: String(DATA_BYTES), PATH } });
  expect(await ofShell(guest)).toEqual(TOLD);
  expect(await ofCode(guest, "node")).toEqual(OWN);
});

test("without a word about it, programs may allocate what the guest may", async () => {
  const guest = await startGuest();
  expect(await ofShell(guest)).toEqual(OWN);
});
