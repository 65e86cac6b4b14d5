import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { expect, onTestFinished, test } from "vitest";
import { temporaryFolder } from "../unit/config/temporary-folder.ts";
import { BIN } from "./harness.ts";

const LAUNCHER = path.resolve(BIN, "../../owlclaw");

function owlclaw(home: string, args: readonly string[], cwd = home) {
  const env = { PATH: process.env["PATH"], HOME: home };
  const { status, stdout, stderr } = spawnSync(process.execPath, [BIN, ...args], { env, cwd, encoding: "utf8" });
  return { code: status, out: stdout, err: stderr };
}

const FILES: readonly [string, string, string, string][] = [
  ["claude-code", "user", ".claude.json", "mcpServers"],
  ["claude-code", "project", ".mcp.json", "mcpServers"],
  ["claude-desktop", "user", ".config/Claude/claude_desktop_config.json", "mcpServers"],
  ["cursor", "user", ".cursor/mcp.json", "mcpServers"],
  ["cursor", "project", ".cursor/mcp.json", "mcpServers"],
  ["vscode", "user", ".config/Code/User/mcp.json", "servers"],
  ["vscode", "project", ".vscode/mcp.json", "servers"],
  ["windsurf", "user", ".codeium/windsurf/mcp_config.json", "mcpServers"],
  ["gemini-cli", "user", ".gemini/settings.json", "mcpServers"],
  ["gemini-cli", "project", ".gemini/settings.json", "mcpServers"],
];

test.each(FILES)("install %s for a %s writes %s, and uninstall takes it out", (client, scope, file, key) => {
  const home = temporaryFolder({});
  const project = path.join(home, "work", "project");
  mkdirSync(project, { recursive: true });
  const where = path.join(scope === "user" ? home : project, file);
  const config = path.join(home, "mcp-server.yaml");
  const installed = owlclaw(home, ["install", client, "--scope", scope, "--yes", "--config", config], project);
  expect(installed).toMatchObject({ code: 0, out: expect.stringContaining(`+     "owlclaw": {`) });
  const written = JSON.parse(readFileSync(where, "utf8")) as Record<string, Record<string, unknown>>;
  expect(written[key]?.["owlclaw"]).toMatchObject({
    command: LAUNCHER,
    args: ["mcp-server", "start", "--config", config],
  });
  expect(statSync(where).mode & 0o777).toBe(0o600);
  expect(owlclaw(home, ["uninstall", client, "--scope", scope, "--yes"], project).code).toBe(0);
  expect(JSON.parse(readFileSync(where, "utf8"))).toEqual({ [key]: {} });
});

test("what is written starts a server that a real client can use", async () => {
  const home = temporaryFolder({});
  const config = path.join(home, "mcp-server.yaml");
  writeFileSync(config, JSON.stringify({ sandbox: { enabled: false, root: path.join(home, "data") } }));
  owlclaw(home, ["install", "cursor", "--yes", "--config", config]);
  const { mcpServers } = JSON.parse(readFileSync(path.join(home, ".cursor/mcp.json"), "utf8")) as {
    mcpServers: { owlclaw: { command: string; args: string[] } };
  };
  const client = new Client({ name: "install-test", version: "1" });
  onTestFinished(() => client.close());
  await client.connect(new StdioClientTransport({ ...mcpServers.owlclaw, stderr: "ignore" }));
  expect(client.getServerVersion()).toMatchObject({ name: "owlclaw" });
});

const KEPT = `{
\t// Mine, and nobody else's
\t"theme": "dark",
\t"servers": {
\t\t"other": { "command": "x", "env": { "A": "1" } }, // keep
\t},
\t/* the end */
}
`;

test("comments, order, form and the servers of others stay, the file as it was is kept, and a second time changes nothing", () => {
  const home = temporaryFolder({});
  const folder = path.join(home, ".config/Code/User");
  const file = path.join(folder, "mcp.json");
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, KEPT, { mode: 0o640 });
  const first = owlclaw(home, ["install", "vscode", "--yes", "--name", "mine"]);
  expect(first.code).toBe(0);
  const after = readFileSync(file, "utf8");
  const isKept = (line: string): boolean => KEPT.split("\n").includes(line);
  expect(after.split("\n").filter(isKept)).toEqual(KEPT.split("\n"));
  expect(after.split("\n").find((line) => !isKept(line))).toBe('\t\t"mine": {');
  expect(statSync(file).mode & 0o777).toBe(0o640);
  expect(readFileSync(`${file}.owlclaw-backup`, "utf8")).toBe(KEPT);
  const second = owlclaw(home, ["install", "vscode", "--yes", "--name", "mine"]);
  expect(second).toMatchObject({ code: 0, out: "", err: expect.stringContaining("as it should be already") });
  expect(readFileSync(file, "utf8")).toBe(after);
  expect(owlclaw(home, ["uninstall", "vscode", "--yes", "--name", "mine"]).code).toBe(0);
  expect(readFileSync(file, "utf8").replaceAll(/\s/g, "")).toBe(KEPT.replaceAll(/\s/g, ""));
  expect(readdirSync(folder).toSorted()).toEqual(["mcp.json", "mcp.json.owlclaw-backup"]);
});

test.each([
  ["nothing", "", '{\n  "mcpServers": {\n    "a": {\n'],
  ["an empty object", "{}", '{\n  "mcpServers": {\n    "a": {\n'],
  ["no servers", '{"x": 1}', '{\n  "mcpServers": {\n    "a": {\n'],
  ["servers on one line", '{ "mcpServers": { "b": {} } }', '{ "mcpServers": {\n  "a": {\n'],
  ["a comment behind the brace", '{\n  "mcpServers": { // all\n  }\n}', '"mcpServers": { // all\n    "a": {\n'],
  ["the same server, otherwise", '{ "mcpServers": { "a": { "command": "old" } } }', '"a": {\n'],
])("a file with %s stays readable, and gets the server", (_, content, expected) => {
  const home = temporaryFolder({});
  const file = path.join(home, ".claude.json");
  writeFileSync(file, content);
  expect(owlclaw(home, ["install", "claude-code", "--yes", "--name", "a"]).code).toBe(0);
  const after = readFileSync(file, "utf8");
  expect(after).toContain(expected);
  const { mcpServers, ...rest } = JSON.parse(after.replace("// all", "")) as Record<string, Record<string, unknown>>;
  const before = JSON.parse(content.replace("// all", "") || "{}") as Record<string, Record<string, unknown>>;
  expect(mcpServers).toEqual({ ...before["mcpServers"], a: expect.objectContaining({ command: LAUNCHER }) });
  expect({ ...rest, mcpServers: before["mcpServers"] }).toEqual({ ...before, mcpServers: before["mcpServers"] });
});

test("nothing is written by --dry-run, nor without a yes", () => {
  const home = temporaryFolder({});
  expect(owlclaw(home, ["install", "cursor", "--dry-run"])).toMatchObject({
    code: 0,
    out: expect.stringContaining("+ "),
  });
  expect(owlclaw(home, ["install", "cursor"])).toMatchObject({ code: 1, err: expect.stringContaining("--yes") });
  expect(existsSync(path.join(home, ".cursor"))).toBe(false);
});

test.each([
  ["half a file", '{ "mcpServers": {', /no valid JSON .* in line 1/],
  ["a list", "[]", /holds no JSON object/],
  ["servers that are a list", '{ "mcpServers": [] }', /"mcpServers" is no JSON object/],
])("%s is refused and stays as it is", (_, content, reason) => {
  const home = temporaryFolder({});
  const file = path.join(home, ".claude.json");
  writeFileSync(file, content);
  const refused = owlclaw(home, ["install", "claude-code", "--yes"]);
  expect(refused).toMatchObject({ code: 1, err: expect.stringMatching(reason) });
  expect(readFileSync(file, "utf8")).toBe(content);
  expect(readdirSync(home)).toEqual([".claude.json"]);
});

test("a link to the real file stays a link, names that mean something to JavaScript are refused, and so is a scope that is not there", () => {
  const home = temporaryFolder({});
  const real = path.join(home, "dotfiles.json");
  writeFileSync(real, "{}\n");
  symlinkSync(real, path.join(home, ".claude.json"));
  expect(owlclaw(home, ["install", "claude-code", "--yes"]).code).toBe(0);
  expect(readFileSync(real, "utf8")).toContain("owlclaw");
  expect(owlclaw(home, ["install", "claude-code", "--yes", "--name", "__proto__"]).code).toBe(2);
  expect(owlclaw(home, ["install", "windsurf", "--yes", "--scope", "project"]).code).toBe(2);
  expect(owlclaw(home, ["install", "notepad", "--yes"]).code).toBe(2);
});
