import type { Client } from "@modelcontextprotocol/client";
import { beforeAll, describe, expect, test } from "vitest";
import { defineToolSuite } from "../e2e/sandbox-tool-suite.ts";
import { defineConfinementTests } from "../escape/sandbox-confinement-suite.ts";
import { type Inside, openInside } from "../escape/sandbox-lab.ts";
import { defineRefusedPaths } from "../escape/sandbox-path-suite.ts";
import { startControlGroupsPlace } from "./control-groups-place.ts";
import { CANARY, connectPatiently, keptPlace, portsOf } from "./kept-lab.ts";
import { whyNoMachine } from "./machine.ts";

interface Fact {
  readonly who: string;
  readonly fact: string;
  readonly value: unknown;
}

const reason = await whyNoMachine();
const note = reason === undefined ? "" : ` (${reason})`;

describe.skipIf(reason !== undefined)(`with bubblewrap on a kernel with cgroup version 2${note},`, () => {
  const place = keptPlace(async () => await startControlGroupsPlace(CANARY));
  const connect = async (): Promise<Client> => await connectPatiently(place(), "bubblewrap");

  defineToolSuite(["http"], () => ({}), connect);

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
    let facts: Fact[] = [];

    // The servers above end with it: what is left behind is looked for.
    beforeAll(async () => {
      const { limits = [] } = await place().ask("limits");
      facts = limits.map((line) => JSON.parse(line) as Fact);
    });

    /** What the job printed, for root or for the user. */
    function told(who: string, fact: string): unknown {
      const found = facts.find((each) => each.who === who && each.fact === fact);
      if (found === undefined) throw new Error(`the job as ${who} did not get to "${fact}"`);
      return found.value;
    }

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
        expect(told(who, "hog")).toMatchObject({ isError: true });
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
});
