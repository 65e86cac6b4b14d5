import { afterAll, beforeAll, expect, test } from "vitest";
import { runCli } from "./cli-process.ts";
import { call, startGoverned, writeFile } from "./governance-lab.ts";
import { writeConfig } from "./harness.ts";

let server: Awaited<ReturnType<typeof startGoverned>>;
let config = "";

beforeAll(async () => {
  server = await startGoverned();
  const rules = [{ id: "short", when: 'tool == "echo" && size(args.text) > 3', effect: "deny", reason: "too long" }];
  config = writeConfig({ config: { sandbox: { root: server.root, enabled: false }, governance: { rules } } });
});

afterAll(() => server.stop());

const run = (...argv: string[]) => runCli(["mcp-server", "policy", ...argv, "--config", config]);

test("policy explain says what would happen and why", async () => {
  const denied = await run("explain", "--client", "ada", "--tool", "echo", '{"text": "longer"}');
  expect(denied.code).toBe(1);
  expect(denied.out).toMatch(/^deny {2}echo\nrule {6}rules\.short\nreason {4}too long\nlisted {4}yes\n/);
  const allowed = await run("explain", "--client", "ada", "--tool", "echo", '{"text": "hi"}', "--json");
  expect(JSON.parse(allowed.out)).toMatchObject({ decision: "allow", rule: "default", visible: true });
});

test("policy test runs expectations, and ends with 1 when one does not hold", async () => {
  const holds = writeFile("holds.yaml", [
    { client: "ada", tool: "echo", args: { text: "longer" }, expect: "deny", rule: "rules.short" },
    { client: "ada", tool: "echo", args: { text: "hi" }, expect: "allow" },
  ]);
  expect(await run("test", holds)).toMatchObject({ code: 0, err: "2 of 2 expectations hold.\n" });
  const fails = writeFile("fails.yaml", [{ client: "ada", tool: "echo", args: { text: "hi" }, expect: "deny" }]);
  const failed = await run("test", fails);
  expect(failed.code).toBe(1);
  expect(failed.out).toContain("FAIL  1: ada calls echo: deny expected, allow by default");
});

test("policy replay shows what a candidate would change", async () => {
  await call(server.url, "echo", { text: "hi" });
  await call(server.url, "echo", { text: "longer" });
  const candidate = writeFile("candidate.yaml", { clients: { anonymous: { hidden: ["add"] } } });
  const replayed = await run("replay", candidate, "--from", "1h", "--json");
  expect(JSON.parse(replayed.out)).toMatchObject({
    replayed: 2,
    changes: [{ client: "anonymous", name: "echo", was: "allow", wouldBe: "deny", rule: "rules.short" }],
  });
  const broken = await run("replay", writeFile("broken.yaml", "rules: 7"));
  expect(broken.err).toContain("the policy cannot be used");
});

test("stats adds up calls by client, tool and day", async () => {
  const { out } = await runCli(["mcp-server", "stats", "--json", "--config", config]);
  expect(JSON.parse(out)).toMatchObject({ clients: [{ client: "anonymous" }] });
});
