import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { baseImage } from "./docker-image.ts";
import { runProgram } from "./run-program.ts";

const IMAGE = "owlclaw-bench";
const START_DEADLINE_MS = 30_000;
const POLL_MS = 100;

/** A Podman of the benchmark's own, with runc: everything of it is in one folder. */
export class PodmanEngine {
  readonly #folder: string;
  readonly #service: ChildProcess;

  private constructor(folder: string, service: ChildProcess) {
    this.#folder = folder;
    this.#service = service;
    process.once("exit", () => this.#service.kill("SIGTERM"));
  }

  /** Throws with what keeps it from running here. */
  static async start(log: (line: string) => void): Promise<PodmanEngine> {
    const image = await baseImage(log);
    const folder = await mkdtemp(path.join(tmpdir(), "owlclaw-bench-podman-"));
    const service = await startService(folder).catch(async (error: unknown) => {
      await rm(folder, { recursive: true, force: true });
      throw error;
    });
    const engine = new PodmanEngine(folder, service);
    try {
      await engine.#untilReady();
      log("podman: importing the image");
      await runProgram("podman", [...flagsFor(folder), "import", image, IMAGE]);
      return engine;
    } catch (error) {
      await engine.stop();
      throw error;
    }
  }

  /** For a server that runs its sandboxes here. */
  get settings(): Readonly<Record<string, unknown>> {
    return { runtime: "docker", image: `localhost/${IMAGE}`, docker: { host: `unix://${socketOf(this.#folder)}` } };
  }

  async stop(): Promise<void> {
    if (this.#service.exitCode === null && this.#service.signalCode === null) {
      const exited = once(this.#service, "exit");
      this.#service.kill("SIGTERM");
      await exited;
    }
    await runProgram("podman", [...flagsFor(this.#folder), "rm", "-fa"]).catch(() => "");
    await runProgram("podman", [...flagsFor(this.#folder), "unmount", "--all", "--force"]).catch(() => "");
    await rm(this.#folder, { recursive: true, force: true });
  }

  async #untilReady(): Promise<void> {
    for (const deadline = Date.now() + START_DEADLINE_MS; !existsSync(socketOf(this.#folder)); await delay(POLL_MS)) {
      if (this.#service.exitCode !== null) throw new Error(`podman ended with ${this.#service.exitCode}`);
      if (Date.now() > deadline) throw new Error("podman does not begin to listen");
    }
  }
}

async function startService(folder: string): Promise<ChildProcess> {
  const args = [...flagsFor(folder), "system", "service", "--time", "0", `unix://${socketOf(folder)}`];
  // It leaves a file where it stands when a container has no memory left.
  const service = spawn("podman", args, { stdio: "ignore", cwd: folder });
  await once(service, "spawn");
  return service;
}

function flagsFor(folder: string): readonly string[] {
  const at = (name: string): string => path.join(folder, name);
  const places = ["--root", at("data"), "--runroot", at("run"), "--tmpdir", at("tmp")];
  return [...places, "--runtime", "/usr/sbin/runc", "--cgroup-manager", "cgroupfs"];
}

function socketOf(folder: string): string {
  return path.join(folder, "engine.sock");
}
