import type { Client } from "@modelcontextprotocol/client";
import { beforeAll, describe, expect, test } from "vitest";
import { readText } from "../e2e/sandbox-client.ts";
import { defineConfinementTests } from "../escape/sandbox-confinement-suite.ts";
import { type Inside, openInside } from "../escape/sandbox-lab.ts";
import { defineReadablePaths, defineRefusedPaths } from "../escape/sandbox-path-suite.ts";
import { defineMachineAttacks } from "./machine-attack-suite.ts";
import {
  defineEgressTest,
  defineMemoryTest,
  defineRestartTest,
  heldFor,
  untilGone,
} from "./microsandbox-neighbour-suite.ts";
import { defineKillTest, defineMachineTests, describeWithMicrosandbox } from "./microsandbox-suite.ts";

// What every run must show, in as few microVMs as possible; test/long/microsandbox.test.ts has the whole suites.
await describeWithMicrosandbox((lab) => {
  describe("in a microVM,", () => {
    let client: Client;
    let inside: Inside;

    beforeAll(async () => {
      client = await lab().connect();
      inside = await openInside(client);
    });

    test("code keeps its state from call to call", async () => {
      await inside.python("x = 6");
      expect(await inside.python("print(x * 7)")).toBe("42\n");
    });

    test("commands give stdout, stderr and an honest exit code", async () => {
      const failed = await inside.call("shell_exec", { command: "echo out; echo err >&2; exit 3" });
      expect(failed.isError).toBe(true);
      expect(readText(failed).json).toMatchObject({ stdout: "out\n", stderr: "err\n", exit_code: 3 });
    });

    test("files are written, listed, searched and read", async () => {
      await inside.call("file_write", { path: "src/a.py", content: "x = 1\ny = 2\n" });
      const listed = await inside.call("file_list", { path: "src" });
      expect(listed.structuredContent).toMatchObject({ entries: [{ path: "src/a.py", type: "file" }] });
      const found = await inside.call("file_search", { pattern: "y\\s*=" });
      expect(found.structuredContent).toMatchObject({ matches: [{ path: "src/a.py", line: 2, text: "y = 2" }] });
      expect(await inside.sh("cat src/a.py")).toBe("x = 1\ny = 2\n");
    });

    test("a time-out keeps the output so far and the sandbox", async () => {
      const code = "import time\nprint('before', flush=True)\ntime.sleep(600)";
      const { head, json } = readText(await inside.call("code_run", { code, timeout_seconds: 5 }));
      expect(head).toBe("code_run failed: the code ran for 5 s and was stopped");
      expect(json).toMatchObject({ status: "timeout", stdout: "before\n" });
      expect(await inside.sh("cat src/a.py")).toBe("x = 1\ny = 2\n");
    });

    defineMachineTests(lab, () => inside);

    describe("attacks:", () => {
      defineConfinementTests(
        () => client,
        async () => await lab().ports(),
        () => Promise.resolve(inside),
      );
      defineRefusedPaths(
        () => client,
        () => inside,
      );
      defineReadablePaths(() => inside);
    });

    describe("beside another one,", () => {
      let alone: Record<string, number>;
      let neighbour: Inside;

      beforeAll(async () => {
        alone = await heldFor(lab());
        neighbour = await openInside(client, { template: "node" });
      });

      defineEgressTest(() => neighbour);
      defineMachineAttacks({ lab, inside: () => inside, neighbour: () => neighbour });
      defineMemoryTest(() => neighbour);

      test("a destroyed sandbox leaves no process, machine, file or socket, and the other one everything", async () => {
        expect(alone).toMatchObject({ machines: 1, sandboxes: 1, folders: 1 });
        expect(await heldFor(lab())).toMatchObject({ machines: 2, sandboxes: 2, folders: 2 });
        expect((await neighbour.call("sandbox_destroy")).structuredContent).toMatchObject({ destroyed: true });
        await untilGone(lab(), alone);
        expect(await inside.sh("cat src/a.py")).toBe("x = 1\ny = 2\n");
      });
    });

    defineRestartTest(() => inside);
  });

  defineKillTest(lab);
});
