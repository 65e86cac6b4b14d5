import type {
  NetworkAttempt as Attempt,
  ObservedCall,
  CallOutcome,
  SandboxObserver,
  CallRecorder,
} from "../sandbox/sandbox-observer.ts";
import type { Activity } from "./activity.ts";
import { KeptActivity } from "./kept-activity.ts";
import { describeOutcome, describeUse, printedBy } from "./describe-use.ts";

const MAX_TEXT_CHARS = 16_384;

export type Happening = Omit<Activity, "seq" | "time">;
type Listener = (activity: Activity) => void;

interface InstanceLog {
  readonly kept: KeptActivity;
  readonly listeners: Set<Listener>;
  readonly running: Map<object, ObservedCall>;
  lastSeq: number;
}

/** What happened lately in every sandbox. It keeps texts that are there anyway, and makes nothing of them until somebody looks. */
export class ActivityLog implements SandboxObserver {
  readonly #logs = new Map<string, InstanceLog>();

  callStarted(use: ObservedCall): CallRecorder {
    const { instanceId, tool, traceId: call } = use;
    const log = this.#log(instanceId);
    const key = {};
    log.running.set(key, use);
    let hasPrinted = false;
    const { kind, ...said } = describeUse(use);
    addTo(log, { kind, call, tool, by: use.principal, ...said });
    return {
      output: ({ stream, text }) => {
        hasPrinted = true;
        addTo(log, { kind, call, stream, text });
      },
      outcome: (outcome: CallOutcome) => {
        if (!hasPrinted) for (const { stream, text } of printedBy(outcome)) addTo(log, { kind, call, stream, text });
        const told = describeOutcome(use, outcome);
        if (told !== undefined) addTo(log, { kind, call, tool, ...told });
      },
      ended: () => void log.running.delete(key),
    };
  }

  network(instanceId: string, { host, port, allowed, rule, reason }: Attempt): void {
    const log = this.#logs.get(instanceId);
    // One that has ended says its last words later, and one that waits in the pool is nobody's yet.
    if (log === undefined) return;
    const decision = allowed ? "allow" : "deny";
    addTo(log, { kind: "network", network: { host, port, decision, rule: rule ?? reason ?? "" } });
  }

  ended(instanceId: string, why: string): void {
    if (!this.#logs.has(instanceId)) return;
    this.add(instanceId, { kind: "state", text: `ended: ${why}` });
    this.#logs.delete(instanceId);
  }

  add(instanceId: string, happening: Happening): void {
    addTo(this.#log(instanceId), happening);
  }

  /** What is remembered, then what comes, until the returned function is called. */
  follow(instanceId: string, listener: Listener): () => void {
    const { kept, listeners } = this.#log(instanceId);
    for (const activity of kept.all()) listener(activity);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }

  /** The tool that runs in it; of several the one that began last. */
  runningIn(instanceId: string): string | null {
    const uses = this.#logs.get(instanceId)?.running.values() ?? [];
    return [...uses].at(-1)?.tool ?? null;
  }

  /** Which sandbox each call under way works in, by trace id. */
  sandboxesOfCalls(): ReadonlyMap<string, string> {
    const found = new Map<string, string>();
    for (const [instanceId, { running }] of this.#logs) {
      for (const { traceId } of running.values()) found.set(traceId, instanceId);
    }
    return found;
  }

  #log(instanceId: string): InstanceLog {
    let log = this.#logs.get(instanceId);
    if (log === undefined) {
      log = { kept: new KeptActivity(), listeners: new Set(), running: new Map(), lastSeq: 0 };
      this.#logs.set(instanceId, log);
    }
    return log;
  }
}

/** Whoever is late keeps adding to a log that nobody can find any more. */
function addTo(log: InstanceLog, happening: Happening): void {
  log.lastSeq += 1;
  const text = happening.text === undefined ? {} : { text: cut(happening.text) };
  const activity = { seq: log.lastSeq, time: new Date().toISOString(), ...happening, ...text };
  log.kept.add(activity);
  for (const listener of log.listeners) listener(activity);
}

function cut(text: string): string {
  return text.length > MAX_TEXT_CHARS ? `${text.slice(0, MAX_TEXT_CHARS)}…` : text;
}
