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

/** `GET sandboxes/:id/activity`, the data of each event `activity`: one thing that happened in a sandbox, in the order of `seq`. All texts are the sandbox's own: nothing in them is trusted. */
export interface Activity {
  readonly seq: number;
  readonly time: string;
  readonly kind: ActivityKind;
  /** The call, as in `CallNow.id`, and its tool. */
  readonly call?: string;
  readonly tool?: string;
  /** `shell` and `code`: a piece of what was printed; `terminal`: what the operator's shell printed. */
  readonly stream?: "stdout" | "stderr";
  readonly text?: string;
  readonly cell?: CodeCell;
  readonly network?: NetworkAttempt;
  /** The operator who did it, or the principal. */
  readonly by?: string;
}

export type ActivityKind = "shell" | "code" | "file" | "browser" | "network" | "terminal" | "state";

/** A piece of code that was run: first without, then with what came of it, under the same `call`. */
export interface CodeCell {
  readonly language: string;
  readonly code: string;
  readonly result?: string;
  readonly error?: string;
  readonly images?: readonly { readonly mime: string; readonly data: string }[];
  /** How many pictures there were beside these, for which there was no room any more. */
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
/** Two of the largest pictures, or many of the usual ones. */
const MAX_PICTURE_CHARS = 4_000_000;

/** What is kept of one sandbox for whoever looks later. Pictures have room of their own: they drive out older ones, and no text. */
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

  /** From the last on, as many as there is no room for. */
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
