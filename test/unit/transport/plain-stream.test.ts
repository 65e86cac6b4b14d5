import { once } from "node:events";
import { createServer, get, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import type { Principal } from "../../../src/auth/principal.ts";
import type { HttpExchange } from "../../../src/transport/http/exchange-io.ts";
import { MAX_UNREAD_BYTES, PlainStream } from "../../../src/transport/http/event-stream.ts";

const NOTE = { jsonrpc: "2.0", method: "notifications/message", params: {} } as const;
const servers = new Set<Server>();

afterEach(() => {
  for (const server of servers) server.closeAllConnections();
  for (const server of servers) server.close();
  servers.clear();
});

/** Answers one request with a stream, and gives back what its client receives. */
async function answer(
  write: (stream: PlainStream) => void,
  { canStream = true, expiresAt }: { readonly canStream?: boolean; readonly expiresAt?: number } = {},
): Promise<IncomingMessage> {
  const principal: Principal = { id: "ada", scopes: [], claims: {}, ...(expiresAt !== undefined && { expiresAt }) };
  const server = createServer((request, response) => {
    const exchange: HttpExchange = { request, response, principal, label: undefined, traceId: "t", release() {} };
    const stream = new PlainStream(exchange, { keepAliveMs: 60_000, canStream });
    write(stream);
    if (!response.headersSent) response.writeHead(200).end("no stream");
  }).listen(0, "127.0.0.1");
  servers.add(server);
  await once(server, "listening");
  const request = get({ port: (server.address() as AddressInfo).port, agent: false });
  const [response] = await once(request, "response");
  return response;
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) text += String(chunk);
  return text;
}

test("an answer that is longer than what a client may leave unread arrives whole", async () => {
  const long = "x".repeat(MAX_UNREAD_BYTES + 1);
  const response = await answer((stream) => {
    stream.send(NOTE);
    expect(stream.finish([{ jsonrpc: "2.0", id: 1, result: { long } }])).toBe(true);
  });
  const [first, second] = (await textOf(response)).split("\n\n");
  expect(first).toBe(`event: message\ndata: ${JSON.stringify(NOTE)}`);
  expect(second).toHaveLength(
    `event: message\ndata: {"jsonrpc":"2.0","id":1,"result":{"long":""}}`.length + long.length,
  );
});

test("a client that takes no stream is told nothing, and gets its answer as JSON", async () => {
  const response = await answer(
    (stream) => {
      stream.send(NOTE);
      expect(stream.finish([])).toBe(false);
    },
    { canStream: false },
  );
  expect(await textOf(response)).toBe("no stream");
});

test("a stream ends with the token of its reader, and an answer that comes later is not sent", async () => {
  let finish = (): boolean => false;
  const response = await answer(
    (stream) => {
      stream.send(NOTE);
      finish = () => stream.finish([{ jsonrpc: "2.0", id: 1, result: {} }]);
    },
    { expiresAt: Math.floor(Date.now() / 1000) },
  );
  expect(await textOf(response)).toBe(`event: message\ndata: ${JSON.stringify(NOTE)}\n\n`);
  expect(finish()).toBe(true);
});
