import { expect, test } from "vitest";
import { assembleGoverned } from "../integration/assembled-lab.ts";
import { run } from "../../src/cli/run.ts";
import { exportRows } from "../../src/governance/ledger/export.ts";
import { fakeTerminal } from "../unit/cli/fake-terminal.ts";
import { entry } from "../unit/governance/ledger/ledger-entry.ts";
import { dataFolder, openTestLedger } from "../unit/governance/ledger/ledger-fixture.ts";

/** Ways to write a secret, of which none may be in the ledger. */
const COMMANDS: readonly string[] = [
  "deploy --password hunter22-secret",
  "deploy --db-password 'two hunter22-secret'",
  'password="two hunter22-secret" deploy',
  "password='a;hunter22-secret' deploy",
  `python -c 'os.environ["DB_PASSWORD"] = "hunter22-secret"'`,
  "mysql -uroot -phunter22-secret shop",
  "psql postgres://ada:p@hunter22-secret@db/owl",
  `python -c 'password = f"hunter22-secret"'`,
  `python -c 'password = """two hunter22-secret"""'`,
  `python -c 'password: str = "hunter22-secret"'`,
  `python -c 'print(password == "hunter22-secret")'`,
  "go run . <<< 'password := \"hunter22-secret\"'",
  "node -e 'const password = `two hunter22-secret`'",
  "password=$'hunter22-secret' deploy",
  `password='a'"hunter22-secret" deploy`,
  "echo \"password: 'it''s hunter22-secret'\" > app.yaml",
  'deploy --password="two \\" hunter22-secret"',
  "MYSQL_PWD=hunter22-secret mysql shop",
  "curl -H 'Authorization: Token hunter22-secret' https://db",
  "curl -uada:hunter22-secret https://db",
];

test.each(COMMANDS)("the ledger does not hold the secret of %s", async (command) => {
  const { pipeline, call } = await assembleGoverned({ governance: { defaults: { deny: ["shell_exec"] } } });
  await expect(Promise.resolve(pipeline.findTool("shell_exec", call, { command }))).rejects.toThrow("refuses");
  const rows = (await pipeline.governance?.ledger.reader.list({}, { limit: 10 })) ?? [];
  expect(rows).toHaveLength(1);
  expect(JSON.stringify(rows)).not.toContain("hunter22");
  expect(JSON.stringify(rows)).toContain("[redacted]");
});

test.each(["csv", "jsonl"] as const)("an export as %s holds no character that steers a terminal", async (format) => {
  const { pipeline, call } = await assembleGoverned({});
  const name = "x\u001b[2J\u009b31m\u202etxt\rmore";
  await Promise.resolve(pipeline.findTool(name, call, {})).catch(() => undefined);
  const reader = pipeline.governance?.ledger.reader;
  if (reader === undefined) throw new Error("the ledger is there");
  let text = "";
  for await (const page of exportRows(reader, { format, filter: {} })) text += page;
  expect(text).toContain("[2J");
  expect(text.replaceAll("\r\n", "\n")).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/);
});

const STEERING = "x\u001b[2J\u009b31m\u061c\u200f\u202etxt\u2066\r";

async function printed(command: string): Promise<string> {
  const folder = dataFolder();
  const { ledger } = await openTestLedger(folder);
  await ledger.append(entry({ name: STEERING, args: { path: STEERING } }));
  const terminal = fakeTerminal({ width: Number.POSITIVE_INFINITY });
  const argv = ["mcp-server", "ledger", ...command.split(" "), "--set", `sandbox.root=${folder}`];
  expect(await run(argv, terminal)).toBe(0);
  await ledger.close();
  return terminal.written.out;
}

test.each(["list --json", "show 1 --json", "show 1", "list", "export", "export --format csv"])(
  "what `ledger %s` prints holds no character that steers a terminal, wherever it goes",
  async (command) => {
    const out = await printed(command);
    expect(out).toContain("[2J");
    expect(out.replaceAll("\r\n", "\n")).not.toMatch(
      /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/,
    );
  },
);

test("the JSON of a command has the same values as before", async () => {
  expect(JSON.parse(await printed("show 1 --json"))).toMatchObject({ args: { path: STEERING } });
});
