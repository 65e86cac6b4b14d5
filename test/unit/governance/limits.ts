import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import type { Clock } from "../../../src/governance/limits/clock.ts";
import { SqliteLimitStore } from "../../../src/governance/limits/sqlite-limit-store.ts";
import type { Counter } from "../../../src/governance/policy/terms.ts";

const folder = mkdtempSync(join(tmpdir(), "owlclaw-limits-"));
let count = 0;

afterAll(() => rmSync(folder, { recursive: true, force: true }));

export function newPath(): string {
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
  readonly path?: string;
  readonly clock?: Clock;
  readonly timeZone?: string;
  readonly dead?: ReadonlySet<number>;
}

export function openStore({ path = newPath(), clock, timeZone = "UTC", dead }: StoreOptions = {}): SqliteLimitStore {
  return new SqliteLimitStore({
    path,
    timeZone: () => timeZone,
    ...(clock !== undefined && { clock }),
    ...(dead !== undefined && { isAlive: (_identity: unknown, id: number) => !dead.has(id) }),
  });
}
