import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { createClient, type RedisClientType } from "@redis/client";
import { freePort } from "./free-port.ts";
import { memoryDisk, privateFolder } from "./private-folder.ts";

/** A real Redis of one's own, on a free port of loopback. */
export interface RedisService {
  /** For `limits.url`. */
  readonly url: string;
  kill(): Promise<void>;
  /** It hears and does not answer, until it goes on. */
  pause(): void;
  resume(): void;
  start(): Promise<void>;
  /** Starts anew with nothing in its memory. */
  forget(): Promise<void>;
  /** Everything is gone, and nobody's line is cut. */
  flush(): Promise<void>;
  /** Does something in it that no server does. */
  command(...command: string[]): Promise<unknown>;
  keys(pattern: string): Promise<readonly string[]>;
  /** Everything below these keys, as text. */
  dump(pattern: string): Promise<string>;
  stop(): Promise<void>;
}

const PROGRAM = "/usr/bin/redis-server";

/** Why tests with Redis cannot run here; nothing when they can. */
export const REDIS_MISSING: string | undefined = existsSync(PROGRAM)
  ? undefined
  : "the Debian package redis-server is not installed";

export async function startRedis(place: string = memoryDisk()): Promise<RedisService> {
  if (REDIS_MISSING !== undefined) throw new Error(REDIS_MISSING);
  // Every write is synced, as an operator is told to have it.
  const folder = privateFolder("redis", place);
  const port = await freePort();
  let server: ChildProcess | undefined;
  const service: RedisService = {
    url: `redis://127.0.0.1:${port}`,
    async start() {
      const args = [
        "--port",
        String(port),
        "--bind",
        "127.0.0.1",
        "--dir",
        folder.path,
        "--save",
        "",
        "--appendonly",
        "yes",
        // Nothing that was answered is forgotten, as docs/several-servers.md asks of an operator.
        "--appendfsync",
        "always",
      ];
      server = spawn(PROGRAM, args, { ...folder.user, stdio: ["ignore", "pipe", "ignore"] });
      await ready(server);
    },
    kill: () => ended(server, "SIGKILL"),
    pause: () => void server?.kill("SIGSTOP"),
    resume: () => void server?.kill("SIGCONT"),
    async forget() {
      await service.kill();
      for (const name of readdirSync(folder.path)) rmSync(join(folder.path, name), { recursive: true });
      await service.start();
    },
    flush: async () => void (await service.command("FLUSHALL")),
    command: (...command) => asked(service.url, (client) => client.sendCommand(command)),
    keys: (pattern) => asked(service.url, async (client) => (await client.keys(pattern)).toSorted()),
    dump: (pattern) =>
      asked(service.url, async (client) => {
        const contents: unknown[] = [];
        for (const key of await client.keys(pattern))
          contents.push(
            key,
            (await client.type(key)) === "hash" ? await client.hGetAll(key) : await client.lRange(key, 0, -1),
          );
        return JSON.stringify(contents);
      }),
    async stop() {
      await ended(server, "SIGTERM");
      folder.remove();
    },
  };
  await service.start();
  return service;
}

async function asked<T>(url: string, ask: (client: RedisClientType) => Promise<T>): Promise<T> {
  const client: RedisClientType = createClient({ url });
  await client.connect();
  try {
    return await ask(client);
  } finally {
    client.destroy();
  }
}

async function ready(server: ChildProcess): Promise<void> {
  if (server.stdout === null) throw new Error("no pipe");
  const seen: string[] = [];
  for await (const line of createInterface({ input: server.stdout })) {
    seen.push(line);
    if (line.includes("Ready to accept connections")) {
      server.stdout.resume();
      return;
    }
  }
  throw new Error(`Redis did not start:\n${seen.join("\n")}`);
}

async function ended(server: ChildProcess | undefined, signal: NodeJS.Signals): Promise<void> {
  if (server === undefined || server.exitCode !== null || server.signalCode !== null) return;
  server.kill(signal);
  await once(server, "exit");
}
