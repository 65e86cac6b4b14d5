import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { runCli } from "../integration/cli-process.ts";
import { call, startGoverned, writeFile } from "../integration/governance-lab.ts";
import { BIN, until } from "../integration/harness.ts";
import { Terminal } from "../tooling/terminal.ts";

/** A call whose end an operator does not see must not be approved by its beginning. */
const PAYLOAD = "rm -rf /hidden-payload";
const HARMLESS = `echo harmless${" .".repeat(1000)}; ${PAYLOAD}`;
const DISGUISED = "echo \u202elived\u202c \u200bhidden \u001b[2J \u009b1A";

let server: Awaited<ReturnType<typeof startGoverned>>;
let config = "";

beforeAll(async () => {
  const tools = { echo: { confirm: "operator" } };
  server = await startGoverned({ governance: { tools, approvalTimeoutSeconds: 60 } });
  config = writeFile("cli.yaml", { sandbox: { root: server.root, enabled: false } });
});

afterAll(() => server.stop());

const cli = (...argv: string[]): ReturnType<typeof runCli> =>
  runCli(["mcp-server", "approvals", ...argv, "--config", config]);

interface Listed {
  readonly id: string;
  readonly hash: string;
  readonly args: { readonly text: string };
}

async function listed(): Promise<readonly Listed[]> {
  return (JSON.parse((await cli("list", "--json")).out) as { readonly approvals: readonly Listed[] }).approvals;
}

/** A call that waits, and what becomes of it. */
async function waits(text: string) {
  const running = call(server.url, "echo", { text });
  const approvals = await until(listed, (all) => all.some(({ args }) => args.text === text));
  const approval = approvals.find(({ args }) => args.text === text);
  if (approval === undefined) throw new Error("the call waits");
  return { running, ...approval };
}

test("a call is not approved without a terminal and without its hash", async () => {
  const { id, hash, running } = await waits(HARMLESS);
  const blind = await cli("approve", id);
  expect([blind.code, blind.err]).toEqual([2, expect.stringContaining("--hash")]);
  for (const wrong of ["", "A", hash.slice(0, 15), `${hash.slice(0, -1)}_`, "A".repeat(43)])
    expect((await cli("approve", id, "--hash", wrong)).code).toBe(2);
  expect((await listed()).map((each) => each.id)).toContain(id);
  expect((await cli("approve", id, "--hash", hash.slice(0, 16))).err).toContain("may run, once");
  expect((await running).body.error).toBeUndefined();
});

test("a call that waits is denied without being looked at", async () => {
  const { id, running } = await waits(`${HARMLESS} denied`);
  expect((await cli("deny", id)).code).toBe(0);
  expect((await running).body.error?.data).toMatchObject({ kind: "governance_denied" });
});

test("on a terminal the whole call is shown, with what is invisible, and only a yes approves it", async () => {
  const text = `${DISGUISED}${HARMLESS}`;
  const { id, running } = await waits(text);
  const { PATH = "", HOME = "" } = process.env;
  const terminal = await Terminal.open({ cwd: server.root, env: { PATH, HOME } });
  onTestFinished(() => terminal.close());
  const approve = `${process.execPath} ${BIN} mcp-server approvals approve ${id} --config ${config}`;
  const refused = await terminal.run(`echo n | ${approve}`);
  expect(refused.status).not.toBe(0);
  terminal.begin(approve);
  const { screen } = await terminal.answer(/\[y\/N\]/, "n");
  expect(screen).toContain(PAYLOAD);
  expect(screen).toContain(String.raw`\u202elived\u202c \u200bhidden \u001b[2J \u009b1A`);
  expect(screen).toContain("still waits");
  terminal.begin(approve);
  expect((await terminal.answer(/\[y\/N\]/, "y")).screen).toContain("may run, once");
  expect((await running).body.error).toBeUndefined();
});

test("the list on a narrow terminal says which arguments are cut", async () => {
  const { id, running } = await waits(`${HARMLESS} listed`);
  const { PATH = "", HOME = "" } = process.env;
  const terminal = await Terminal.open({ cwd: server.root, env: { PATH, HOME } });
  onTestFinished(() => terminal.close());
  const list = `${process.execPath} ${BIN} mcp-server approvals list --config ${config}`;
  expect((await terminal.run(list)).screen).toContain(`The arguments of ${id} are cut`);
  expect((await cli("deny", id)).code).toBe(0);
  await running;
});
