import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import type { Clock } from "../../../src/governance/limits/clock.ts";
import type { LimitStore } from "../../../src/governance/limits/limit-store.ts";
import { SqliteLimitStore } from "../../../src/governance/limits/sqlite-limit-store.ts";
import type { Counter } from "../../../src/governance/policy/terms.ts";

const folder = mkdtempSync(join(tmpdir(), "owlclaw-limits-"));
let count = 0;

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function newPath(): string {
  return join(folder, `${++count}`, "limits.db");
}

/** A clock that stands until it is moved; both its hands can be moved apart. */
export class HandClock implements Clock {
  wall: number;
  steady = 1_000_000;
  bootId = "first";

  constructor(wall: string) {
    this.wall = Date.parse(wall);
  }

  wallMs(): number {
    return this.wall;
  }

  steadyMs(): number {
    return this.steady;
  }

  pass(ms: number): void {
    this.wall += ms;
    this.steady += ms;
  }
}

export interface Caps {
  readonly key?: string;
  readonly minute?: number;
  readonly day?: number;
  readonly atOnce?: number;
  readonly budget?: number;
}

export function counter({ key = "ada", minute, day, atOnce, budget }: Caps): Counter {
  const cap = (limit: number | undefined, rule: string) => (limit === undefined ? undefined : { limit, rule });
  return {
    key,
    perMinute: cap(minute, "minute"),
    perDay: cap(day, "day"),
    concurrency: cap(atOnce, "at-once"),
    budget: cap(budget, "budget"),
  };
}

export interface StoreOptions {
  /** Stores of one place count together. */
  readonly place?: string;
  readonly clock?: Clock;
  readonly timeZone?: string;
}

export interface TestStore extends LimitStore {
  /** Leaves everything as a killed server would. */
  abandon(): void;
}

/** One kind of store, to be held to what all of them promise. */
export interface LimitLab {
  newPlace(): string;
  open(options?: StoreOptions): TestStore;
  /** Ends one as `kill -9` would, and lets the others notice. */
  kill(store: TestStore): Promise<void>;
}

export interface SqliteLab extends LimitLab {
  open(options?: StoreOptions): SqliteLimitStore;
  /** The others take it for dead from now on; it is not. */
  bury(store: TestStore): void;
}

export function sqliteLab(): SqliteLab {
  // Numbers of processes begin anew in every file.
  const dead = new Set<string>();
  const names = new WeakMap<TestStore, string>();
  return {
    newPlace: newPath,
    open({ place = newPath(), clock, timeZone = "UTC" } = {}) {
      const store = new SqliteLimitStore({
        path: place,
        timeZone: () => timeZone,
        ...(clock !== undefined && { clock }),
        isAlive: (_identity, id) => !dead.has(`${place} ${id}`),
      });
      names.set(store, `${place} ${store.processId}`);
      return store;
    },
    bury: (store) => void dead.add(names.get(store) ?? ""),
    kill: async (store) => {
      store.abandon();
      dead.add(names.get(store) ?? "");
    },
  };
}
