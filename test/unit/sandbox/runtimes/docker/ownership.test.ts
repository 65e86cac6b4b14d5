import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { isOrphan, LABELS, openOwnership } from "../../../../../src/sandbox/runtimes/docker/ownership.ts";

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "owlclaw-ownership-"));
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
}

test("servers of one data folder agree on its id, also when they start at once; another folder has another", async () => {
  const [shared, other] = [folder(), folder()];
  const opened = await Promise.all(["a", "b", "c"].map(async (id) => await openOwnership(shared, id)));
  expect(new Set(opened.map(({ dataId }) => dataId)).size).toBe(1);
  const elsewhere = await openOwnership(other, "a");
  expect(elsewhere.dataId).not.toBe(opened[0]?.dataId);
  expect(elsewhere.volumeName("/data/x")).not.toBe(opened[0]?.volumeName("/data/x"));
  expect(opened[1]?.volumeName("/data/x")).toBe(opened[0]?.volumeName("/data/x"));
});

test("what a living process made is no orphan; what a dead one made is; what says nothing of its maker is left alone", async () => {
  const labels = (await openOwnership(folder(), "a")).labels("cell", "owl-1");
  expect(isOrphan(labels)).toBe(false);
  const owner = JSON.parse(labels[LABELS.owner] ?? "") as Record<string, unknown>;
  expect(isOrphan({ ...labels, [LABELS.owner]: JSON.stringify({ ...owner, startTicks: "1" }) })).toBe(true);
  expect(isOrphan({ ...labels, [LABELS.owner]: JSON.stringify({ ...owner, bootId: "another" }) })).toBe(true);
  for (const unreadable of ["", "{}", "[]", '{"pid":"1"}'])
    expect(isOrphan({ [LABELS.owner]: unreadable })).toBe(false);
});
