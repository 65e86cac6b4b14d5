import { setTimeout as delay } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import type { Account } from "../e2e/sandbox-account.ts";
import { makePlace, type Place, Server } from "../e2e/sandbox-client.ts";
import { FaultUser } from "./sandbox-fault-user.ts";
import { instanceIds, type HostProcess, processesBelow, serverIds } from "./sandbox-lab.ts";
import { keptOf, NOTHING_KEPT, NOTHING_RUNS, runningOf } from "./sandbox-remains.ts";

const ROUNDS = process.env["OWLCLAW_TEST_LONG"] === "1" ? 200 : 4;
const SEED = Number(process.env["OWLCLAW_TEST_SEED"] ?? 20_261_115);
const SANDBOXES = 3;
const MAX_DELAY_MS = 250;

const VICTIMS: Record<string, (process: HostProcess) => boolean> = {
  guest: ({ command }) => command.endsWith("node /opt/owlclaw/guest.mjs") && !command.includes("bwrap"),
  interpreter: ({ command }) => command.includes("/opt/owlclaw/driver.py"),
  bwrap: ({ command }) => command.includes("bwrap --args"),
  spawner: ({ command }) => command.includes("/opt/owlclaw/spawner.py"),
  "anything inside": () => true,
};

/** mulberry32: the same moments and victims for the same seed. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Works until told to stop, and passes on the first wrong answer. */
function work(users: readonly FaultUser[], next: () => number): { stop(): Promise<void> } {
  const over = new AbortController();
  const loops = users.map(async (user) => {
    while (!over.signal.aborted) await user.step(next());
  });
  const all = Promise.all(loops);
  all.catch(() => undefined);
  return {
    stop: async () => {
      over.abort();
      await all;
    },
  };
}

interface Lab {
  readonly server: Server;
  readonly users: readonly FaultUser[];
  readonly ids: readonly string[];
}

async function open(place: Place): Promise<Lab> {
  const network = { allow: ["example.com"] };
  const sandbox = { maxPerPrincipal: 20, pool: { size: 1 }, limits: "best-effort", network };
  const server = new Server(place, { sandbox });
  const { origin } = new URL(await server.url());
  const users = await Promise.all(Array.from({ length: SANDBOXES }, () => FaultUser.create(origin)));
  return { server, users, ids: serverIds(place) };
}

function killInside(lab: Lab, next: () => number): void {
  const kinds = Object.values(VICTIMS);
  const kind = kinds[Math.floor(next() * kinds.length)] ?? (() => true);
  const candidates = processesBelow(lab.server.child.pid).filter(kind);
  const victim = candidates[Math.floor(next() * candidates.length)];
  try {
    if (victim !== undefined) process.kill(victim.pid, "SIGKILL");
  } catch {
    // It ended by itself meanwhile.
  }
}

/** Disks in use that belong to no sandbox of a server that lives. */
function strayDisks(place: Place): string[] {
  // The pool goes on meanwhile: a sandbox is written down before it has a disk, so disks are looked at first.
  const disks = runningOf(place, []).loopDevices;
  const known = instanceIds(place);
  return disks.filter((file) => !known.some((id) => file.includes(id)));
}

const patience = { timeout: 20_000, interval: 20 };

/** Rounds of work in which something is killed; the same for every user. */
export function defineFaultTest(account: () => Account | undefined): void {
  test(
    `kill -9 of anything at any moment, ${ROUNDS} rounds with seed ${SEED}: no wrong answer, nothing left, the next call works`,
    { timeout: ROUNDS * 10_000 },
    async () => {
      const place = makePlace(account());
      const next = random(SEED);
      let lab = await open(place);
      let answers = 0;
      for (let round = 0; round < ROUNDS; round += 1) {
        const working = work(lab.users, next);
        await delay(next() * MAX_DELAY_MS);
        if (round % 4 !== 3) {
          killInside(lab, next);
          await delay(next() * MAX_DELAY_MS);
          await working.stop();
          for (const user of lab.users) await user.expectWorks();
          continue;
        }
        const { server, ids, users } = lab;
        await server.stop("SIGKILL");
        await working.stop();
        answers += users.reduce((sum, user) => sum + user.answers, 0);
        // A disk is let go when all that was written is in its image; the next server waits for that.
        const { loopDevices: _later, ...soon } = NOTHING_RUNS;
        await vi.waitFor(() => expect(runningOf(place, ids)).toMatchObject(soon), patience);
        lab = await open(place);
        expect(strayDisks(place)).toEqual([]);
        expect((await keptOf(place, ids)).groups).toEqual([]);
        for (const user of lab.users) await user.expectWorks();
      }
      expect(answers).toBeGreaterThan(ROUNDS);
      const { server, ids } = lab;
      expect(await server.stop()).toBe(0);
      await vi.waitFor(() => expect(runningOf(place, ids)).toEqual(NOTHING_RUNS), patience);
      expect(await keptOf(place, ids)).toEqual(NOTHING_KEPT);
    },
  );
}
