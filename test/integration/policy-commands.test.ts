import { afterAll, beforeAll, expect, test } from "vitest";
import { runCli } from "./cli-process.ts";
import { call, rpc, startGoverned, writeFile } from "./governance-lab.ts";
import { writeConfig } from "./harness.ts";
import { modern } from "./http-client.ts";

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

test("policy explain takes claims", async () => {
  const rules = [{ id: "level", when: 'tool == "echo" && claims.level < 3', effect: "deny" }];
  const policy = writeFile("claims.yaml", { rules });
  const ask = (claims: string) =>
    run("explain", "--client", "ada", "--tool", "echo", "--policy", policy, "--claims", claims, "{}");
  expect((await ask('{"level": 1}')).out).toMatch(/^deny {2}echo\nrule {6}rules\.level\n/);
  expect((await ask('{"level": 3}')).out).toMatch(/^allow {2}echo\n/);
  expect((await ask("7")).err).toContain("--claims is no JSON object");
  expect((await ask("{")).err).toContain("--claims is not valid JSON");
});

test("policy replay shows calls that would need a yes, and that needed one", async () => {
  const clean = writeConfig({ config: { sandbox: { root: server.root, enabled: false } } });
  const replay = async (candidate: string) =>
    JSON.parse((await runCli(["mcp-server", "policy", "replay", candidate, "--json", "--config", clean])).out);
  const asking = writeFile("asking.yaml", { tools: { echo: { confirm: "operator" } } });
  await call(server.url, "echo", { text: "hi" });
  const change = { name: "echo", was: "allow", wouldBe: "confirm", rule: "tools.echo.confirm" };
  expect((await replay(asking)).changes.at(-1)).toMatchObject(change);
});

test("policy replay knows which calls were asked about, whatever was said", async () => {
  const rules = [{ id: "ask", when: 'tool == "add"', effect: "confirm", confirm: "client" }];
  const governance = { rules, tools: { echo: { confirm: "client" } } };
  const asking = await startGoverned({ governance });
  try {
    const ask = async (name: string, args: object, content: object) => {
      const params = { name, arguments: args };
      const options = { capabilities: { elicitation: {} } };
      const { requestState, inputRequests } =
        (await modern(asking.url, "tools/call", params, options)).body.result ?? {};
      const [key = ""] = Object.keys(inputRequests);
      const inputResponses = { [key]: { action: "accept", content } };
      await modern(asking.url, "tools/call", { ...params, requestState, inputResponses }, options);
    };
    for (const approve of [true, false]) {
      await ask("add", { a: 1, b: 2 }, { approve });
      await ask("echo", { text: "hi" }, { approve });
    }
    const own = writeConfig({ config: { sandbox: { root: asking.root, enabled: false } } });
    const replay = async (candidate: object) => {
      const argv = ["policy", "replay", writeFile("next.yaml", candidate), "--json", "--config", own];
      return JSON.parse((await runCli(["mcp-server", ...argv])).out).changes;
    };
    expect(await replay(governance)).toEqual([]);
    const changes: readonly Record<string, unknown>[] = await replay({});
    expect(changes.map(({ name, was, wouldBe }) => [name, was, wouldBe])).toEqual([
      ["add", "confirm", "allow"],
      ["echo", "confirm", "allow"],
      ["add", "confirm", "allow"],
      ["echo", "confirm", "allow"],
    ]);
  } finally {
    await asking.stop();
  }
});

test("policy explain, test and replay judge what a real call is judged by: defaults, variables of URIs, no mistakes", async () => {
  const rules = [
    { id: "bye", when: 'tool == "ask_with_default" && args.greeting == "bye"', effect: "deny" },
    { id: "emea", when: 'uri.startsWith("fixture://orders/") && args.region == "emea"', effect: "deny" },
    { id: "code", when: 'kind == "prompt" && args.code == "secret"', effect: "deny" },
    { id: "many", when: 'tool == "typed" && args.count > 3', effect: "deny" },
    { id: "any", when: "has(args.forbidden)", effect: "deny" },
  ];
  const real = await startGoverned({ governance: { rules } });
  const ran = async (method: string, params: Record<string, unknown>) =>
    (await rpc(real.url, method, params)).body.error?.data?.["rule"] ?? "default";
  const ask = (args: object) => ran("tools/call", { name: "ask_with_default", arguments: args });
  const order = (region: string) => ran("resources/read", { uri: `fixture://orders/${region}/1` });
  expect([await ask({}), await ask({ greeting: "bye" })]).toEqual(["default", "rules.bye"]);
  expect([await order("apac"), await order("emea")]).toEqual(["default", "rules.emea"]);
  await ran("prompts/get", { name: "review", arguments: { code: "pass" } });
  // What fails at its arguments comes to no rule that looks at them.
  await ran("tools/call", { name: "typed", arguments: { text: "no count" } });
  await ran("tools/call", { name: "no_such_tool", arguments: { forbidden: true } });
  await real.stop();

  const policy = writeFile("in-force.yaml", { rules });
  const own = writeConfig({ config: { sandbox: { root: real.root, enabled: false } } });
  const policyCli = (...argv: string[]) => runCli(["mcp-server", "policy", ...argv, "--config", own]);
  const replayed = JSON.parse((await policyCli("replay", policy, "--json")).out);
  expect(replayed).toMatchObject({ replayed: 7, changes: [], unknown: [] });

  const explained = async (tool: string, args: string) =>
    (await policyCli("explain", "--client", "ada", "--policy", policy, "--tool", tool, args)).out;
  expect(await explained("ask_with_default", "{}")).toMatch(/^allow {2}ask_with_default\nrule {6}default\nlisted/);
  expect(await explained("fixture://orders/emea/1", "{}")).toMatch(/^deny .*\nrule {6}rules\.emea\n/);
  expect(await explained("typed", '{"text": "no count"}')).toMatch(/^mistake {3}invalid arguments for "typed": count/m);
  const expectations = writeFile("real.yaml", [
    { client: "ada", tool: "ask_with_default", args: {}, expect: "allow" },
    { client: "ada", tool: "fixture://orders/emea/1", expect: "deny", rule: "rules.emea" },
    { client: "ada", tool: "prompt:review", args: { code: "secret" }, expect: "deny", rule: "rules.code" },
  ]);
  expect((await policyCli("test", expectations, "--policy", policy)).err).toBe("3 of 3 expectations hold.\n");
}, 120_000);

test("stats adds up calls by client, tool and day", async () => {
  const { out } = await runCli(["mcp-server", "stats", "--json", "--config", config]);
  expect(JSON.parse(out)).toMatchObject({ clients: [{ client: "anonymous" }] });
});
