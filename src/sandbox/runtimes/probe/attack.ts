import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { z } from "zod";
import { type Architecture, type SyscallName, syscallNumber } from "../seccomp/syscall-numbers.ts";
import type { Instance, InstanceSpec, Resources } from "../runtime.ts";
import type { StartRequest } from "../start-request.ts";
import type { CheckName } from "./checks.ts";
import { createServer, type Server } from "node:net";

const MIB = 1024 * 1024;
export const PROBE_WORKSPACE = "/workspace";
const MAX_ANSWER_CHARS = 64 * 1024;

/** Small, so that an attack exceeds them fast. */
export const PROBE_RESOURCES: Resources = { cpus: 2, memoryBytes: 64 * MIB, maxPids: 32, diskBytes: 16 * MIB };

const TRIED_SYSCALLS: readonly SyscallName[] = [
  ...(["keyctl", "add_key", "bpf", "perf_event_open", "userfaultfd", "io_uring_setup"] as const),
  ...(["ptrace", "process_vm_readv", "setns", "open_tree", "fsopen", "kcmp", "syslog"] as const),
];

const answerSchema = z.record(z.string(), z.tuple([z.boolean(), z.string().max(1000)]));
/** Process ids inside start at 1. In a container the server may have a low id too. */
const DISTINCT_PID = 1000;
const NO_PID = 2 ** 22 - 1;
/** For each attack: whether it succeeded, and what happened. */
export type Answer = z.infer<typeof answerSchema>;

/** The numbers of system calls that must be refused. */
export function triedSyscalls(architecture: Architecture): Readonly<Record<string, number | null>> {
  return Object.fromEntries(TRIED_SYSCALLS.map((name) => [name, syscallNumber(name, architecture)]));
}

/** Folders that the script fills, by the check for their size limit. */
export type FilledDisks = Readonly<Partial<Record<CheckName, string>>>;

/** What the attack script printed. */
export async function readAnswer(instance: Pick<Instance, "stream" | "diagnostics" | "exited">): Promise<Answer> {
  const [said, told] = await Promise.all([readAll(instance.stream), readAll(instance.diagnostics)]);
  if (said !== "") return answerSchema.parse(JSON.parse(said));
  const { code, signal, reason } = await instance.exited;
  const end = reason ?? signal ?? `code ${code}`;
  throw new Error(`the probe's sandbox ended (${end}) without an answer: ${told.trim().slice(-500)}`);
}

async function readAll(stream: Readable): Promise<string> {
  let text = "";
  for await (const chunk of stream) {
    text += String(chunk);
    if (text.length > MAX_ANSWER_CHARS) throw new Error("the answer of the probe's sandbox is too long");
  }
  return text;
}

interface UnreachableServices {
  readonly listeners: ReadonlyArray<readonly [family: string, address: string, port: number]>;
  close(): void;
}

/** Listens on the host; instances must not be able to connect. */
export async function openUnreachableServices(abstractSocket: string): Promise<UnreachableServices> {
  const servers: Server[] = [];
  const listen = async (options: { host: string; port: number } | { path: string }): Promise<number | undefined> =>
    await new Promise((resolve) => {
      const server = createServer((socket) => socket.destroy()).unref();
      servers.push(server);
      // The machine may have no IPv6.
      server.once("error", () => resolve(undefined));
      server.listen(options, () => {
        const address = server.address();
        resolve(address !== null && typeof address === "object" ? address.port : 0);
      });
    });
  const port4 = await listen({ host: "127.0.0.1", port: 0 });
  const port6 = await listen({ host: "::1", port: 0 });
  await listen({ path: `\0${abstractSocket}` });
  return {
    listeners: [
      ...(port4 === undefined ? [] : [["AF_INET", "127.0.0.1", port4] as const]),
      ...(port6 === undefined ? [] : [["AF_INET6", "::1", port6] as const]),
    ],
    close: () => servers.forEach((server) => server.close()),
  };
}

/**
 * The server process to signal and to read. A low process id may belong to a process inside, so it is not used; another attack
 * tries whether any process of the host is visible.
 */
export function serverProcess(): { readonly serverPid: number; readonly files: readonly string[] } {
  const { pid } = process;
  return pid > DISTINCT_PID ? { serverPid: pid, files: [`/proc/${pid}/environ`] } : { serverPid: NO_PID, files: [] };
}

export interface ProbeOptions<I> {
  readonly stateFolder: string;
  /** Whose image is used; absent: the default image. */
  readonly template?: string;
  readonly resources: Resources;
  readonly signal: AbortSignal;
  readonly start: (request: StartRequest) => Promise<I>;
  /** Removes the workspace when the instances are stopped. */
  readonly discard: (folder: string) => Promise<unknown>;
}

interface Probe<I> {
  readonly spec: InstanceSpec;
  readonly start: (command: readonly string[]) => Promise<I>;
}

/** Gives an attack the means to start instances, and removes everything of them afterwards. */
export async function withProbe<I extends Pick<Instance, "stop"> & { end(reason: "stopped"): void }, T>(
  { stateFolder, template = "", resources, signal, start, discard }: ProbeOptions<I>,
  attack: (probe: Probe<I>) => Promise<T>,
): Promise<T> {
  const id = `probe-${randomBytes(8).toString("hex")}`;
  const folder = join(stateFolder, id);
  const spec = { id, folder, template, resources, workspacePath: PROBE_WORKSPACE, volumes: [], env: {} };
  const instances: I[] = [];
  const stop = (): void => instances.forEach((instance) => instance.end("stopped"));
  signal.addEventListener("abort", stop, { once: true });
  try {
    return await attack({
      spec,
      start: async (command) => {
        const instance = await start({ spec, command, signal });
        instances.push(instance);
        return instance;
      },
    });
  } finally {
    signal.removeEventListener("abort", stop);
    await Promise.all(instances.map(async (instance) => await instance.stop()));
    await discard(folder);
  }
}
