import { connect } from "node:net";
import type { Duplex } from "node:stream";
import { RelayMultiplexer } from "./multiplexer.ts";

export interface EgressRelay {
  /** The inside listens: programs there can reach the proxy. Never settles when the line ends before. */
  readonly ready: Promise<void>;
  /** Why it is over. */
  readonly ended: Promise<string>;
}

/**
 * Carries a sandbox's connections to its door where the door's socket cannot be mounted, because the sandbox is on another machine
 * or has a kernel of its own. The stream belongs to the sandbox: its door is the only place it leads to.
 */
export function relayEgress(stream: Duplex, socketPath: string): EgressRelay {
  let tell: () => void = () => undefined;
  const ready = new Promise<void>((resolve) => {
    tell = resolve;
  });
  const onOpen = () => connect({ path: socketPath, allowHalfOpen: true });
  return { ready, ended: new RelayMultiplexer({ stream, onOpen, onHello: () => tell() }).run() };
}
