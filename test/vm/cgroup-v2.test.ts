import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { makeMachine, runInMachine, whyNoMachine } from "./machine.ts";

const RUN = `#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
/job/node /job/job.mjs > /dev/ttyS1 2> /dev/ttyS2
while [ ! -S /run/user/1000/bus ]; do sleep 0.1; done
setpriv --reuid=1000 --regid=1000 --init-groups env HOME=/home/ada /job/node /job/job.mjs > /dev/ttyS1 2> /dev/ttyS2
systemctl poweroff --force
`;

interface Fact {
  readonly who: string;
  readonly fact: string;
  readonly value: unknown;
}

let reason: string | undefined;
let facts: Fact[] = [];
let log = "";

beforeAll(async () => {
  reason = await whyNoMachine();
  if (reason !== undefined) return;
  const job = { script: join(import.meta.dirname, "limits-job.ts"), run: RUN };
  const { lines, log: said } = await runInMachine(await makeMachine(), job);
  log = said;
  facts = lines.map((line) => JSON.parse(line) as Fact);
});

/** What the job printed, for root or for the user. */
function told(who: string, fact: string): unknown {
  const found = facts.find((each) => each.who === who && each.fact === fact);
  if (found === undefined) throw new Error(`the job as ${who} did not get to "${fact}":\n${log}`);
  return found.value;
}

describe.each(["root", "user"])("on a kernel with cgroup version 2, as %s", (who) => {
  test("sandboxes run in groups of their own, with the limits of their flavor", (context) => {
    if (reason !== undefined) context.skip(reason);
    expect(told(who, "version")).toBe(2);
    expect(told(who, "first result")).toBe("42\n");
    expect(told(who, "limits")).toEqual({ memory: String(1024 ** 3), cpu: "100000 100000", pids: "256" });
    const ours = who === "root" ? /^\/sys\/fs\/cgroup\/owlclaw-/ : /\/user@1000\.service\/.*\.scope\/owlclaw-/;
    expect(told(who, "group")).toMatch(ours);
  });

  test("more CPU than one is slowed down", (context) => {
    if (reason !== undefined) context.skip(reason);
    expect(told(who, "throttled")).toBeGreaterThan(0);
  });

  test("a crowd of processes ends at the limit", (context) => {
    if (reason !== undefined) context.skip(reason);
    expect(told(who, "crowd")).toBeLessThanOrEqual(256);
    expect(told(who, "refused forks")).toBeGreaterThan(0);
  });

  test("who takes more memory than there is for him is ended, and the next call works", (context) => {
    if (reason !== undefined) context.skip(reason);
    expect(told(who, "hog")).toMatchObject({ isError: true });
    expect(told(who, "after the hog")).toBe("alive\n");
  });

  test("a killed server leaves nothing", (context) => {
    if (reason !== undefined) context.skip(reason);
    expect(told(who, "after kill -9")).toBe("again\n");
    expect(told(who, "groups left")).toEqual([]);
    expect(told(who, "processes left")).toEqual([]);
    expect(told(who, "done")).toBe(true);
  });
});
