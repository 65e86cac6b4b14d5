import type { Client } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call } from "../e2e/sandbox-client.ts";
import { defineToolSuite } from "../e2e/sandbox-tool-suite.ts";
import { defineConfinementTests } from "../escape/sandbox-confinement-suite.ts";
import { type Inside, openInside } from "../escape/sandbox-lab.ts";
import { definePathSuite } from "../escape/sandbox-path-suite.ts";
import { defineEgressTest, defineMemoryTest, heldFor, untilGone } from "../vm/microsandbox-neighbour-suite.ts";
import { defineKillTest, defineMachineTests, describeWithMicrosandbox } from "../vm/microsandbox-suite.ts";

const RACES = 5;
/** Printing a word may take more than a second where the processor is emulated. */
const TIMEOUT_SECONDS = 5;

// The shared suites, whole; what every run shows is in test/vm/microsandbox.test.ts.
await describeWithMicrosandbox((lab) => {
  let client: Client;
  let inside: Inside;

  beforeAll(async () => {
    client = await lab().connect();
  });

  describe("a microVM for each sandbox,", () => {
    let own: Client;

    defineToolSuite(
      ["http"],
      () => ({}),
      async () => {
        own = await lab().connect();
        return own;
      },
      TIMEOUT_SECONDS,
    );

    // A machine that stands by takes time from the others.
    afterAll(async () => {
      const listed = (await call(own, "sandbox_list")).structuredContent as { sandboxes: { session_id: string }[] };
      for (const { session_id } of listed.sandboxes) await call(own, "sandbox_destroy", { session_id });
    });
  });

  describe("in one microVM,", () => {
    beforeAll(async () => {
      inside = await openInside(client);
    });
    defineMachineTests(lab, () => inside);
    afterAll(async () => void (await inside.call("sandbox_destroy")));
  });

  describe("in one microVM of a template with a network,", () => {
    beforeAll(async () => {
      inside = await openInside(client, { template: "node" });
    });
    defineEgressTest(() => inside);
    defineMemoryTest(() => inside);
    afterAll(async () => void (await inside.call("sandbox_destroy")));
  });

  // It takes a minute to start on a busy machine, and is not to be too old by then.
  test.each([
    ["nobody used", { idle_timeout_seconds: 1 }],
    ["that is too old", { max_age_seconds: 120 }],
  ])("a sandbox %s leaves no process, machine, file or socket", async (_which, wish) => {
    const before = await heldFor(lab());
    await openInside(client, wish);
    expect(await heldFor(lab())).not.toEqual(before);
    await untilGone(lab(), before);
  });

  test("a host that is too busy to answer in time loses no microVM", async () => {
    await lab().place.ask("busy");
    try {
      const patient = await openInside(client);
      await lab().place.ask("calm");
      expect(await patient.sh("echo here")).toBe("here\n");
      await patient.call("sandbox_destroy");
    } finally {
      await lab().place.ask("calm");
    }
  });

  describe("attacks:", () => {
    definePathSuite(() => client, RACES);
    defineConfinementTests(
      () => client,
      async () => await lab().ports(),
    );
  });

  defineKillTest(lab);
});
