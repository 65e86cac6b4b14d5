import { setTimeout as delay } from "node:timers/promises";
import type { DockerHost } from "./docker-host.ts";
import { createdSchema } from "./engine-answers.ts";
import { engineUnreachable, isUnreachable } from "./engine-failure.ts";
import { removeContainer } from "./remove-container.ts";

const TIMEOUT_MS = 30_000;

/** What containers are made with, whatever they are for. */
export type ContainerHost = Pick<
  DockerHost,
  "engine" | "ownership" | "logger" | "own" | "making" | "doubt" | "leftovers"
>;

export interface ContainerRequest {
  readonly json: unknown;
  /** Absent: one that proves whose it is. */
  readonly name?: string;
  readonly timeoutMs?: number;
}

/** Makes a container that is this server's from then on. */
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

/** Not given up half-way: a container that is made when nobody waits for it any more would be nobody's, and is removed. */
async function makeInTime(
  host: ContainerHost,
  { json, name, timeoutMs = TIMEOUT_MS }: ContainerRequest,
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
