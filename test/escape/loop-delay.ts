import { once } from "node:events";
import { mkdtempSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type HttpServerProcess, type ServerOptions, startHttp } from "./server.ts";

/** Runs in the server's process: answers each connection with the longest event loop delay since the last one. */
const PRELOADED = `
import { createServer } from "node:net";
import { monitorEventLoopDelay } from "node:perf_hooks";
const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();
createServer((socket) => {
  socket.end(String(delay.max / 1e6));
  delay.reset();
}).listen(process.env.LOOP_DELAY_SOCKET).unref();
`;

/** A server that says how long its event loop was blocked. */
export interface MeasuredServer extends HttpServerProcess {
  /** The longest delay in milliseconds since the last question. */
  longestDelayMs(): Promise<number>;
}

export async function startMeasured(
  handlers: string,
  config: NonNullable<ServerOptions["config"]> = {},
): Promise<MeasuredServer> {
  const folder = mkdtempSync(join(tmpdir(), "owlclaw-loop-"));
  const preloaded = join(folder, "loop-delay.mjs");
  const socket = join(folder, "loop-delay.sock");
  writeFileSync(preloaded, PRELOADED);
  writeFileSync(join(folder, "attacked.ts"), handlers);
  const server = await startHttp({
    config: { handlers: { paths: [join(folder, "attacked.ts")] }, ...config },
    nodeArgs: ["--import", preloaded],
    env: { LOOP_DELAY_SOCKET: socket },
  });
  return { ...server, longestDelayMs: () => readDelay(socket) };
}

async function readDelay(path: string): Promise<number> {
  const socket = connect(path);
  let text = "";
  socket.setEncoding("utf8").on("data", (piece: string) => (text += piece));
  await once(socket, "close");
  return Number(text);
}
