import { expect, test } from "vitest";
import { provideVolume } from "../../../../../src/sandbox/runtimes/docker/filled-volume.ts";
import { LABELS } from "../../../../../src/sandbox/runtimes/docker/ownership.ts";
import { type FakeEngine, fakeEngine } from "./fake-engine.ts";

const OURS = "a".repeat(64);
const THEIRS = "b".repeat(64);
const DEAD = JSON.stringify({ pid: process.pid, startTicks: "1", bootId: "another" });
const CONTENT = { id: "sha256:1", kind: "guest", entries: [] } as const;

/** An engine with a full volume that another is looking into: until that is removed, or for this many tries. */
async function engineInUse(labels: Readonly<Record<string, string>>, tries: number): Promise<FakeEngine> {
  let left = tries;
  const fake = await fakeEngine((request, response) => {
    const { method, url = "" } = request;
    if (method === "DELETE" && url.includes(THEIRS)) left = 0;
    if (method === "GET") {
      const Labels = { ...fake.host.ownership.labels("guest"), ...labels };
      response.end(JSON.stringify({ Id: THEIRS, Config: { Labels } }));
    } else if (method === "POST" && left > 0) {
      left -= 1;
      response.writeHead(409).end();
    } else response.end(method === "POST" ? JSON.stringify({ Id: OURS }) : "");
  });
  return fake;
}

const removedBy = ({ asked }: FakeEngine): string[] =>
  asked.flatMap((call) => /^DELETE \/containers\/(\w+)/.exec(call)?.[1] ?? []);

test("the turn of a server that died over it is taken at once", async () => {
  const fake = await engineInUse({ [LABELS.owner]: DEAD }, Infinity);
  expect(await provideVolume(fake.host, CONTENT)).toMatch(/^owlclaw-guest-/);
  expect(removedBy(fake)).toEqual([THEIRS, OURS]);
  expect([...fake.host.own]).toEqual([]);
});

test.each([
  ["lives", {}],
  ["may live elsewhere", { [LABELS.owner]: DEAD, [LABELS.data]: "another" }],
])("that of one who %s is waited for", async (_who, labels) => {
  const fake = await engineInUse(labels, 2);
  expect(await provideVolume(fake.host, CONTENT)).toMatch(/^owlclaw-guest-/);
  expect(removedBy(fake)).toEqual([OURS]);
});
