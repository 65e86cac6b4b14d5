import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { identifyProcess } from "../../../../../src/platform/process-identity.ts";
import { openRecords } from "../../../../../src/sandbox/runtimes/bubblewrap/records.ts";
import { createUidRange } from "../../../../../src/sandbox/runtimes/bubblewrap/uid-range.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "owlclaw-records-"));
});
afterEach(async () => await rm(folder, { recursive: true }));

describe("records", () => {
  const instance = () => ({
    id: "c1",
    serverId: "s1",
    owner: identifyProcess(process.pid)!,
    folder: "/data/c1",
    groups: ["/x"],
  });

  it("come back as they were written, and not after their removal", async () => {
    const records = await openRecords(folder, instance().owner);
    await records.writeInstance(instance());
    expect(await records.instances()).toEqual([instance()]);
    await records.removeInstance("c1");
    await records.removeInstance("c1");
    expect(await records.instances()).toEqual([]);
  });

  it("that cannot be read are left alone", async () => {
    const records = await openRecords(folder, instance().owner);
    await writeFile(join(folder, "cells", "torn.json"), '{"id": "torn", "own');
    await writeFile(join(folder, "cells", "other.json"), '{"id": 5}');
    expect(await records.instances()).toEqual([]);
  });

  it("cannot be written outside their folder", async () => {
    const records = await openRecords(folder, instance().owner);
    await expect(records.writeInstance({ ...instance(), id: "../../x" })).rejects.toThrow("not a name");
  });
});

describe("user ids", () => {
  it("are handed out once until they are released", async () => {
    const uids = createUidRange(folder);
    const taken = await Promise.all(Array.from({ length: 50 }, async () => await uids.take(async () => undefined)));
    expect(new Set(taken).size).toBe(50);
    expect(taken.every((uid) => uid >= 1_900_000_000 && uid < 2 ** 31)).toBe(true);
    await uids.release(taken[0]!);
    expect(new Set(await uids.taken())).toEqual(new Set(taken.slice(1)));
  });
});
