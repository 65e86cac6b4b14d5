import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { HostsState } from "./places.ts";
import type { DoorState, OpenRequest } from "./proxy-process.ts";

/** A machine with the proxy and, behind a cable, hosts to attack. All of it lives in network namespaces that end with it. */
export interface World {
  /** The path of the door's socket: sockets in the file system are reached from any network namespace. */
  open(request: OpenRequest): Promise<string>;
  state(path: string): Promise<DoorState>;
  close(path: string): Promise<void>;
  hosts(): Promise<HostsState>;
  forgetRequests(): Promise<void>;
  startOwnServer(): Promise<void>;
  stop(): Promise<void>;
}

export async function startWorld(): Promise<World> {
  const file = join(import.meta.dirname, "proxy-process.ts");
  const namespaces = process.getuid?.() === 0 ? ["--net"] : ["--user", "--map-root-user", "--net"];
  const child = spawn("unshare", [...namespaces, process.execPath, "--import", "tsx", file], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  const ask = createAsker(child);
  const [first] = (await Promise.race([once(child, "message"), once(child, "exit")])) as [unknown];
  if (typeof first === "number") throw new Error(`the network namespace could not be made: exit ${first}`);
  return {
    open: async (request) => await ask("open", request),
    state: async (path) => await ask("state", path),
    close: async (path) => await ask("close", path),
    hosts: async () => await ask("hosts"),
    forgetRequests: async () => await ask("forget"),
    startOwnServer: async () => await ask("own server"),
    stop: async () => {
      const gone = once(child, "exit");
      child.disconnect();
      await gone;
    },
  };
}

function createAsker(child: ChildProcess): <T>(command: string, argument?: unknown) => Promise<T> {
  const waiting = new Map<number, { resolve: (value: never) => void; reject: (error: Error) => void }>();
  let lastId = 0;
  child.on("message", (message: { id: number; result: never; error?: string }) => {
    const question = waiting.get(message.id);
    waiting.delete(message.id);
    if (message.error === undefined) question?.resolve(message.result);
    else question?.reject(new Error(message.error));
  });
  return async (command, argument) =>
    await new Promise((resolve, reject) => {
      lastId += 1;
      waiting.set(lastId, { resolve, reject });
      child.send({ id: lastId, command, argument: argument ?? null });
    });
}
