import type {
  NetworkAttempt as Attempt,
  ObservedCall,
  CallOutcome,
  SandboxObserver,
  CallRecorder,
} from "../sandbox/sandbox-observer.ts";
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

/**
 * The recent activity of every sandbox. It stores existing texts unchanged and formats nothing until an operator opens
 * the page.
 */
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
    // No log: the instance has ended, or waits in the warm pool without an owner.
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

  /** Sends the stored entries to the listener, then new ones, until the returned function is called. */
  follow(instanceId: string, listener: Listener): () => void {
    const { kept, listeners } = this.#log(instanceId);
    for (const activity of kept.all()) listener(activity);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }

  /** The tool that runs in the instance. Of several, the one that started last. */
  runningIn(instanceId: string): string | null {
    const uses = this.#logs.get(instanceId)?.running.values() ?? [];
    return [...uses].at(-1)?.tool ?? null;
  }

  /** The instance in which each call in flight works, by trace id. */
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

/** A call that ends after its instance still adds to its own log, which is no longer in the map. */
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

/**
 * The data of each `activity` event of `GET sandboxes/:id/activity`, in the order of `seq`. All texts come from the
 * sandbox and are not trusted.
 */
export interface Activity {
  readonly seq: number;
  readonly time: string;
  readonly kind: ActivityKind;
  /** The trace id of the call, as in `CallNow.id`, and its tool. */
  readonly call?: string;
  readonly tool?: string;
  /** `shell` and `code`: a piece of the output. `terminal`: the output of the operator's shell. */
  readonly stream?: "stdout" | "stderr";
  readonly text?: string;
  readonly cell?: CodeCell;
  readonly network?: NetworkAttempt;
  /** The operator or the principal that acted. */
  readonly by?: string;
}

export type ActivityKind = "shell" | "code" | "file" | "browser" | "network" | "terminal" | "state";

/** A piece of code: first an entry without its result, then one with it, under the same `call`. */
export interface CodeCell {
  readonly language: string;
  readonly code: string;
  readonly result?: string;
  readonly error?: string;
  readonly images?: readonly { readonly mime: string; readonly data: string }[];
  /** How many further images there were, which were dropped to save memory. */
  readonly imagesGone?: number;
}

export interface NetworkAttempt {
  readonly host: string;
  readonly port: number;
  readonly decision: "allow" | "deny";
  readonly rule: string;
}

const MAX_ENTRIES = 500;
const MAX_KEPT_CHARS = 131_072;
/** Room for two images of the maximum size, or many of the usual size. */
const MAX_PICTURE_CHARS = 4_000_000;

/**
 * The stored activity of one sandbox, for operators who open its page later. Images have a separate limit: a new image
 * drops older images and no text.
 */
export class KeptActivity {
  readonly #entries: Activity[] = [];
  #textChars = 0;
  #pictureChars = 0;

  add(activity: Activity): void {
    this.#entries.push(activity);
    this.#textChars += textCharsOf(activity);
    this.#pictureChars += pictureCharsOf(activity);
    while (this.#entries.length > MAX_ENTRIES || (this.#textChars > MAX_KEPT_CHARS && this.#entries.length > 1))
      this.#dropOldest();
    for (let at = 0; this.#pictureChars > MAX_PICTURE_CHARS && at < this.#entries.length; at += 1)
      this.#dropPicturesAt(at);
  }

  all(): readonly Activity[] {
    return [...this.#entries];
  }

  #dropOldest(): void {
    const oldest = this.#entries.shift();
    if (oldest === undefined) return;
    this.#textChars -= textCharsOf(oldest);
    this.#pictureChars -= pictureCharsOf(oldest);
  }

  /** Drops images of this entry, the last one first, until the limit holds. */
  #dropPicturesAt(at: number): void {
    const entry = this.#entries[at];
    if (entry?.cell?.images === undefined) return;
    const { images, ...cell } = entry.cell;
    const left = [...images];
    while (left.length > 0 && this.#pictureChars > MAX_PICTURE_CHARS)
      this.#pictureChars -= left.pop()?.data.length ?? 0;
    const imagesGone = (cell.imagesGone ?? 0) + images.length - left.length;
    this.#entries[at] = { ...entry, cell: { ...cell, ...(left.length > 0 && { images: left }), imagesGone } };
  }
}

function textCharsOf({ text = "", cell }: Activity): number {
  const { code = "", result = "", error = "" } = cell ?? {};
  return text.length + code.length + result.length + error.length + 100;
}

function pictureCharsOf({ cell }: Activity): number {
  return (cell?.images ?? []).reduce((sum, { data }) => sum + data.length, 0);
}
