import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

/** What comes back until the other side closes. An attacker's client: it sends any bytes it likes. */
export async function exchange(path: string, ...parts: readonly (string | Buffer)[]): Promise<string> {
  const socket = connect(path);
  for (const part of parts) socket.write(part);
  return await readAll(socket);
}

export async function get(path: string, url: string, headers: readonly string[] = []): Promise<string> {
  const host = /^http:\/\/([^/]*)/.exec(url)?.[1] ?? "";
  const lines = headers.some((line) => /^host:/i.test(line)) ? headers : [`Host: ${host}`, ...headers];
  return await exchange(path, [`GET ${url} HTTP/1.1`, ...lines, "", ""].join("\r\n"));
}

export async function readAll(socket: Socket): Promise<string> {
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  socket.on("error", () => {});
  await once(socket, "close").catch(() => {});
  return Buffer.concat(chunks).toString("latin1");
}

export interface Tunnel {
  readonly status: number;
  readonly socket: Socket;
  /** The text of a refusal. */
  readonly text: string;
}

export async function openTunnel(path: string, target: string, headers: readonly string[] = []): Promise<Tunnel> {
  const socket = connect(path);
  socket.on("error", () => {});
  socket.write(
    [`CONNECT ${target} HTTP/1.1`, ...(headers.length > 0 ? headers : [`Host: ${target}`]), "", ""].join("\r\n"),
  );
  let text = "";
  while (!text.includes("\r\n\r\n")) {
    const chunk = await nextChunk(socket);
    if (chunk === undefined) break;
    text += chunk.toString("latin1");
  }
  socket.pause();
  const end = text.indexOf("\r\n\r\n") + 4;
  // A host that speaks first may be heard together with the proxy's own answer.
  if (text.startsWith("HTTP/1.1 200 ") && text.length > end) socket.unshift(Buffer.from(text.slice(end), "latin1"));
  const status = Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 0);
  if (status !== 200 && !socket.closed) text += await readAll(socket.resume());
  return { status, socket, text };
}

/** Undefined: the other side closed, or broke off. */
async function nextChunk(socket: Socket): Promise<Buffer | undefined> {
  return await new Promise((resolve) => {
    socket.once("data", resolve);
    socket.once("close", () => resolve(undefined));
  });
}

/** GET over TLS inside a tunnel; the answer, or the error. */
export async function getSecurely(tunnel: Tunnel, options: { servername?: string; host: string }): Promise<string> {
  const { servername = "", host } = options;
  const secured = connectTls({ socket: tunnel.socket, servername, rejectUnauthorized: false });
  const failed = new Promise<string>((resolve) => secured.on("error", (error) => resolve(`error: ${error.message}`)));
  secured.write(`GET /secret HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  return await Promise.race([readAll(secured as Socket), failed]);
}
