import { performance } from "node:perf_hooks";
import { HttpConnection, headerOf } from "./http-connection.ts";
import { INITIALIZE, INITIALIZED, callBody, callHeaders, encode, isAnswerTo } from "./requests.ts";
import type { ServerProcess } from "./server-process.ts";
import type { Door } from "./targets.ts";

export interface LoadOptions {
  readonly server: ServerProcess;
  readonly door: Door;
  readonly token?: string | undefined;
  readonly connections: number;
  /** When to stop: after so long, or after so many calls. */
  readonly until: { readonly seconds: number } | { readonly calls: number };
}

export interface LoadResult {
  readonly calls: number;
  readonly seconds: number;
  readonly latenciesMs: readonly number[];
}

let lastId = 0;

/** Keeps each connection busy with one call at a time, and checks each answer. The first wrong answer ends the run. */
export async function runLoad(options: LoadOptions): Promise<LoadResult> {
  const clients = await Promise.all(Array.from({ length: options.connections }, () => openClient(options)));
  const latenciesMs: number[] = [];
  const startedAt = performance.now();
  const isOver = stopRule(options.until, startedAt, latenciesMs);
  try {
    await Promise.all(clients.map((client) => keepCalling(client, isOver, latenciesMs)));
    return { calls: latenciesMs.length, seconds: (performance.now() - startedAt) / 1000, latenciesMs };
  } finally {
    await Promise.all(clients.map((client) => client.close()));
  }
}

interface Client {
  call(id: number): Promise<string>;
  close(): Promise<void>;
}

async function keepCalling(client: Client, isOver: () => boolean, latenciesMs: number[]): Promise<void> {
  while (!isOver()) {
    lastId += 1;
    const id = lastId;
    const startedAt = performance.now();
    const answer = await client.call(id);
    latenciesMs.push(performance.now() - startedAt);
    if (!isAnswerTo(id, answer)) throw new Error(`a wrong answer to call ${id}: ${answer}`);
  }
}

function stopRule(until: LoadOptions["until"], startedAt: number, done: readonly unknown[]): () => boolean {
  if ("calls" in until) return () => done.length >= until.calls;
  const endsAt = startedAt + until.seconds * 1000;
  return () => performance.now() >= endsAt;
}

async function openClient({ server, door, token }: LoadOptions): Promise<Client> {
  if (door === "stdio") return { call: (id) => server.request(id, callBody(door, id)), close: () => Promise.resolve() };
  const url = new URL("/mcp", server.origin);
  const connection = await HttpConnection.open(url);
  const authorization = token === undefined ? {} : { Authorization: `Bearer ${token}` };
  const session = door === "http-2025" ? await handshake(connection, url, authorization) : {};
  const headers = { ...callHeaders(door), ...authorization, ...session };
  return {
    async call(id) {
      const { status, body } = await connection.exchange(
        encode({ method: "POST", url, headers, body: callBody(door, id) }),
      );
      if (status !== 200) throw new Error(`status ${status}: ${body}`);
      return body;
    },
    async close() {
      if ("Mcp-Session-Id" in session) await connection.exchange(encode({ method: "DELETE", url, headers, body: "" }));
      connection.close();
    },
  };
}

/** As a 2025-11-25 client does it. Whether there is a session is for the server to say. */
async function handshake(
  connection: HttpConnection,
  url: URL,
  authorization: Readonly<Record<string, string>>,
): Promise<Readonly<Record<string, string>>> {
  const plain = { ...callHeaders("http-plain"), ...authorization };
  const first = await connection.exchange(encode({ method: "POST", url, headers: plain, body: INITIALIZE }));
  if (first.status !== 200) throw new Error(`initialize was answered with ${first.status}: ${first.body}`);
  const id = headerOf(first.head, "mcp-session-id");
  const session: Readonly<Record<string, string>> = id === undefined ? {} : { "Mcp-Session-Id": id };
  const headers = { ...callHeaders("http-2025"), ...authorization, ...session };
  await connection.exchange(encode({ method: "POST", url, headers, body: INITIALIZED }));
  return session;
}
