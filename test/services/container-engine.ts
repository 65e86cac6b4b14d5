import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { EngineClient } from "../../src/sandbox/runtimes/docker/engine-client.ts";
import { allProcesses, below } from "../escape/sandbox-lab.ts";
import { engineImage } from "./engine-image.ts";

const run = promisify(execFile);
const MAPPED_USER = "daemon";
const START_DEADLINE_MS = 60_000;
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;

export type EngineKind = "docker" | "podman";

/** A container engine of a test's own, beside any that the machine has: all of it is in one folder. */
export interface ContainerEngine {
  readonly kind: EngineKind;
  readonly folder: string;
  /** For `sandbox.docker.host`. */
  readonly host: string;
  /** A Debian with Python and without Node. */
  readonly image: string;
  readonly client: EngineClient;
  /** The engine's own command line. */
  cli(...args: string[]): Promise<string>;
  start(): Promise<void>;
  kill(): Promise<void>;
  stop(): Promise<void>;
}

const PROGRAMS: Readonly<Record<EngineKind, readonly string[]>> = {
  docker: ["/usr/sbin/dockerd", "/usr/bin/docker"],
  podman: ["/usr/bin/podman", "/usr/sbin/runc"],
};

/** Why there can be none here; nothing when there can. */
export function whyNoEngine(kind: EngineKind): string | undefined {
  if (process.getuid?.() !== 0) return "a container engine of one's own needs root";
  const missing = [...PROGRAMS[kind], "/usr/bin/mmdebstrap"].find((program) => !existsSync(program));
  return missing === undefined ? undefined : `${missing} is not installed`;
}

export interface EngineOptions {
  /** A disk of this size for everything the engine keeps, so that a test can fill it; otherwise the machine's. */
  readonly diskMb?: number;
  /** Docker gives users inside numbers outside that are nobody's (userns-remap). */
  readonly mapsUsers?: boolean;
}

export async function startEngine(kind: EngineKind, options: EngineOptions = {}): Promise<ContainerEngine> {
  const tar = await engineImage();
  const folder = mkdtempSync(join(tmpdir(), `owlclaw-${kind}-`));
  if (options.diskMb !== undefined) await mountDisk(join(folder, "data"), options.diskMb);
  const socket = join(folder, "engine.sock");
  const host = `unix://${socket}`;
  const client = new EngineClient({ kind: "socket", path: socket });
  const flags = kind === "docker" ? ["-H", host] : podmanFlags(folder);
  let daemon: ChildProcess | undefined;
  const cli = async (...args: string[]): Promise<string> =>
    (await run(`/usr/bin/${kind}`, [...flags, ...args], { maxBuffer: MAX_OUTPUT_BYTES })).stdout.trim();
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    if (daemon === undefined || daemon.exitCode !== null || daemon.signalCode !== null) return;
    const exited = once(daemon, "exit");
    daemon.kill(signal);
    await exited;
  };
  const start = async (): Promise<void> => {
    daemon = kind === "docker" ? spawnDocker(folder, host, options) : spawnPodman(folder, host);
    await untilReady(client, daemon);
  };
  await start();
  await cli("import", tar, "base");
  return {
    kind,
    folder,
    host,
    client,
    cli,
    start,
    image: kind === "docker" ? "base" : "localhost/base",
    kill: async () => {
      await end("SIGKILL");
      await untilGone(join(folder, "exec/containerd/containerd.pid"));
    },
    stop: async () => {
      const left = (await cli("ps", "-aq").catch(() => "")).split("\n").filter((id) => id !== "");
      if (left.length > 0) await cli("rm", "-f", ...left).catch(() => "");
      await end("SIGTERM");
      await clearUp(folder);
    },
  };
}

async function mountDisk(folder: string, sizeMb: number): Promise<void> {
  mkdirSync(folder);
  await run("mount", ["-t", "tmpfs", "-o", `size=${sizeMb}m`, "owlclaw-test", folder]);
}

/** Without a network of its own: it would change the machine's rules, and sandboxes have none either. */
function spawnDocker(folder: string, host: string, { mapsUsers = false }: EngineOptions): ChildProcess {
  const config = join(folder, "daemon.json");
  writeFileSync(config, "{}");
  mkdirSync(join(folder, "exec"), { recursive: true });
  const places = ["--data-root", join(folder, "data"), "--exec-root", join(folder, "exec"), "--config-file", config];
  const network = ["--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false"];
  // What a killed one left would keep the next one from starting: a number whose process is dead and not yet buried.
  for (const file of ["dockerd.pid", "exec/containerd/containerd.pid"]) rmSync(join(folder, file), { force: true });
  const mapping = mapsUsers ? ["--userns-remap", MAPPED_USER] : [];
  const args = [...places, ...network, ...mapping, "--pidfile", join(folder, "dockerd.pid"), "-H", host];
  const command = ["/usr/sbin/dockerd", ...args];
  const [program = "", ...rest] = mapsUsers ? withNumbers(folder, command) : command;
  return spawn(program, rest, { stdio: ["ignore", "ignore", openSync(join(folder, "log"), "a")] });
}

/** The numbers that a user may give are in files of the machine: it sees others there, and the machine keeps its own. */
function withNumbers(folder: string, command: readonly string[]): string[] {
  const numbers = join(folder, "numbers");
  // The users that it makes of those inside have to get to what it keeps.
  chmodSync(folder, 0o711);
  writeFileSync(numbers, `${MAPPED_USER}:200000:65536\n`);
  const script = 'for file in /etc/subuid /etc/subgid; do mount --bind "$0" "$file" || exit; done; exec "$@"';
  return ["/usr/bin/unshare", "--mount", "/bin/sh", "-c", script, numbers, ...command];
}

function podmanFlags(folder: string): string[] {
  const places = ["--root", join(folder, "data"), "--runroot", join(folder, "run"), "--tmpdir", join(folder, "tmp")];
  return [...places, "--runtime", "/usr/sbin/runc", "--cgroup-manager", "cgroupfs"];
}

function spawnPodman(folder: string, host: string): ChildProcess {
  const args = [...podmanFlags(folder), "system", "service", "--time", "0", host];
  // It leaves a file where it stands when a container has no memory left.
  return spawn("/usr/bin/podman", args, { stdio: "ignore", cwd: folder });
}

async function untilReady(client: EngineClient, daemon: ChildProcess): Promise<void> {
  for (const deadline = Date.now() + START_DEADLINE_MS; ; await delay(100)) {
    if (daemon.exitCode !== null) throw new Error(`the engine ended with ${daemon.exitCode}`);
    try {
      await client.call({ method: "GET", path: "/_ping" });
      return;
    } catch (error) {
      if (Date.now() > deadline) throw error;
    }
  }
}

/** Docker's own helper dies with it, a moment later; while it does, no other can start. */
async function untilGone(pidFile: string): Promise<void> {
  if (!existsSync(pidFile)) return;
  const stat = `/proc/${readFileSync(pidFile, "utf8").trim()}/stat`;
  const isRunning = (): boolean => {
    try {
      return !/\) [ZX]/.test(readFileSync(stat, "utf8"));
    } catch {
      return false;
    }
  };
  while (isRunning()) await delay(20);
}

/** Ends and unmounts what an engine that died could not, and removes its folder. */
async function clearUp(folder: string): Promise<void> {
  const all = allProcesses();
  const ours = all.filter(({ command }) => command.includes(folder));
  for (const { pid } of [...ours, ...below(all, new Set(ours.map((each) => each.pid)))]) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It ended by itself.
    }
  }
  const mounts = readFileSync("/proc/self/mounts", "utf8").split("\n");
  for (const line of mounts.filter((each) => each.includes(folder)).toReversed()) {
    await run("umount", ["-l", line.split(" ")[1] ?? ""]).catch(() => undefined);
  }
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
}
