import { expect, test } from "vitest";
import { until } from "../integration/harness.ts";
import { makePlace, Server } from "./sandbox-client.ts";

test("what waits in the pool is counted under the runtime of its template, also while that one cannot start", async () => {
  const place = makePlace();
  const docker = { host: `unix://${place.folder}/nobody.sock` };
  const templates = { boxed: { image: "nobody.example/boxed" } };
  const server = new Server(place, { sandbox: { runtime: "bubblewrap", pool: { size: 1 }, templates, docker } });
  const url = new URL("/metrics", await server.url());
  await until(
    async () => (await fetch(new URL("/health", url))).text(),
    (health) => health.includes("sandboxes of boxed cannot start"),
  );
  const lines = await until(
    async () => (await (await fetch(url)).text()).split("\n").filter((line) => line.startsWith("owlclaw_sandboxes{")),
    (found) => found.some((line) => line.includes('state="pooled"') && line.endsWith(" 1")),
  );
  expect(lines).toContain('owlclaw_sandboxes{state="ready",runtime="bubblewrap",template="python"} 0');
  expect(lines).toContain('owlclaw_sandboxes{state="pooled",runtime="bubblewrap",template="python"} 1');
  expect(lines).toContain('owlclaw_sandboxes{state="pooled",runtime="docker",template="boxed"} 0');
  await server.stop();
});
