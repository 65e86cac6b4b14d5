import { setTimeout as delay } from "node:timers/promises";
import type { DockerHost } from "./docker-host.ts";
import { createdSchema } from "./engine-client.ts";
import { engineUnreachable, isUnreachable, EngineError } from "./engine-failure.ts";

const CREATE_TIMEOUT_MS = 30_000;
const REMOVE_TIMEOUT_MS = 30_000;
const POLL_MS = 50;

/** What every container needs, whatever it is for. */
export type ContainerHost = Pick<
  DockerHost,
  "engine" | "ownership" | "logger" | "own" | "making" | "doubt" | "leftovers"
>;

interface ContainerRequest {
  readonly json: unknown;
  /** Absent: a name that proves which data folder it belongs to. */
  readonly name?: string;
  readonly timeoutMs?: number;
}

/** Makes a container that this server owns from then on. */
export async function makeContainer(host: ContainerHost, request: ContainerRequest): Promise<string> {
  const made = makeInTime(host, request);
  host.making.add(made);
  try {
    return await made;
  } catch (error) {
    if (isUnreachable(error)) host.doubt.isThere = true;
    throw error;
  } finally {
    host.making.delete(made);
  }
}

/** After the time-out the request goes on: a container that the engine makes later is removed. */
async function makeInTime(
  host: ContainerHost,
  { json, name, timeoutMs = CREATE_TIMEOUT_MS }: ContainerRequest,
): Promise<string> {
  const { engine, ownership } = host;
  let isLate = false;
  const query = { name: name ?? ownership.containerName() };
  const called = engine.call({ method: "POST", path: "/containers/create", query, json, timeoutMs: 0 });
  const made = called.then((answer) => {
    const id = createdSchema.parse(answer.json).Id;
    if (isLate) void removeContainer(host, id);
    else host.own.add(id);
    return id;
  });
  const answered = new AbortController();
  const late = delay(timeoutMs, undefined, { signal: answered.signal }).then(() => {
    isLate = true;
    throw engineUnreachable(engine.address, new DOMException("no answer", "TimeoutError"));
  });
  try {
    return await Promise.race([made, late]);
  } finally {
    answered.abort();
  }
}

/** Ends and removes a container, now or, when that fails, at a later try. */
export async function removeContainer(
  host: Pick<DockerHost, "engine" | "logger" | "leftovers" | "own">,
  id: string,
): Promise<void> {
  try {
    await removeNow(host, id);
    host.leftovers.delete(id);
    host.own.delete(id);
    host.logger.info("container removed", { container: id.slice(0, 12) });
  } catch (error) {
    const log = isUnreachable(error) ? "warning" : "error";
    const isNew = !host.leftovers.has(id);
    host.leftovers.add(id);
    if (isNew)
      host.logger[log]("a container is left until the engine can remove it", { container: id.slice(0, 12), error });
  }
}

async function removeNow({ engine }: Pick<DockerHost, "engine">, id: string): Promise<void> {
  for (const deadline = Date.now() + REMOVE_TIMEOUT_MS; ; await delay(POLL_MS)) {
    const call = { method: "DELETE", path: `/containers/${id}`, query: { force: "1", v: "1" } } as const;
    const { status } = await engine.call({ ...call, accept: [404, 409] });
    if (status !== 409) return;
    if (Date.now() > deadline) throw new EngineError(status, "its removal does not end");
  }
}

/** Always set: by default Podman requests higher limits than it may be allowed to set. */
export const ULIMITS: ReadonlyArray<{ readonly Name: string; readonly Soft: number; readonly Hard: number }> = [
  ulimit("nofile", 4096),
  ulimit("nproc", 16_384),
  ulimit("core", 0),
];

export function ulimit(Name: string, value: number): { Name: string; Soft: number; Hard: number } {
  return { Name, Soft: value, Hard: value };
}
