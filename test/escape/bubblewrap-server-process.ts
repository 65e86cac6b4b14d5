import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { type Outcome, writeStandInGuest } from "./bubblewrap-instances.ts";
import { createBubblewrapRuntime } from "../../src/sandbox/runtimes/bubblewrap/bubblewrap-runtime.ts";
import { SILENT_LOGGER } from "../../src/telemetry/logger.ts";
import type { ServerOrder } from "./bubblewrap-server.ts";

export interface ServerAnswer {
  readonly id: string;
  readonly folder: string;
  readonly outcomes: readonly Outcome[];
}

export interface ServerProcess {
  readonly child: ChildProcess;
  readonly answers: readonly ServerAnswer[];
  kill(): Promise<void>;
}

export interface ServerPlace {
  readonly dataFolder: string;
  start(
    order: Partial<ServerOrder>,
    launch?: { readonly prefix?: readonly string[]; readonly descriptor?: number },
  ): Promise<ServerProcess>;
  /** Without waiting. */
  killAll(): void;
  close(): Promise<void>;
}

/** The number under which a descriptor is handed on: past those that Node closes on its own. */
export const HANDED_DESCRIPTOR = 40;

/** The server script as one file, made while this process may still read the checkout. */
export async function bundleServer(): Promise<string> {
  const entry = fileURLToPath(new URL("bubblewrap-server.ts", import.meta.url));
  const built = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    platform: "node",
    format: "esm",
    logLevel: "error",
  });
  return built.outputFiles[0]?.text ?? "";
}

export async function openServerPlace(bundle: string): Promise<ServerPlace> {
  const folder = await mkdtemp(join(tmpdir(), "owlclaw-server-"));
  const guestFolder = join(folder, "guest");
  const dataFolder = join(folder, "data");
  const script = join(folder, "server.mjs");
  await writeFile(script, bundle);
  await writeStandInGuest(guestFolder);
  const children: ChildProcess[] = [];
  const end = async (child: ChildProcess): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  };
  return {
    dataFolder,
    start: async (order, launch = {}) => {
      const serverId = `server${randomBytes(6).toString("hex")}`;
      const defaults: ServerOrder = {
        dataFolder,
        guestFolder,
        serverId,
        off: [],
        cells: 1,
        commands: [],
        listen: [],
        workspacePath: "/workspace",
      };
      const node = [process.execPath, script, JSON.stringify({ ...defaults, ...order })];
      const [program = "", ...args] = [...(launch.prefix ?? []), ...node];
      const descriptors = Array.from({ length: HANDED_DESCRIPTOR - 3 }, () => "ignore" as const);
      const more = launch.descriptor === undefined ? [] : [...descriptors, launch.descriptor];
      const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit", ...more], cwd: "/" });
      children.push(child);
      const [line] = (await Promise.race([
        once(createInterface({ input: child.stdout! }), "line"),
        once(child, "exit").then(() => ["null"]),
      ])) as [string];
      return { child, answers: (JSON.parse(line) ?? []) as ServerAnswer[], kill: async () => await end(child) };
    },
    killAll: () => children.forEach((child) => child.kill("SIGKILL")),
    close: async () => {
      await Promise.all(children.map(end));
      const options = {
        dataFolder,
        guestFolder,
        serverId: `clearing${randomBytes(6).toString("hex")}`,
        logger: SILENT_LOGGER,
        limits: "best-effort",
      } as const;
      const runtime = await createBubblewrapRuntime(options);
      await runtime.reap();
      await runtime.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
