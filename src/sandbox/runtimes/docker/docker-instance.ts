import type { PassThrough } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { type InstanceMount, checkMounts } from "../instance-mounts.ts";
import type { GuestStream } from "../guest-stream.ts";
import type { Instance, InstanceExit, InstanceUsage } from "../runtime.ts";
import type { DockerHost } from "./docker-host.ts";
import { stateSchema, statsSchema, waitSchema } from "./engine-client.ts";
import { processTree } from "../process-tree.ts";
import { removeContainer } from "./containers.ts";

/** How a shell tells that a program was ended by SIGKILL. */
const KILLED_CODE = 128 + 9;
/** A container whose guest fell silent ends by itself within this time, or is ended. */
const OWN_END_MS = 2000;
const NANOSECONDS_PER_MS = 1e6;

interface DockerInstanceOptions {
  readonly host: DockerHost;
  readonly instanceId: string;
  readonly containerId: string;
  readonly stream: GuestStream;
  readonly diagnostics: PassThrough;
  readonly ended: Promise<void>;
  readonly egressStream: GuestStream | undefined;
  readonly mounts: readonly InstanceMount[];
}

/** One running container with the guest in it. */
export class DockerInstance implements Instance {
  readonly id: string;
  readonly containerId: string;
  readonly stream: GuestStream;
  readonly diagnostics: PassThrough;
  readonly egressStream: GuestStream | undefined;
  readonly exited: Promise<InstanceExit>;
  readonly #host: DockerHost;
  readonly #mounts: readonly InstanceMount[];
  readonly #following = new AbortController();
  #endReason: InstanceExit["reason"];
  #removed: Promise<void> | undefined;
  #firstPid: Promise<number> | undefined;

  constructor({
    host,
    instanceId,
    containerId,
    stream,
    diagnostics,
    ended,
    egressStream,
    mounts,
  }: DockerInstanceOptions) {
    this.#host = host;
    this.#mounts = mounts;
    this.id = instanceId;
    this.containerId = containerId;
    this.stream = stream;
    this.diagnostics = diagnostics;
    this.egressStream = egressStream;
    this.exited = this.#follow(ended);
  }

  /** Ends everything in it, without waiting. */
  end(reason: InstanceExit["reason"]): void {
    // A guest that fell silent before it was told to had another reason.
    if (!this.stream.readableEnded) this.#endReason ??= reason;
    this.#removed ??= this.#remove();
  }

  async stop(): Promise<void> {
    this.end("stopped");
    await this.#removed;
    await this.exited;
    this.stream.destroy();
    this.egressStream?.destroy();
    this.diagnostics.destroy();
  }

  async usage(): Promise<InstanceUsage> {
    const query = { stream: "false", "one-shot": "true" };
    const path = `/containers/${this.containerId}/stats`;
    const answer = await this.#host.engine.call({ method: "GET", path, query });
    const { memory_stats: memory, pids_stats: pids, cpu_stats: cpu } = statsSchema.parse(answer.json);
    const cpuMs = cpu.cpu_usage.total_usage / NANOSECONDS_PER_MS;
    return { memoryBytes: memory.usage, cpuMs, pids: pids.current };
  }

  /** As the host numbers them, where this server may look at them. */
  async processes(): Promise<readonly number[]> {
    this.#firstPid ??= this.#askFirstPid();
    const pid = await this.#firstPid;
    return pid > 0 ? await processTree(pid) : [];
  }

  async #askFirstPid(): Promise<number> {
    const { json } = await this.#host.engine.call({ method: "GET", path: `/containers/${this.containerId}/json` });
    return stateSchema.parse(json).State.Pid;
  }

  /** Only where this server may look into the container: root, on the engine's own machine. */
  async checkMounts(): Promise<void> {
    if (process.getuid?.() !== 0 || this.#host.isRemote || this.#mounts.length === 0) return;
    const pid = await this.#askFirstPid();
    if (pid > 0) await checkMounts(pid, this.#mounts);
  }

  async #remove(): Promise<void> {
    // Why it ended can be asked only while it is there.
    if (this.#endReason === undefined) await Promise.race([this.exited, delay(OWN_END_MS, undefined, { ref: false })]);
    await removeContainer(this.#host, this.containerId);
    // An engine that hangs must not keep the server from going on.
    setTimeout(() => {
      this.stream.destroy();
      this.#following.abort();
    }, OWN_END_MS).unref();
  }

  /** Never rejects: an engine that is away, or a container that somebody removed, is an end as well. */
  async #follow(ended: Promise<void>): Promise<InstanceExit> {
    // Podman looks all the time while somebody waits: it is asked when there is something to know.
    await ended;
    const { engine } = this.#host;
    const path = `/containers/${this.containerId}`;
    try {
      const query = { condition: "not-running" };
      const { signal } = this.#following;
      const waited = await engine.call({ method: "POST", path: `${path}/wait`, query, timeoutMs: 0, signal });
      const { StatusCode: code } = waitSchema.parse(waited.json);
      const reason = this.#endReason ?? (code === KILLED_CODE ? await this.#outOfMemory(path) : undefined);
      return { code, signal: null, ...(reason !== undefined && { reason }) };
    } catch {
      return { code: null, signal: null, ...(this.#endReason !== undefined && { reason: this.#endReason }) };
    }
  }

  async #outOfMemory(path: string): Promise<"memory" | undefined> {
    const answer = await this.#host.engine.call({ method: "GET", path: `${path}/json`, accept: [404] });
    const state = stateSchema.safeParse(answer.json);
    return state.success && state.data.State.OOMKilled ? "memory" : undefined;
  }
}
