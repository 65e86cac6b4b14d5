import { join } from "node:path";
import { expect, test } from "vitest";
import { DEFAULT_CONFIG } from "../../../../src/config/schema.ts";
import { Admissions } from "../../../../src/governance/store/admissions.ts";
import type { Admission, AdmitRequest } from "../../../../src/governance/store/governance-store.ts";
import { OwlError } from "../../../../src/errors/owl-error.ts";
import { loadLedgerKeys } from "../../../../src/governance/ledger/keys.ts";
import { openLedger } from "../../../../src/governance/ledger/open-ledger.ts";
import { SILENT_LOGGER } from "../../../../src/telemetry/logger.ts";
import { entry } from "../ledger/ledger-entry.ts";
import { counter, lease, sqliteLab, UNKNOWN } from "./store-lab.ts";

const lab = sqliteLab();
const limited = counter({ atOnce: 2, budget: 100 });
const REQUEST: AdmitRequest = { counters: [limited], reserveMicros: 10 };
const NO_LEDGER = { settle: async () => ({ seq: 0, spendings: [] }), recover: async () => 0 };

test("calls of one turn of the event loop are one batch, and those that come meanwhile the next one", async () => {
  const batches: number[] = [];
  let answer: ((admissions: readonly Admission[]) => void) | undefined;
  const refusal = { name: "callsPerDay", rule: "day", limit: 0, used: 0, resetsAtMs: undefined } as const;
  const store = {
    usage: async () => [],
    admit: (batch: readonly AdmitRequest[]) => {
      batches.push(batch.length);
      return new Promise<readonly Admission[]>((resolve) => (answer = resolve));
    },
  };
  const refuse = (count: number): void =>
    answer?.(Array.from({ length: count }, () => ({ ok: false, refusal: { ...refusal, retryAfterMs: 1 }, used: [] })));
  const admissions = new Admissions({ store, ledger: NO_LEDGER });
  const first = [admissions.admit(REQUEST), admissions.admit(REQUEST)];
  await expect.poll(() => batches).toEqual([2]);
  const later = [1, 2, 3].map(() => admissions.admit(REQUEST));
  refuse(2);
  await Promise.all(first);
  await expect.poll(() => batches).toEqual([2, 3]);
  refuse(3);
  expect((await Promise.all(later)).map(({ ok }) => ok)).toEqual([false, false, false]);
});

test("a call is not refused for what a process holds that has died", async () => {
  const place = lab.newPlace();
  const killed = await lab.open({ place });
  await lease(killed, limited, { reserve: 40, draft: UNKNOWN });
  await lease(killed, limited, { reserve: 40 });
  await lab.kill(killed);
  const store = await lab.open({ place });
  const admissions = new Admissions({ store, ledger: { ...NO_LEDGER, recover: () => store.recover() } });
  // The one with a row costs what was reserved.
  expect(await admissions.admit({ ...REQUEST, reserveMicros: 60 })).toMatchObject({ ok: true });
  expect(await admissions.admit({ ...REQUEST, reserveMicros: 1 })).toMatchObject({ ok: false, refusal: { used: 100 } });
  await store.close();
});

test("what cannot be counted is refused, and counted again when it can be", async () => {
  let isGone = true;
  const store = {
    usage: async () => [],
    admit: async (batch: readonly AdmitRequest[]): Promise<readonly Admission[]> => {
      if (isGone) throw new OwlError("store_unavailable", "the disk is full", { hint: "Free space." });
      const granted = { call: 1, counters: [], month: "2026-11", reserveMicros: 0 };
      return batch.map(() => ({ ok: true, lease: granted, used: [] }));
    },
  };
  const admissions = new Admissions({ store, ledger: NO_LEDGER });
  await expect(admissions.admit(REQUEST)).rejects.toMatchObject({ kind: "store_unavailable", hint: "Free space." });
  isGone = false;
  expect((await admissions.admit(REQUEST)).ok).toBe(true);
});

test("a call of a server that was taken for dead and lives has a second row that says how it ended", async () => {
  const place = lab.newPlace();
  const asleep = await lab.open({ place });
  const keys = loadLedgerKeys({ folder: join(place, "keys"), create: false });
  const opened = { store: asleep, keys };
  const ledger = await openLedger({ config: DEFAULT_CONFIG, dataFolder: place, logger: SILENT_LOGGER, opened });
  const { call } = await lease(asleep, limited, { reserve: 30, draft: UNKNOWN });
  await lab.bury(asleep);
  const other = await lab.open({ place });
  expect(await other.recover()).toBe(1);
  expect(await ledger.append(entry({ costMicros: 10 }), { call, costMicros: 10 })).toMatchObject({ seq: 2 });
  const rows = await other.list({}, { limit: 10 });
  expect(rows.map(({ outcome, cost_micros, count, flags }) => [outcome, cost_micros, count, flags])).toEqual([
    ["ok", 0, 0, '["ran_on"]'],
    ["unknown", 30, 1, "[]"],
  ]);
  expect(await other.usage([limited])).toMatchObject([{ used: 0 }, { used: 30 }]);
  await other.close();
  await ledger.close();
});
