import { once } from "node:events";
import { Agent, type ClientRequest, type IncomingMessage, request as httpRequest } from "node:http";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { call, connectHttp, makePlace, Server } from "../e2e/sandbox-client.ts";
import { until } from "./harness.ts";

/** Node looks once in a second for requests that take too long. */
const CHECK_MS = 1000;
const LIMIT_MS = 3000;
const PACE_MS = 50;

interface Door {
  readonly server: Server;
  readonly origin: string;
  readonly client: Client;
  readonly sessionId: string;
}

async function openDoor(sandbox: Record<string, unknown> = {}): Promise<Door> {
  const seconds = LIMIT_MS / 1000;
  const http = { host: "127.0.0.1", port: 0, requestTimeoutSeconds: seconds, headersTimeoutSeconds: seconds };
  const server = new Server(makePlace(), { http, sandbox });
  const url = await server.url();
  const client = await connectHttp(url);
  const { structuredContent } = await call(client, "sandbox_create");
  return { server, origin: new URL(url).origin, client, sessionId: String(structuredContent?.["session_id"]) };
}

function urlOf({ origin, sessionId }: Door, path: string): string {
  return `${origin}/api/sandboxes/${sessionId}/files/${path}`;
}

function startPut(door: Door, path: string, headers: Record<string, string> = {}): ClientRequest {
  // A connection that could be used again: neither side closes it without a reason.
  const agent = new Agent({ keepAlive: true });
  const asked = httpRequest(urlOf(door, path), { method: "PUT", headers, agent });
  asked.on("error", () => undefined);
  onTestFinished(() => {
    asked.destroy();
    agent.destroy();
  });
  return asked;
}

async function answerTo(asked: ClientRequest): Promise<{ status: number; json: unknown; response: IncomingMessage }> {
  const [response] = (await once(asked, "response")) as [IncomingMessage];
  return { status: response.statusCode ?? 0, json: JSON.parse(await text(response)), response };
}

async function shell({ client, sessionId }: Door, command: string): Promise<string> {
  const result = await call(client, "shell_exec", { command, session_id: sessionId });
  return String(result.structuredContent?.["stdout"]);
}

async function stateOf({ client }: Door): Promise<string | undefined> {
  const { structuredContent } = await call(client, "sandbox_list");
  const [only] = (structuredContent as { sandboxes: { state: string }[] }).sandboxes;
  return only?.state;
}

describe("http.requestTimeoutSeconds and a file that is sent", () => {
  let door: Door;
  beforeAll(async () => {
    door = await openDoor();
  });
  afterAll(() => door.server.stop());

  test("a slow client that goes on sending finishes, however long it takes in all", async () => {
    const asked = startPut(door, "slow");
    const answer = answerTo(asked);
    const startMs = performance.now();
    let sent = 0;
    while (performance.now() - startMs < 2 * LIMIT_MS + 2 * CHECK_MS) {
      asked.write("x");
      sent += 1;
      await delay(PACE_MS);
    }
    asked.end();
    expect(await answer).toMatchObject({ status: 201, json: { size_bytes: sent } });
    expect(await shell(door, "stat -c %s slow")).toBe(`${sent}\n`);
  });

  test.each([
    ["in the middle", "part of it"],
    ["before the first byte", ""],
  ])(
    "a client that falls silent %s is cut off with 408: the old file stays, and the sandbox is free",
    async (_name, first) => {
      await shell(door, "rm -rf -- * .[!.]*; printf old > kept");
      const asked = startPut(door, "kept", { "content-length": "1000000" });
      if (first === "") asked.flushHeaders();
      else asked.write(first);
      const { status, json, response } = await answerTo(asked);
      expect([status, json]).toMatchObject([
        408,
        { error: { message: `nothing of the file came for ${LIMIT_MS / 1000} seconds`, data: { reason: "stalled" } } },
      ]);
      expect(response.headers["connection"]).toBe("close");
      if (!response.socket.destroyed) await once(response.socket, "close");
      expect(await shell(door, "cat kept; ls -A")).toBe("oldkept\n");
      expect(await stateOf(door)).toBe("ready");
    },
  );

  test("a client that is refused at once cannot go on sending for ever", async () => {
    await shell(door, "mkdir -p folder");
    const asked = startPut(door, "folder", { "content-length": "1000000" });
    const closed = once(asked, "close");
    dribble(asked);
    expect((await answerTo(asked)).status).toBe(409);
    await closed;
  });

  test("nor can one that is refused after it was given more time than others", async () => {
    const doomed = await openDoor();
    const asked = startPut(doomed, "file");
    const closed = once(asked, "close");
    dribble(asked);
    await delay(LIMIT_MS + 2 * CHECK_MS);
    await call(doomed.client, "sandbox_destroy", { session_id: doomed.sessionId });
    // A page that is full is written at once, and now there is nowhere to write it to.
    asked.write(Buffer.alloc(1_000_000));
    expect((await answerTo(asked)).status).toBe(404);
    await closed;
    await doomed.server.stop();
  });
});

/** Sends a byte now and then until the test is over. */
function dribble(asked: ClientRequest): void {
  asked.write("x");
  const timer = setInterval(() => asked.write("x"), PACE_MS);
  onTestFinished(() => clearInterval(timer));
}

test("a file of a sandbox that has ended is 404 and makes no new sandbox; a file that is put there does", async () => {
  const door = await openDoor({ idleTimeoutSeconds: 1 });
  const logged = (wanted: string): number => door.server.log.filter(({ message }) => message === wanted).length;
  expect((await fetch(urlOf(door, "a"), { method: "PUT", body: "a" })).status).toBe(201);
  await until(
    () => logged("sandbox ended") === logged("sandbox created"),
    (areOver) => areOver,
  );
  const before = logged("sandbox created");
  const gone = await fetch(urlOf(door, "a"));
  expect([gone.status, await gone.json()]).toMatchObject([
    404,
    {
      error: {
        message: "the sandbox with this session_id has ended (it was idle for too long)",
        data: { kind: "session_not_found" },
      },
    },
  ]);
  expect([logged("sandbox created"), await stateOf(door)]).toEqual([before, undefined]);
  const put = await fetch(urlOf(door, "b"), { method: "PUT", body: "b" });
  expect([put.status, await put.json()]).toMatchObject([201, { session_created: true }]);
  expect(logged("sandbox created")).toBe(before + 1);
  await door.server.stop();
});

test("a sandbox that cannot be made is not logged as made", async () => {
  const { server, client } = await openDoor();
  const refused = await call(client, "sandbox_create", { env: { BAD: "a\0b" } }).catch((error: unknown) => error);
  expect(JSON.stringify(refused instanceof Error ? refused.message : refused)).toContain("BAD");
  await server.logged("sandbox ended");
  expect(server.log.filter(({ message }) => message === "sandbox created")).toHaveLength(1);
  await server.stop();
});
