import type { PassThrough } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { type InstanceMount, checkMounts } from "../instance-mounts.ts";
import type { GuestStream } from "../guest-stream.ts";
import type { Instance, InstanceExit, InstanceUsage } from "../runtime.ts";
import type { DockerHost } from "./docker-host.ts";
import { stateSchema, statsSchema, waitSchema } from "./engine-client.ts";
import { processTree } from "../process-tree.ts";
import { removeContainer } from "./containers.ts";

/** The exit code of a shell for a program that was ended by SIGKILL. */
const KILLED_CODE = 128 + 9;
/** A container whose guest has closed its output ends by itself within this time, or is removed. */
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

  /** Removes the container, without waiting. */
  end(reason: InstanceExit["reason"]): void {
    // A guest whose output ended before had another reason.
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

  /** Process ids on the host; empty where they are not known. */
  async processes(): Promise<readonly number[]> {
    this.#firstPid ??= this.#askFirstPid();
    const pid = await this.#firstPid;
    return pid > 0 ? await processTree(pid) : [];
  }

  async #askFirstPid(): Promise<number> {
    const { json } = await this.#host.engine.call({ method: "GET", path: `/containers/${this.containerId}/json` });
    return stateSchema.parse(json).State.Pid;
  }

  /** Needs root on the engine's machine; elsewhere nothing is checked. */
  async checkMounts(): Promise<void> {
    if (process.getuid?.() !== 0 || this.#host.isRemote || this.#mounts.length === 0) return;
    const pid = await this.#askFirstPid();
    if (pid > 0) await checkMounts(pid, this.#mounts);
  }

  async #remove(): Promise<void> {
    // The engine knows the exit code only as long as the container exists.
    if (this.#endReason === undefined) await Promise.race([this.exited, delay(OWN_END_MS, undefined, { ref: false })]);
    await removeContainer(this.#host, this.containerId);
    // An engine that does not answer must not block the server.
    setTimeout(() => {
      this.stream.destroy();
      this.#following.abort();
    }, OWN_END_MS).unref();
  }

  /** Never rejects: an unreachable engine or a container that was removed counts as an exit. */
  async #follow(ended: Promise<void>): Promise<InstanceExit> {
    // Podman polls while a request waits, so the request is sent only after the output has ended.
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
