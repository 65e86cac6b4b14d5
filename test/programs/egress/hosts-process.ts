// Stand-in hosts of the internet and of an inner network, in a network namespace of their own at the end of a virtual cable.
import { execFileSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { createServer, type Server, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import type { TLSSocket } from "node:tls";
import { selfSignedCertificatePem } from "../../unit/auth/self-signed-certificate.ts";
import { PLACES, PORTS, type SeenRequest } from "./places.ts";

let requests: SeenRequest[] = [];
const connections = new Set<Socket>();

process.on("message", (message: { id: number; command: string }) => {
  void obey(message.command).then((result) => process.send?.({ id: message.id, result }));
});
process.on("disconnect", () => process.exit());
process.send?.({ id: 0, result: "born" });

async function obey(command: string): Promise<unknown> {
  if (command === "cable") return await settle();
  if (command === "forget") requests = [];
  return { requests, openConnections: connections.size };
}

/** The other end has put the cable into this namespace. */
async function settle(): Promise<void> {
  const ip = (...args: string[]): unknown => execFileSync("ip", args);
  ip("link", "set", "lo", "up");
  for (const address of [PLACES.public, PLACES.otherPublic]) ip("addr", "add", `${address}/24`, "dev", "cable1");
  for (const address of [PLACES.metadata, PLACES.private]) ip("addr", "add", `${address}/32`, "dev", "lo");
  ip("-6", "addr", "add", `${PLACES.uniqueLocal}/128`, "dev", "lo");
  ip("-6", "addr", "add", `${PLACES.publicV6}/64`, "dev", "cable1", "nodad");
  ip("link", "set", "cable1", "up");
  const keys = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const cert = selfSignedCertificatePem(keys);
  const key = keys.privateKey.export({ type: "pkcs8", format: "pem" });
  const servers: [Server, number][] = [
    [createHttpServer({ maxHeaderSize: 65_536 }, (request, response) => void answer(request, response)), PORTS.http],
    [createHttpsServer({ key, cert }, (request, response) => void answer(request, response)), PORTS.https],
    [createServer((socket) => socket.on("error", () => {}).end("SSH-2.0-standin\r\n")), PORTS.ssh],
  ];
  for (const [server, port] of servers) await listen(server, port);
}

async function listen(server: Server, port: number): Promise<void> {
  server.on("connection", (socket) => {
    connections.add(socket);
    socket.on("error", () => {}).once("close", () => connections.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(port, "::", resolve));
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? "/", "http://host.test");
  const address = (request.socket.localAddress ?? "").replace("::ffff:", "");
  const body = await text(request).catch(() => "");
  requests.push({ address, method: request.method ?? "", url: request.url ?? "", headers: request.rawHeaders, body });
  if (url.pathname === "/huge") return sendHuge(response, Number(url.searchParams.get("bytes")));
  if (url.pathname === "/silent") return;
  if (url.pathname === "/redirect") response.writeHead(302, { Location: url.searchParams.get("to") ?? "" });
  const { servername } = request.socket as Partial<TLSSocket>;
  const name = typeof servername === "string" && servername !== "" ? ` as ${servername}` : "";
  response.end(
    `host ${address}${name} for ${request.headers.host ?? "nobody"}: ${request.method} ${request.url} ${body}`,
  );
}

function sendHuge(response: ServerResponse, bytes: number): void {
  const block = Buffer.alloc(65_536, "x");
  let left = bytes;
  const more = (): void => {
    while (left > 0) {
      const part = block.subarray(0, Math.min(left, block.length));
      left -= part.length;
      if (!response.write(part)) return void response.once("drain", more);
    }
    response.end();
  };
  more();
}
