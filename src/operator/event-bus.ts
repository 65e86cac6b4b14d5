import { type EventSink, type ApiRoute, Events } from "./api.ts";
import type { Now, NowChange } from "./contract.ts";
import type { CurrentState } from "./current-state.ts";
import type { PastSandbox } from "./contract-files.ts";

/** At most four updates a second. */
const TICK_MS = 250;
/** Health and usage change slowly and are expensive to compute. */
const LOOK_MS = 2000;

/** Sends changes to all viewers. Each change is computed once for all of them. Without a viewer no timer runs. */
export class EventBus {
  readonly #state: CurrentState;
  readonly #viewers = new Set<EventSink>();
  #shown: Shown | undefined;
  #ticking: NodeJS.Timeout | undefined;
  #looking: NodeJS.Timeout | undefined;
  #isLooking = false;

  constructor(state: CurrentState) {
    this.#state = state;
  }

  /** Sends the whole state, then changes, until the returned function is called. */
  join(viewer: EventSink): () => void {
    if (this.#viewers.size === 0) this.#start();
    else this.#tick();
    this.#viewers.add(viewer);
    this.#shown ??= shownOf(this.#state.now());
    viewer.send("now", this.#shown.text());
    return () => {
      this.#viewers.delete(viewer);
      if (this.#viewers.size === 0) this.#stop();
    };
  }

  #start(): void {
    this.#shown = undefined;
    this.#ticking = setInterval(() => this.#tick(), TICK_MS);
    this.#ticking.unref();
    this.#look();
  }

  #stop(): void {
    clearInterval(this.#ticking);
    clearTimeout(this.#looking);
    this.#shown = undefined;
  }

  /**
   * Only one update runs at a time. A viewer who joins during the update that a previous viewer started uses its
   * result.
   */
  #look(): void {
    if (this.#isLooking) return;
    this.#isLooking = true;
    void this.#state
      .look()
      // When the update fails, the old state stays. The next one may succeed.
      .catch(() => undefined)
      .then(() => {
        this.#isLooking = false;
        if (this.#viewers.size === 0) return;
        this.#looking = setTimeout(() => this.#look(), LOOK_MS);
        this.#looking.unref();
      });
  }

  #tick(): void {
    const before = this.#shown;
    const next = shownOf(this.#state.now());
    this.#shown = next;
    const change = before && changeBetween(before, next);
    if (change === undefined || Object.keys(change).length === 0) return;
    const text = JSON.stringify(change);
    for (const viewer of this.#viewers) viewer.send("change", text);
  }
}

/** A state with the JSON of its parts, so that each part is serialized and compared once. */
interface Shown {
  readonly now: Now;
  readonly sandboxes: ReadonlyMap<string, string>;
  readonly calls: ReadonlyMap<string, string>;
  readonly parts: Readonly<Record<"queue" | "health" | "approvals" | "paused", string>>;
  text(): string;
}

function shownOf(now: Now): Shown {
  const { queue, health, approvals, paused } = now;
  return {
    now,
    sandboxes: new Map(now.sandboxes.map((each) => [each.id, JSON.stringify(each)])),
    calls: new Map(now.calls.map((each) => [each.id, JSON.stringify(each)])),
    parts: {
      queue: JSON.stringify(queue),
      health: JSON.stringify(health),
      approvals: JSON.stringify(approvals),
      paused: JSON.stringify(paused),
    },
    text: () => JSON.stringify(now),
  };
}

function changeBetween(before: Shown, after: Shown): NowChange {
  const { now } = after;
  const sandboxes = now.sandboxes.filter(({ id }) => before.sandboxes.get(id) !== after.sandboxes.get(id));
  const calls = now.calls.filter(({ id }) => before.calls.get(id) !== after.calls.get(id));
  const sandboxesGone = [...before.sandboxes.keys()].filter((id) => !after.sandboxes.has(id));
  const callsGone = [...before.calls.keys()].filter((id) => !after.calls.has(id));
  const isNew = (part: keyof Shown["parts"]): boolean => before.parts[part] !== after.parts[part];
  return {
    ...(sandboxes.length > 0 && { sandboxes }),
    ...(sandboxesGone.length > 0 && { sandboxesGone }),
    ...(calls.length > 0 && { calls }),
    ...(callsGone.length > 0 && { callsGone }),
    ...(isNew("queue") && { queue: now.queue }),
    ...(isNew("health") && { health: now.health }),
    ...(isNew("approvals") && { approvals: now.approvals }),
    ...(isNew("paused") && { paused: now.paused }),
  };
}

/** `now`, `live`, and the ledger id of a sandbox that has ended. */
export function liveRoutes(state: CurrentState): readonly ApiRoute[] {
  const hub = new EventBus(state);
  return [
    {
      method: "GET",
      path: "now",
      answer: async () => {
        await state.look();
        return { ...state.now() };
      },
    },
    {
      method: "GET",
      path: "past-sandboxes/{id}",
      answer: ({ parts: [id = ""] }) => ({ ledgerId: state.ledgerIdOf(id) ?? null }) satisfies PastSandbox,
    },
    { method: "GET", path: "live", answer: () => new Events((sink) => hub.join(sink)) },
  ];
}
