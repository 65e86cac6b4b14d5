import { expect, test } from "vitest";
import { admit, lease, limitStoreContract, passed } from "./limit-store-contract.ts";
import { counter, HandClock, sqliteLab } from "./limits.ts";

const lab = sqliteLab();

limitStoreContract(lab);

test("[004-R8.4] calls of a minute survive a restart of the server, and count once more in full after one of the machine", async () => {
  const place = lab.newPlace();
  const clock = new HandClock("2026-11-15T12:00:00Z");
  const limited = counter({ minute: 2 });
  const first = lab.open({ place, clock });
  expect(await passed(first, limited, 2)).toBe(2);
  await first.close();
  clock.pass(30_000);
  const second = lab.open({ place, clock });
  expect(await passed(second, limited, 1)).toBe(0);
  await second.close();
  clock.bootId = "second";
  clock.steady = 5;
  const third = lab.open({ place, clock });
  expect(await passed(third, limited, 1)).toBe(0);
  clock.pass(60_000);
  expect(await passed(third, limited, 5)).toBe(2);
  await third.close();
});

test("what cannot be booked now is booked with the next transaction that works", async () => {
  const place = lab.newPlace();
  const store = lab.open({ place });
  const limited = counter({ budget: 100, atOnce: 5 });
  const held = await lease(store, limited, 40);
  const { openLimitsDatabase } = await import("../../../src/governance/limits/limits-database.ts");
  const blocker = openLimitsDatabase(place);
  blocker.exec("BEGIN IMMEDIATE");
  await expect(store.settle(held, 30)).rejects.toMatchObject({ kind: "store_unavailable", retryable: true });
  await expect(admit(store, limited, 1)).rejects.toMatchObject({ kind: "store_unavailable" });
  blocker.exec("ROLLBACK");
  blocker.close();
  expect(await store.usage([limited])).toMatchObject([
    { name: "concurrency", used: 0 },
    { name: "monthlyBudget", used: 30 },
  ]);
  await store.close();
});
