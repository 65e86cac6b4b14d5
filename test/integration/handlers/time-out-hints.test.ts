import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type HttpServer, startHttp } from "../harness.ts";
import { plainCall } from "../http-client.ts";

const folder = mkdtempSync(path.join(tmpdir(), "owlclaw-hints-"));
const WAIT = "new Promise((resolve) => setTimeout(resolve, 600_000).unref())";
const FILES = {
  "tagged.ts": `/** Waits. @timeout 50ms */\nexport async function tagged(): Promise<void> { await ${WAIT}; }\n`,
  "plain.ts": `/** Waits. */\nexport async function plain(): Promise<void> { await ${WAIT}; }\n`,
  "defined.ts": `import { defineHandler } from "owlclaw";
export const defined = defineHandler({ name: "defined", description: "Waits.", timeoutMs: 50, run: () => ${WAIT} });
`,
  "decorated.py": `import asyncio
from owlclaw import handler

@handler(timeout=0.05)
async def decorated() -> None:
    """Waits."""
    await asyncio.sleep(600)
`,
};
let server: HttpServer;

beforeAll(async () => {
  for (const [name, content] of Object.entries(FILES)) writeFileSync(path.join(folder, name), content);
  server = await startHttp({ config: { handlers: { paths: [folder] }, tools: { timeoutSeconds: 0.5 } } });
});

afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

test.each([
  ["tagged", "@timeout in its doc comment"],
  ["defined", "timeoutMs of its definition"],
  ["decorated", "timeout of its @handler"],
  ["plain", "tools.timeoutSeconds"],
])("[004-R5.10] a call of %s that takes too long is told to raise %s", async (name, place) => {
  const { error } = (await plainCall(server.url, name, {})).body;
  expect(error).toMatchObject({
    data: { kind: "timeout", hint: `Ask for less at once, or raise ${place}.` },
  });
});
