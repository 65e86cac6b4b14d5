import type { Client } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call } from "../e2e/sandbox-client.ts";
import { defineToolSuite } from "../e2e/sandbox-tool-suite.ts";
import { defineConfinementTests } from "../escape/sandbox-confinement-suite.ts";
import { type Inside, openInside } from "../escape/sandbox-lab.ts";
import { definePathSuite } from "../escape/sandbox-path-suite.ts";
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

  test("programs in a microVM reach an allowed host through the proxy, and no other", async () => {
    const networked = await openInside(client, { template: "node" });
    expect(await networked.sh("ls /sys/class/net")).toBe("lo\n");
    const read = await networked.python(`
import urllib.request, urllib.error
def get(url):
    try: return urllib.request.urlopen(url).read()
    except urllib.error.HTTPError as error: return error.read()
print(get("http://good.test/"), len(get("http://good.test/large.bin")), get("http://bad.test/"))`);
    expect(read).toMatch(/^b'hello from outside' 1000000 b'egress refused: bad\.test:80 is not in network\.allow/);
    await networked.call("sandbox_destroy");
  });

  test("who takes more memory than his machine has is ended, and the next call works", async () => {
    const hungry = await openInside(client);
    const hog = await hungry.call("code_run", { code: "x = []\nwhile True: x.append(bytearray(b'x' * (16 << 20)))" });
    expect(hog.isError).toBe(true);
    expect(await hungry.sh("echo alive")).toBe("alive\n");
    await hungry.call("sandbox_destroy");
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
