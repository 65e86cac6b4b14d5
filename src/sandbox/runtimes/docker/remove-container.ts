import { setTimeout as delay } from "node:timers/promises";
import type { DockerHost } from "./docker-host.ts";
import { EngineError, isUnreachable } from "./engine-failure.ts";

const REMOVE_TIMEOUT_MS = 30_000;
const POLL_MS = 50;

/** Ends and removes a container, now or when the engine can. */
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
