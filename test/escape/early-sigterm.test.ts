import { once } from "node:events";
import { expect, test } from "vitest";
import { spawnServer } from "./server.ts";

const INITIALIZE = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } },
});

/** The time between the first answer and the next step of the start is short: several servers meet it. */
const SERVERS = process.env["OWLCLAW_TEST_LONG"] === "1" ? 20 : 2;

test.each(Array.from({ length: SERVERS }, (_, index) => index + 1))(
  "SIGTERM right after the first answer on stdio stops the server cleanly (%i)",
  async () => {
    const server = await spawnServer({ transport: "stdio" });
    const { child } = server;
    child.stdin?.write(`${INITIALIZE}\n`);
    if (child.stdout === null) throw new Error("the server has a pipe");
    const exited = once(child, "exit");
    await once(child.stdout, "data");
    child.kill("SIGTERM");
    expect(await exited).toEqual([0, null]);
    await server.stop();
  },
);
