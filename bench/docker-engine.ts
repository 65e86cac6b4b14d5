import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { performance } from "node:perf_hooks";
import { setTimeout as delay } from "node:timers/promises";
import { baseImage } from "./docker-image.ts";
import { runProgram } from "./run-program.ts";

const IMAGE = "owlclaw-bench";
const START_DEADLINE_MS = 30_000;
const POLL_MS = 100;
/** No network of its own: it would change the machine's rules, and sandboxes have none either. */
const WITHOUT_NETWORK = [
  "--bridge=none",
  "--iptables=false",
  "--ip6tables=false",
  "--ip-forward=false",
  "--ip-masq=false",
];

/** A Docker engine of the benchmark's own, beside any that the machine has: everything of it is in one folder. */
export class DockerEngine {
  readonly #folder: string;
  readonly #daemon: ChildProcess;
  #container = "";

  private constructor(folder: string, daemon: ChildProcess) {
    this.#folder = folder;
    this.#daemon = daemon;
  }

  /** Throws with what keeps it from running here. */
  static async start(log: (line: string) => void): Promise<DockerEngine> {
    if (process.getuid?.() !== 0) throw new Error("dockerd needs root");
    const image = await baseImage(log);
    const folder = await mkdtemp(path.join(tmpdir(), "owlclaw-bench-docker-"));
    const daemon = await startDaemon(folder).catch(async (error: unknown) => {
      await rm(folder, { recursive: true, force: true });
      throw error;
    });
    const engine = new DockerEngine(folder, daemon);
    try {
      await engine.#untilReady();
      log("docker: importing the image");
      await engine.#docker(["import", image, IMAGE]);
      engine.#container = await engine.#docker(["run", "-d", "--network", "none", IMAGE, "sleep", "infinity"]);
      return engine;
    } catch (error) {
      await engine.stop();
      throw error;
    }
  }

  /** For a server that runs its sandboxes here. */
  get settings(): Readonly<Record<string, unknown>> {
    return { runtime: "docker", image: IMAGE, docker: { host: socketOf(this.#folder) } };
  }

  /** From the start of `docker run` to the first result: removing the container comes after it and does not count. */
  async create(): Promise<number> {
    const startedAt = performance.now();
    const args = ["run", "--rm", "--network", "none", IMAGE, "python3", "-c", "print(6 * 7)"];
    const child = spawn("docker", [...this.#host, ...args], { stdio: ["ignore", "pipe", "ignore"] });
    const closed = once(child, "close");
    const [first] = await Promise.race([once(child.stdout, "data"), closed]);
    const milliseconds = performance.now() - startedAt;
    await closed;
    if (String(first).trim() !== "42") throw new Error(`docker run gave ${String(first)}`);
    return milliseconds;
  }

  async exec(): Promise<number> {
    const startedAt = performance.now();
    await this.#docker(["exec", this.#container, "true"]);
    return performance.now() - startedAt;
  }

  async stop(): Promise<void> {
    if (this.#container !== "") await this.#docker(["rm", "-f", this.#container]).catch(() => "");
    if (this.#daemon.exitCode === null && this.#daemon.signalCode === null) {
      const exited = once(this.#daemon, "exit");
      this.#daemon.kill("SIGTERM");
      await exited;
    }
    await rm(this.#folder, { recursive: true, force: true });
  }

  get #host(): readonly string[] {
    return ["-H", socketOf(this.#folder)];
  }

  #docker(args: readonly string[]): Promise<string> {
    return runProgram("docker", [...this.#host, ...args]);
  }

  async #untilReady(): Promise<void> {
    for (const deadline = Date.now() + START_DEADLINE_MS; ; await delay(POLL_MS)) {
      if (this.#daemon.exitCode !== null) throw new Error(`dockerd ended with ${this.#daemon.exitCode}`);
      try {
        await this.#docker(["version"]);
        return;
      } catch (error) {
        if (Date.now() > deadline) throw error;
      }
    }
  }
}

async function startDaemon(folder: string): Promise<ChildProcess> {
  const config = path.join(folder, "daemon.json");
  await mkdir(path.join(folder, "exec"));
  const [configFile, logFile] = await Promise.all([open(config, "w"), open(path.join(folder, "dockerd.log"), "w")]);
  await configFile.writeFile("{}");
  await configFile.close();
  const places = ["--data-root", path.join(folder, "data"), "--exec-root", path.join(folder, "exec")];
  const files = ["--pidfile", path.join(folder, "dockerd.pid"), "--config-file", config, "-H", socketOf(folder)];
  const daemon = spawn("dockerd", [...places, ...files, ...WITHOUT_NETWORK], {
    stdio: ["ignore", logFile.fd, logFile.fd],
  });
  process.once("exit", () => daemon.kill("SIGTERM"));
  try {
    await once(daemon, "spawn");
  } finally {
    await logFile.close();
  }
  return daemon;
}

function socketOf(folder: string): string {
  return `unix://${path.join(folder, "docker.sock")}`;
}
