import type { Socket } from "node:net";
import { type Admission, type AdmissionOptions, admit, type Target } from "./admission.ts";
import type { EgressControls, EgressLimits } from "./controls.ts";
import type { DecisionLog, EgressDecision } from "./decision-log.ts";
import { dialFirst } from "./dial.ts";
import { formatHost } from "../../config/hosts/host.ts";
import { EgressRefusal } from "./refusal.ts";

const NO_BYTES = { bytesSent: 0, bytesReceived: 0 } as const;

/** What all exchanges of one sandbox have in common. */
export interface ExchangeScope {
  readonly admission: AdmissionOptions;
  readonly controls: EgressControls;
  readonly limits: EgressLimits;
  readonly decisions: DecisionLog;
  /** Takes one of the slots that all sandboxes share; undefined when none is free. */
  readonly takeSlot: () => (() => void) | undefined;
  readonly onOpened: (exchange: Exchange) => void;
  readonly onEnded: (exchange: Exchange) => void;
}

/** One connection to an upstream server, with its record. */
export class Exchange {
  readonly upstream: Socket;
  readonly #scope: ExchangeScope;
  readonly #leavePlace: () => void;
  #decision: EgressDecision;

  constructor(options: { scope: ExchangeScope; upstream: Socket; decision: EgressDecision; leavePlace: () => void }) {
    this.upstream = options.upstream;
    this.#scope = options.scope;
    this.#decision = options.decision;
    this.#leavePlace = options.leavePlace;
    this.upstream.once("close", () => this.#end());
    this.#scope.onOpened(this);
  }

  /** Changes the record: the exchange was refused or failed after it was allowed. */
  note(facts: { allowed: boolean; reason: string }): void {
    this.#decision = { ...this.#decision, ...facts };
  }

  #end(): void {
    const { bytesWritten, bytesRead } = this.upstream;
    this.#leavePlace();
    this.#scope.onEnded(this);
    const facts = { isOpen: false, bytesSent: bytesWritten, bytesReceived: bytesRead };
    this.#scope.decisions.update(this.#decision, facts);
  }
}

/** Decides, connects and records. Throws an `EgressRefusal`, recorded already, or the signal's reason. */
export async function openExchange(target: Target, scope: ExchangeScope, signal: AbortSignal): Promise<Exchange> {
  const leavePlace = scope.takeSlot();
  let admission: Admission | undefined;
  try {
    if (leavePlace === undefined)
      throw new EgressRefusal(503, "busy", "egress failed: too many connections; try again");
    admission = await admit(target, scope.admission);
    const { socket, address } = await dialFirst({
      target,
      signal,
      addresses: admission.addresses,
      dial: scope.controls.dial,
      timeoutMs: scope.limits.connectTimeoutMs,
    });
    socket.setTimeout(scope.limits.idleTimeoutMs);
    const facts = { allowed: true, isOpen: true, address, rule: admission.rule };
    const decision = scope.decisions.add({ ...named(target), ...NO_BYTES, ...facts });
    return new Exchange({ scope, upstream: socket, decision, leavePlace });
  } catch (thrown) {
    leavePlace?.();
    if (thrown instanceof EgressRefusal) recordRefusal(scope.decisions, { refusal: thrown, target, admission });
    throw thrown;
  }
}

/** `admission`: the rules allowed it, and the connection failed. */
export function recordRefusal(
  decisions: DecisionLog,
  facts: { refusal: EgressRefusal; target?: Target; admission?: Admission | undefined },
): void {
  const { refusal, target, admission } = facts;
  decisions.add({
    ...(target === undefined ? { host: "", port: 0 } : named(target)),
    ...NO_BYTES,
    allowed: admission !== undefined,
    isOpen: false,
    reason: refusal.reason,
    ...(admission === undefined ? {} : { rule: admission.rule }),
  });
}

function named(target: Target): { host: string; port: number } {
  return { host: formatHost(target.host), port: target.port };
}
