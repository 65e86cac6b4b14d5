import { connect, type Socket, isIP } from "node:net";
import { EgressRefusal } from "./refusal.ts";
import { formatTarget, type Target } from "./admission.ts";
import { Resolver } from "node:dns/promises";
import { readFile, stat } from "node:fs/promises";

const MAX_ADDRESSES_TRIED = 6;
const HOSTS_FILE = "/etc/hosts";
const MAX_HOSTS_BYTES = 1024 * 1024;

interface DialTo {
  /** An address that was checked. */
  readonly address: string;
  readonly port: number;
  readonly target: Target;
}

export type Dial = (to: DialTo) => Socket;

/** Connects to a checked address literal. No name is resolved again, so DNS rebinding has no effect. */
export const dialAddress: Dial = ({ address, port }) =>
  connect({ host: address, port, allowHalfOpen: true, noDelay: true });

interface DialOptions {
  readonly target: Target;
  readonly addresses: readonly string[];
  readonly dial: Dial;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** The first of the addresses that answers. Throws an `EgressRefusal`, or the signal's reason. */
export async function dialFirst(options: DialOptions): Promise<{ socket: Socket; address: string }> {
  const { target, signal, dial } = options;
  const addresses = options.addresses.slice(0, MAX_ADDRESSES_TRIED);
  const timeoutMs = Math.ceil(options.timeoutMs / addresses.length);
  let failure = "no address";
  for (const address of addresses) {
    signal.throwIfAborted();
    const socket = dial({ address, port: target.port, target });
    const outcome = await settled(socket, { timeoutMs, signal });
    if (outcome === "connected") return { socket, address };
    socket.destroy();
    failure = outcome;
  }
  signal.throwIfAborted();
  const text = `egress failed: no connection to ${formatTarget(target)} (${failure})`;
  throw failure === "timeout"
    ? new EgressRefusal(504, "connect timeout", text)
    : new EgressRefusal(502, "connect", text);
}

/** `connected`, `timeout`, or the code of the error. */
async function settled(socket: Socket, options: { timeoutMs: number; signal: AbortSignal }): Promise<string> {
  return await new Promise((resolve) => {
    const timer = setTimeout(() => done("timeout"), options.timeoutMs);
    const onAbort = (): void => done("aborted");
    const done = (outcome: string): void => {
      clearTimeout(timer);
      options.signal.removeEventListener("abort", onAbort);
      resolve(outcome);
    };
    options.signal.addEventListener("abort", onAbort, { once: true });
    socket.once("connect", () => done("connected"));
    // Not `once`: a later error without a listener would end the process.
    socket.on("error", (error) => done("code" in error && typeof error.code === "string" ? error.code : "error"));
  });
}

export type ResolveName = (name: string) => Promise<readonly string[]>;

/**
 * Reads the hosts file, then queries DNS for both families. It does not use Node's `lookup`, which blocks one of the four threads that
 * also do file I/O: a sandbox with a slow name server could stall the server.
 */
export function createResolver(options: { timeoutMs: number; servers?: readonly string[] }): ResolveName {
  const dns = new Resolver({ timeout: options.timeoutMs, tries: 2 });
  if (options.servers !== undefined) dns.setServers(options.servers);
  return async (name) => {
    const listed = await fromHostsFile(name);
    if (listed.length > 0) return listed;
    const [v4, v6] = await Promise.allSettled([dns.resolve4(name), dns.resolve6(name)]);
    const addresses = [v4, v6].flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
    if (addresses.length === 0 && v4.status === "rejected") throw v4.reason;
    return addresses;
  };
}

async function fromHostsFile(name: string): Promise<readonly string[]> {
  try {
    if ((await stat(HOSTS_FILE)).size > MAX_HOSTS_BYTES) return [];
    return parseHostsFile(await readFile(HOSTS_FILE, "utf8"), name);
  } catch {
    // There is no hosts file.
    return [];
  }
}

export function parseHostsFile(text: string, name: string): readonly string[] {
  const addresses = new Set<string>();
  for (const line of text.split("\n")) {
    const [address = "", ...names] = (line.split("#", 1)[0] ?? "").trim().split(/\s+/);
    if (isIP(address) !== 0 && names.some((entry) => entry.toLowerCase() === name)) addresses.add(address);
  }
  return [...addresses];
}
