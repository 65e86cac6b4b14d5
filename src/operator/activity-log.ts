import type { NetworkAttempt as Attempt, SandboxUse, UseOutcome, Witness, WitnessedUse } from "../sandbox/witness.ts";
import type { Activity } from "./activity.ts";
import { KeptActivity } from "./kept-activity.ts";
import { describeOutcome, describeUse, printedBy } from "./describe-use.ts";

const MAX_TEXT_CHARS = 16_384;

export type Happening = Omit<Activity, "seq" | "time">;
type Listener = (activity: Activity) => void;

interface CellLog {
  readonly kept: KeptActivity;
  readonly listeners: Set<Listener>;
  readonly running: Map<object, SandboxUse>;
  lastSeq: number;
}

/** What happened lately in every sandbox. It keeps texts that are there anyway, and makes nothing of them until somebody looks. */
export class ActivityLog implements Witness {
  readonly #cells = new Map<string, CellLog>();

  began(use: SandboxUse): WitnessedUse {
    const { cellId, tool, traceId: call } = use;
    const cell = this.#cell(cellId);
    const key = {};
    cell.running.set(key, use);
    let hasPrinted = false;
    const { kind, ...said } = describeUse(use);
    addTo(cell, { kind, call, tool, by: use.principal, ...said });
    return {
      printed: ({ stream, text }) => {
        hasPrinted = true;
        addTo(cell, { kind, call, stream, text });
      },
      cameTo: (outcome: UseOutcome) => {
        if (!hasPrinted) for (const { stream, text } of printedBy(outcome)) addTo(cell, { kind, call, stream, text });
        const told = describeOutcome(use, outcome);
        if (told !== undefined) addTo(cell, { kind, call, tool, ...told });
      },
      ended: () => void cell.running.delete(key),
    };
  }

  network(cellId: string, { host, port, allowed, rule, reason }: Attempt): void {
    const cell = this.#cells.get(cellId);
    // One that has ended says its last words later, and one that waits in the pool is nobody's yet.
    if (cell === undefined) return;
    const decision = allowed ? "allow" : "deny";
    addTo(cell, { kind: "network", network: { host, port, decision, rule: rule ?? reason ?? "" } });
  }

  ended(cellId: string, why: string): void {
    if (!this.#cells.has(cellId)) return;
    this.add(cellId, { kind: "state", text: `ended: ${why}` });
    this.#cells.delete(cellId);
  }

  add(cellId: string, happening: Happening): void {
    addTo(this.#cell(cellId), happening);
  }

  /** What is remembered, then what comes, until the returned function is called. */
  follow(cellId: string, listener: Listener): () => void {
    const { kept, listeners } = this.#cell(cellId);
    for (const activity of kept.all()) listener(activity);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }

  /** The tool that runs in it; of several the one that began last. */
  runningIn(cellId: string): string | null {
    const uses = this.#cells.get(cellId)?.running.values() ?? [];
    return [...uses].at(-1)?.tool ?? null;
  }

  /** Which sandbox each call under way works in, by trace id. */
  sandboxesOfCalls(): ReadonlyMap<string, string> {
    const found = new Map<string, string>();
    for (const [cellId, { running }] of this.#cells) {
      for (const { traceId } of running.values()) found.set(traceId, cellId);
    }
    return found;
  }

  #cell(cellId: string): CellLog {
    let cell = this.#cells.get(cellId);
    if (cell === undefined) {
      cell = { kept: new KeptActivity(), listeners: new Set(), running: new Map(), lastSeq: 0 };
      this.#cells.set(cellId, cell);
    }
    return cell;
  }
}

/** Whoever is late keeps adding to a log that nobody can find any more. */
function addTo(cell: CellLog, happening: Happening): void {
  cell.lastSeq += 1;
  const text = happening.text === undefined ? {} : { text: cut(happening.text) };
  const activity = { seq: cell.lastSeq, time: new Date().toISOString(), ...happening, ...text };
  cell.kept.add(activity);
  for (const listener of cell.listeners) listener(activity);
}

function cut(text: string): string {
  return text.length > MAX_TEXT_CHARS ? `${text.slice(0, MAX_TEXT_CHARS)}…` : text;
}
