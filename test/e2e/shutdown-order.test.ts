import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { processesBelow } from "../escape/sandbox-lab.ts";
import { call, connectHttp, makePlace, type Place, Server } from "./sandbox-client.ts";

const GUEST_FOLDER = "/shared";

/** A folder that the sandboxes share with the test, so that the test says when a command ends. */
function shareFolder({ folder }: Place): string {
  const shared = join(folder, "shared");
  mkdirSync(shared);
  chmodSync(shared, 0o777);
  return shared;
}

/** A command that runs until the test lets it, sent as a plain client would. */
function startCall(url: string, sessionId: string): Promise<Response> {
  const command = `touch ${GUEST_FOLDER}/started; until [ -e ${GUEST_FOLDER}/go ]; do sleep 0.02; done; echo done`;
  const params = { name: "shell_exec", arguments: { session_id: sessionId, command } };
  return fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
  });
}

async function isDraining(url: string): Promise<boolean> {
  return (await fetch(new URL("/health/ready", url))).status === 503;
}

/** A connection with half a request on it: the server has it open and waits for the rest. */
async function openHalfRequest(url: string): Promise<{ readonly closed: Promise<unknown>; isOpen(): boolean }> {
  const { port, hostname } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, "connect");
  onTestFinished(() => void socket.destroy());
  socket.write("GET /health HTTP/1.1\r\n");
  const closed = new Promise((resolve) => socket.on("error", () => undefined).once("close", resolve));
  return { closed, isOpen: () => !socket.closed };
}

async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 10));
}

function isRunning({ pid, command }: { readonly pid: number; readonly command: string }): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim() === command;
  } catch {
    // It is gone.
    return false;
  }
}

test("[001-order] a stop takes no new requests, waits for running ones, stops the sandboxes, and closes HTTP last", async () => {
  const place = makePlace();
  const shared = shareFolder(place);
  const sandbox = { volumes: [`${shared}:${GUEST_FOLDER}`], pool: { size: 1 } };
  const server = new Server(place, { sandbox });
  const url = await server.url();
  const client = await connectHttp(url);
  const created = [await call(client, "sandbox_create"), await call(client, "sandbox_create")];
  const [busy = ""] = created.map(({ structuredContent }) => String(structuredContent?.["session_id"]));
  const answer = startCall(url, busy);
  await until(() => existsSync(join(shared, "started")));
  const half = await openHalfRequest(url);
  const processes = processesBelow(server.child.pid).filter(({ command }) => command !== "");
  expect(processes.length).toBeGreaterThan(2);
  const count = (wanted: string): number => server.log.filter(({ message }) => message === wanted).length;

  server.child.kill("SIGTERM");
  await server.logged("stopping");
  await until(() => isDraining(url));
  expect([count("sandbox ended"), server.child.exitCode, half.isOpen()]).toEqual([0, null, true]);

  writeFileSync(join(shared, "go"), "");
  const response = await answer;
  expect([response.status, await response.json()]).toMatchObject([
    200,
    { id: 1, result: { structuredContent: { stdout: "done\n", exit_code: 0 } } },
  ]);

  await half.closed;
  expect(count("sandbox ended"), "sandboxes that had ended when the last connection was closed").toBe(2);
  if (server.child.exitCode === null) await once(server.child, "exit");
  expect(server.child.exitCode).toBe(0);
  expect(processes.filter(isRunning)).toEqual([]);

  const order = server.log.flatMap(({ message, tool, outcome }) =>
    ["stopping", "sandbox ended", "stopped"].includes(String(message))
      ? [message]
      : tool === "shell_exec"
        ? [`call ${String(outcome)}`]
        : [],
  );
  expect(order).toEqual(["stopping", "call ok", "sandbox ended", "sandbox ended", "stopped"]);
});
