import type { Client } from "@modelcontextprotocol/client";
import { beforeAll, describe, expect, test } from "vitest";
import { defineToolSuite } from "../e2e/sandbox-tool-suite.ts";
import { defineConfinementTests } from "../escape/sandbox-confinement-suite.ts";
import { type Inside, openInside } from "../escape/sandbox-lab.ts";
import { defineRefusedPaths } from "../escape/sandbox-path-suite.ts";
import { describeUnless } from "../setup/mandatory.ts";
import { startControlGroupsPlace } from "./control-groups-place.ts";
import { CANARY, connectPatiently, keptPlace, portsOf } from "./kept-lab.ts";
import { whyNoMachine } from "./machine.ts";

interface Fact {
  readonly who: string;
  readonly fact: string;
  readonly value: unknown;
}

describeUnless(await whyNoMachine(), "with bubblewrap on a kernel with cgroup version 2", () => {
  const place = keptPlace(async () => await startControlGroupsPlace(CANARY));
  const connect = async (): Promise<Client> => await connectPatiently(place(), "bubblewrap");

  defineToolSuite(["http"], () => ({}), connect, 10);

  describe("attacks:", () => {
    let client: Client;
    let inside: Inside;

    beforeAll(async () => {
      client = await connect();
      inside = await openInside(client);
    });

    defineConfinementTests(
      () => client,
      () => Promise.resolve(portsOf(place(), "bubblewrap")),
    );
    defineRefusedPaths(
      () => client,
      () => inside,
    );
  });

  describe("limits,", () => {
    let facts: readonly Fact[] = [];

    // The servers above end with it: what is left behind is looked for.
    beforeAll(async () => {
      facts = toFacts((await place().ask("limits")).limits);
    });

    const told = (who: string, fact: string): unknown => valueOf(facts, who, fact);

    describe.each(["root", "user"])("as %s", (who) => {
      test("sandboxes run in groups of their own, with the limits of their flavor", () => {
        expect(told(who, "version")).toBe(2);
        expect(told(who, "first result")).toBe("42\n");
        expect(told(who, "limits")).toEqual({ memory: String(1024 ** 3), cpu: "100000 100000", pids: "256" });
        const ours = who === "root" ? /^\/sys\/fs\/cgroup\/owlclaw-/ : /\/user@1000\.service\/.*\.scope\/owlclaw-/;
        expect(told(who, "group")).toMatch(ours);
      });

      test("more CPU than one is slowed down", () => {
        expect(told(who, "throttled")).toBeGreaterThan(0);
      });

      test("a crowd of processes ends at the limit", () => {
        expect(told(who, "crowd")).toBeLessThanOrEqual(256);
        expect(told(who, "refused forks")).toBeGreaterThan(0);
      });

      test("who takes more memory than there is for him is ended, and the next call works", () => {
        const text = expect.stringMatching(
          /^code_run failed: the python interpreter was ended by SIGKILL;.*\nhint: use less memory /,
        );
        expect(told(who, "hog")).toEqual({ isError: true, text: text as unknown });
        expect(told(who, "ended for memory")).toBeGreaterThan(0);
        expect(told(who, "after the hog")).toBe("alive\n");
      });

      test("a killed server leaves nothing", () => {
        expect(told(who, "after kill -9")).toBe("again\n");
        expect(told(who, "groups left")).toEqual([]);
        expect(told(who, "processes left")).toEqual([]);
        expect(told(who, "done")).toBe(true);
      });
    });
  });

  describe("the systemd unit that is shipped", () => {
    let facts: readonly Fact[] = [];

    beforeAll(async () => {
      facts = toFacts((await place().ask("unit")).unit);
    });

    const told = (fact: string): unknown => valueOf(facts, "unit", fact);

    test("starts as its head says, under a user of its own, and runs code with every limit", () => {
      expect(told("verify")).toBe("");
      expect(told("user")).toBe("owlclaw");
      expect(told("ready")).toBe(true);
      expect(told("result")).toMatchObject({ result: { structuredContent: { status: "ok", stdout: "42\n" } } });
      expect(told("group")).toMatch(/^\/sys\/fs\/cgroup\/system\.slice\/owlclaw\.service\//);
      expect(told("limits")).toEqual({ memory: String(1024 ** 3), cpu: "100000 100000", pids: "256" });
    });

    test("reloads, and leaves nothing when it is stopped", () => {
      expect(told("reloaded")).toBe(true);
      expect(told("state")).toBe("Result=success\nExecMainStatus=0\nActiveState=inactive");
      expect(told("processes left")).toEqual([]);
      expect(told("done")).toBe(true);
    });
  });
});

/** Lines that a job in the machine printed. */
function toFacts(lines: readonly string[] = []): readonly Fact[] {
  return lines.map((line) => JSON.parse(line) as Fact);
}

function valueOf(facts: readonly Fact[], who: string, fact: string): unknown {
  const found = facts.find((each) => each.who === who && each.fact === fact);
  if (found === undefined) throw new Error(`the job as ${who} did not get to "${fact}"`);
  return found.value;
}
