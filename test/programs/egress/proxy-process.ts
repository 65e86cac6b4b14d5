// The proxy, on a machine of its own: a network namespace with nothing in it but loopback and a cable to the stand-in hosts.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import type { LookupOptions } from "node:dns";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { callbackify } from "node:util";
import type { EgressControls, EgressLimits } from "../../../src/sandbox/network/controls.ts";
import { createEgress, type Egress } from "../../../src/sandbox/network/egress.ts";
import type { EgressListener } from "../../../src/sandbox/network/egress-listener.ts";
import { SILENT_LOGGER } from "../../../src/telemetry/logger.ts";
import { createNaiveRelay } from "./naive-relay.ts";
import { PLACES, PORTS } from "./places.ts";

export interface OpenRequest {
  readonly allow: readonly string[];
  /** For each name, what each lookup answers; the last answer stays. */
  readonly dns?: Readonly<Record<string, readonly (readonly string[])[]>>;
  readonly without?: readonly ("addresses" | "pinning" | "host header" | "server name" | "framing")[];
  readonly limits?: Partial<EgressLimits>;
}

export interface DoorState {
  readonly bytesSent: number;
  readonly bytesReceived: number;
  readonly openConnections: number;
  readonly decisions: ReturnType<EgressListener["decisions"]>;
  readonly lookups: readonly string[];
}

interface OpenDoor {
  readonly egress: Egress;
  readonly listener: EgressListener;
  readonly lookups: string[];
}

const folder = mkdtempSync(join(tmpdir(), "owlclaw-egress-"));
const listeners = new Map<string, OpenDoor>();
let hosts: ChildProcess;
let relays = 0;
let lastQuestion = 0;

process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
process.on("disconnect", () => process.exit());
process.on("message", (message: { id: number; command: string; argument: unknown }) => {
  obey(message.command, message.argument).then(
    (result) => process.send?.({ id: message.id, result }),
    (error: Error) => process.send?.({ id: message.id, error: error.stack }),
  );
});
await makeWorld();
process.send?.({ id: 0, result: "ready" });

async function obey(command: string, argument: unknown): Promise<unknown> {
  switch (command) {
    case "open":
      return await open(argument as OpenRequest);
    case "state":
      return state(argument as string);
    case "close":
      await listeners.get(argument as string)?.egress.close();
      listeners.delete(argument as string);
      return true;
    case "hosts":
    case "forget":
      return await askHosts(command);
    case "own server":
      return await startOwnServer();
    default:
      throw new Error(`unknown command ${command}`);
  }
}

async function makeWorld(): Promise<void> {
  const ip = (...args: string[]): unknown => execFileSync("ip", args);
  const file = join(import.meta.dirname, "hosts-process.ts");
  hosts = spawn("unshare", ["--net", process.execPath, "--import", "tsx", file], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  await once(hosts, "message");
  ip("link", "set", "lo", "up");
  ip("link", "add", "cable0", "type", "veth", "peer", "name", "cable1");
  ip("link", "set", "cable1", "netns", String(hosts.pid));
  ip("addr", "add", `${PLACES.proxyMachine}/24`, "dev", "cable0");
  ip("-6", "addr", "add", `${PLACES.proxyMachineV6}/64`, "dev", "cable0", "nodad");
  ip("link", "set", "cable0", "up");
  await askHosts("cable");
  ip("route", "add", "default", "via", PLACES.public);
  ip("-6", "route", "add", "default", "via", PLACES.publicV6);
}

async function askHosts(command: string): Promise<unknown> {
  lastQuestion += 1;
  const id = lastQuestion;
  return await new Promise((resolve) => {
    const hear = (message: { readonly id: number; readonly result: unknown }): void => {
      if (message.id !== id) return;
      hosts.off("message", hear);
      resolve(message.result);
    };
    hosts.on("message", hear);
    hosts.send({ id, command });
  });
}

async function open(request: OpenRequest): Promise<string> {
  if (request.without?.includes("framing") === true) {
    relays += 1;
    const path = join(folder, `naive-${relays}`);
    await new Promise<void>((resolve) => createNaiveRelay(PLACES.public).listen(path, resolve));
    return path;
  }
  const lookups: string[] = [];
  const resolve = async (name: string): Promise<readonly string[]> => {
    const answers = request.dns?.[name];
    const before = lookups.filter((entry) => entry === name).length;
    lookups.push(name);
    const answer = answers?.[Math.min(before, answers.length - 1)];
    if (answer === undefined) throw Object.assign(new Error("no such name"), { code: "ENOTFOUND" });
    return answer;
  };
  const controls = controlsWithout(request, resolve);
  const egress = createEgress({ logger: SILENT_LOGGER, folder, resolve, controls, limits: request.limits ?? {} });
  const listener = await egress.open({ sandboxId: "attacker", allow: request.allow });
  listeners.set(listener.socketPath, { egress, listener, lookups });
  return listener.socketPath;
}

function controlsWithout(
  request: OpenRequest,
  resolve: (name: string) => Promise<readonly string[]>,
): Partial<EgressControls> {
  const without = new Set(request.without);
  return {
    ...(without.has("addresses") ? { classify: () => undefined } : {}),
    ...(without.has("host header") ? { hostHeaderAgrees: () => true } : {}),
    ...(without.has("server name") ? { serverNameAgrees: () => true } : {}),
    // The usual mistake: check an answer, then connect by name.
    ...(without.has("pinning")
      ? {
          dial: ({ address, port, target }) =>
            connect({
              port,
              host: target.host.kind === "name" ? target.host.name : address,
              lookup: callbackify(async (name: string, _options: LookupOptions) => [
                { address: (await resolve(name))[0] ?? "", family: 4 },
              ]),
            }),
        }
      : {}),
  };
}

function state(path: string): DoorState | undefined {
  const entry = listeners.get(path);
  if (entry === undefined) return undefined;
  const { bytesSent, bytesReceived, openConnections } = entry.listener;
  return { bytesSent, bytesReceived, openConnections, decisions: entry.listener.decisions(), lookups: entry.lookups };
}

/** The MCP server itself, as an agent would like to reach it: on every address of the machine. */
async function startOwnServer(): Promise<boolean> {
  const main = join(import.meta.dirname, "..", "..", "..", "src", "main.ts");
  const argv = ["mcp-server", "start", "--transport", "http", "--host", "0.0.0.0", "--port", String(PORTS.mcp)];
  const env = { ...process.env, MCP_SERVER_ALLOW_UNAUTHENTICATED: "true", SANDBOX_ROOT: join(folder, "data") };
  const server = spawn(process.execPath, ["--import", "tsx", main, ...argv], {
    env,
    stdio: ["pipe", "ignore", "ignore"],
  });
  process.on("exit", () => server.kill("SIGKILL"));
  for (;;) {
    const isUp = await fetch(`http://127.0.0.1:${PORTS.mcp}/mcp`).then(
      (answer) => answer.ok,
      () => false,
    );
    if (isUp) return true;
    if (server.exitCode !== null) throw new Error(`the server ended with ${server.exitCode}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
