import { connect, type Socket } from "node:net";
import { EgressRefusal } from "./refusal.ts";
import { formatTarget, type Target } from "./admission.ts";

export interface DialTo {
  /** An address that was checked. */
  readonly address: string;
  readonly port: number;
  readonly target: Target;
}

export type Dial = (to: DialTo) => Socket;

/** The address is a literal, so nothing is resolved again: a name that changes its mind meanwhile changes nothing. */
export const dialAddress: Dial = ({ address, port }) =>
  connect({ host: address, port, allowHalfOpen: true, noDelay: true });

export interface DialOptions {
  readonly target: Target;
  readonly addresses: readonly string[];
  readonly dial: Dial;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

const MAX_ADDRESSES_TRIED = 6;

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
    // The listener stays, so that an error after the verdict ends in nothing worse than a closed socket.
    socket.on("error", (error) => done("code" in error && typeof error.code === "string" ? error.code : "error"));
  });
}
