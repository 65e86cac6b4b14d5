import { setTimeout as delay } from "node:timers/promises";
import Database from "libsql";
import { describe, expect, test, vi } from "vitest";
import { admit, lease } from "./limit-store-contract.ts";
import { counter, sqliteLab, type TestStore } from "./limits.ts";

const lab = sqliteLab();
const five = counter({ minute: 5, day: 1000, atOnce: 1000, budget: 1000 });

async function passedOf(store: TestStore, tries: number): Promise<number> {
  const request = { counters: [five], reserveMicros: 1 };
  const admissions = await Promise.all(Array.from({ length: tries }, async () => store.admit(request)));
  return admissions.filter(({ ok }) => ok).length;
}

describe("a process that counts in memory", () => {
  test("makes room for another without one call too many or too few", async () => {
    for (let round = 0; round < 20; round += 1) {
      const place = lab.newPlace();
      const first = lab.open({ place });
      const before = await passedOf(first, 2);
      const second = lab.open({ place });
      const both = await Promise.all([
        passedOf(first, 4),
        passedOf(second, 4),
        passedOf(first, 4),
        passedOf(second, 4),
      ]);
      expect(both.reduce((sum, count) => sum + count, before)).toBe(5);
      await Promise.all([first.close(), second.close()]);
    }
  });

  test("has every call on file by the time its answer may leave", async () => {
    const place = lab.newPlace();
    const first = lab.open({ place });
    await passedOf(first, 1);
    const { counted } = await lease(first, five, 1);
    expect(counted).toBeDefined();
    await counted;
    await lab.kill(first);
    const second = lab.open({ place });
    expect(await passedOf(second, 10)).toBe(3);
    await second.close();
  });

  test("frees what it had reserved when it dies", async () => {
    const place = lab.newPlace();
    const one = counter({ minute: 1000, atOnce: 1, budget: 10 });
    const first = lab.open({ place });
    const request = { counters: [one], reserveMicros: 10 };
    const admission = await first.admit(request);
    if (admission.ok) await first.settle(admission.lease, 0);
    await (
      await lease(first, one, 10)
    ).counted;
    await lab.kill(first);
    const second = lab.open({ place });
    expect(await second.admit(request)).toMatchObject({ ok: true });
    await second.close();
  });

  test("goes on so while nobody calls, until a neighbour comes", async () => {
    const place = lab.newPlace();
    const first = lab.open({ place });
    await passedOf(first, 1);
    const file = new Database(place);
    const claims = () => file.prepare("SELECT process FROM held WHERE key = ''").all().length;
    expect(claims()).toBe(1);
    // Many times as long as it takes to see that a neighbour has come.
    await delay(400);
    expect(claims()).toBe(1);
    const second = lab.open({ place });
    await vi.waitUntil(() => claims() === 0, { timeout: 30_000 });
    expect(await passedOf(second, 10)).toBe(4);
    file.close();
    await Promise.all([first.close(), second.close()]);
  });

  test("hands over what runs, too: a neighbour finds its places taken and its money reserved", async () => {
    for (let round = 0; round < 10; round += 1) {
      const place = lab.newPlace();
      const three = counter({ minute: 1000, atOnce: 3, budget: 30 });
      const request = { counters: [three], reserveMicros: 10 };
      const first = lab.open({ place });
      await first.settle(await lease(first, three, 10), 0);
      // Both are held in memory; the first of them is on file before the second comes.
      await (
        await lease(first, three, 10)
      ).counted;
      const running = await lease(first, three, 10);
      const second = lab.open({ place });
      expect(await second.admit(request)).toMatchObject({ ok: true });
      expect(await second.admit(request)).toMatchObject({ ok: false });
      await first.settle(running, 0);
      await expect.poll(() => second.admit(request)).toMatchObject({ ok: true });
      await Promise.all([first.close(), second.close()]);
    }
  });

  test("loses its right to when it does not answer, and nobody is locked out", async () => {
    const place = lab.newPlace();
    const store = lab.open({ place });
    const db = new Database(place);
    db.exec("INSERT INTO processes (id, pid, started, namespace, beat) VALUES (99, 1, '', '', 0)");
    db.exec("INSERT INTO held (process, key, month, n, micros) VALUES (99, '', '', 1, 0)");
    db.close();
    expect(await passedOf(store, 10)).toBe(5);
    await store.close();
  });
});

test("a cost without a budget is settled though a neighbour comes in the same moment", async () => {
  const place = lab.newPlace();
  const store = lab.open({ place });
  const unpaid = counter({ day: 1000, atOnce: 20 });
  await lease(store, unpaid);
  const running = await lease(store, unpaid);
  // Everything is on file: what comes now is all there is to write.
  await store.usage([unpaid]);
  const neighbour = lab.open({ place });
  const asked = admit(store, counter({ key: "bob", day: 1000 }));
  const settled = store.settle(running, 5);
  expect((await asked).ok).toBe(true);
  expect(await settled).toEqual([]);
  await Promise.all([store.close(), neighbour.close()]);
});

test("who closes while a neighbour counts in memory says no to whoever still waits", async () => {
  const place = lab.newPlace();
  const store = lab.open({ place });
  await lease(store, five);
  const late = lab.open({ place });
  const answered = admit(late, five).catch((error: unknown) => error);
  await late.close();
  expect(await answered).toMatchObject({ kind: "store_unavailable" });
  await store.close();
});
