import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { assembleRuntime, type BubblewrapOptions } from "../../src/sandbox/runtimes/bubblewrap/bubblewrap-runtime.ts";
import type { Control } from "../../src/sandbox/runtimes/bubblewrap/bubblewrap-host.ts";
import type { Instance, InstanceSpec, Runtime } from "../../src/sandbox/runtimes/runtime.ts";
import { SILENT_LOGGER } from "../../src/telemetry/logger.ts";

export const MIB = 1024 * 1024;
export const NO_ABORT: AbortSignal = new AbortController().signal;

/** An account that exists on no machine: what counts is that it is not root. */
const ORDINARY_UID = 61_234;

/**
 * Runs commands it is sent, one JSON line each, and answers each with one: the smallest guest that lets a test act inside.
 * Where it may allocate more than its programs, it starts them with less, as the real one does.
 */
const STAND_IN_GUEST = `
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
const data = process.env.OWLCLAW_DATA_BYTES;
const limit = data === undefined ? [] : ["/usr/bin/prlimit", "--data=" + data + ":", "--"];
process.stdout.write(JSON.stringify({ hello: true }) + "\\n");
for await (const line of createInterface({ input: process.stdin })) {
  const { argv } = JSON.parse(line);
  const [program, ...args] = argv[0] === "node" ? argv : [...limit, ...argv];
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  const output = { stdout: "", stderr: "" };
  child.stdout.on("data", (data) => (output.stdout += data));
  child.stderr.on("data", (data) => (output.stderr += data));
  const end = await new Promise((resolve) => {
    child.once("error", (error) => resolve({ code: null, signal: error.message }));
    child.once("exit", (code, signal) => resolve({ code, signal }));
  });
  process.stdout.write(JSON.stringify({ ...output, ...end }) + "\\n");
}
`;

export interface Outcome {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number | null;
  readonly signal: string | null;
}

export interface Inside {
  readonly cell: Instance;
  readonly spec: InstanceSpec;
  run(...argv: string[]): Promise<Outcome>;
  python(code: string): Promise<Outcome>;
  /** Writes a line without waiting for an answer. */
  send(...argv: string[]): void;
}

export interface Lab {
  readonly folder: string;
  readonly dataFolder: string;
  readonly options: BubblewrapOptions;
  readonly runtime: Runtime;
  start(changes?: Partial<InstanceSpec>): Promise<Inside>;
  close(): Promise<void>;
}

/** This process becomes an ordinary user for the rest of its life; each test file has a process of its own. */
export function becomeOrdinaryUser(): void {
  if (process.getuid?.() !== 0) return;
  process.setgroups?.([]);
  process.setgid?.(ORDINARY_UID);
  process.setuid?.(ORDINARY_UID);
}

export const isRoot = process.getuid?.() === 0;

export interface LabOptions {
  readonly off?: readonly Control[];
  readonly limits?: BubblewrapOptions["limits"];
  readonly dataFolder?: string;
  readonly watchIntervalMs?: number;
}

/** A runtime on a data folder of its own, as whoever this process is now. */
export async function openLab({ off = [], limits = "best-effort", ...labOptions }: LabOptions = {}): Promise<Lab> {
  const folder = await mkdtemp(join(tmpdir(), "owlclaw-lab-"));
  const guestFolder = join(folder, "guest");
  const { dataFolder = join(folder, "data") } = labOptions;
  await writeStandInGuest(guestFolder);
  const options: BubblewrapOptions = {
    ...labOptions,
    dataFolder,
    logger: SILENT_LOGGER,
    guestFolder,
    limits,
    serverId: `lab${randomBytes(6).toString("hex")}`,
  };
  const runtime = await assembleRuntime(options, new Set(off));
  return {
    folder,
    dataFolder,
    options,
    runtime,
    start: async (changes = {}) => {
      const spec = cellSpec(dataFolder, changes);
      return await enter(await runtime.start(spec, NO_ABORT), spec);
    },
    close: async () => {
      await runtime.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export function cellSpec(dataFolder: string, changes: Partial<InstanceSpec> = {}): InstanceSpec {
  const id = `cell-${randomBytes(8).toString("hex")}`;
  return {
    id,
    template: "python",
    resources: { cpus: 1, memoryBytes: 512 * MIB, maxPids: 128, diskBytes: 64 * MIB },
    folder: join(dataFolder, "workspaces", id),
    workspacePath: "/workspace",
    volumes: [],
    env: {},
    ...changes,
  };
}

export async function enter(cell: Instance, spec: InstanceSpec): Promise<Inside> {
  let told = "";
  cell.diagnostics.on("data", (chunk: Buffer) => {
    told = (told + chunk.toString()).slice(-2000);
  });
  const lines = createInterface({ input: cell.stream })[Symbol.asyncIterator]();
  const answer = async (): Promise<unknown> => {
    const next = await lines.next();
    if (next.done === true && !cell.diagnostics.readableEnded) await once(cell.diagnostics, "end");
    if (next.done === true) throw new Error(`the cell ended: ${JSON.stringify(await cell.exited)} ${told}`);
    return JSON.parse(next.value);
  };
  await answer();
  const send = (...argv: string[]): void => void cell.stream.write(`${JSON.stringify({ argv })}\n`);
  const run = async (...argv: string[]): Promise<Outcome> => {
    send(...argv);
    return (await answer()) as Outcome;
  };
  return { cell, spec, send, run, python: async (code) => await run("python3", "-I", "-c", code) };
}

export async function folderOf(lab: Lab, name: string, owner?: number): Promise<string> {
  const path = join(lab.folder, name);
  await mkdir(path);
  if (owner !== undefined) await chown(path, owner, owner);
  return path;
}

export async function writeStandInGuest(folder: string): Promise<void> {
  await mkdir(folder);
  await writeFile(join(folder, "guest.mjs"), STAND_IN_GUEST);
  await chmod(folder, 0o755);
}

/** Whether any process of the machine carries the text in its command line. */
export async function isRunning(marker: string): Promise<boolean> {
  return (await findProcess(marker)) !== undefined;
}

export async function findProcess(marker: string): Promise<string | undefined> {
  for (const entry of await readdir("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    const commandLine = await readFile(`/proc/${entry}/cmdline`, "utf8").catch(() => "");
    if (commandLine.includes(marker)) return `/proc/${entry}`;
  }
  return undefined;
}

/** A length of sleep that no other process on the machine has. */
export function newMarker(): string {
  return `9${randomBytes(4).readUInt32LE()}`;
}
