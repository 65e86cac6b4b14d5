import { afterAll, beforeAll, expect, test } from "vitest";
import type { Client } from "@modelcontextprotocol/client";
import { call, connectHttp, makePlace, Server } from "../e2e/sandbox-client.ts";

/** One file has many names: a rule on its path must hold under each of them. */
const RULES = [
  { id: "dots", when: 'has(sent.path) && sent.path == "././open.txt"', effect: "deny" },
  { id: "secret", when: 'has(args.path) && args.path.startsWith("secret")', effect: "deny" },
  { id: "secrets", when: 'has(args.paths) && args.paths.exists(path, path.startsWith("secret"))', effect: "deny" },
  { id: "folders", when: 'has(args.cwd) && args.cwd.startsWith("secret")', effect: "deny" },
  { id: "files", when: 'tool == "file_read" && args.path != "open.txt" && !args.path.startsWith("x")', effect: "deny" },
];

let server: Server;
let client: Client;
let origin: string;
let id: string;

beforeAll(async () => {
  server = new Server(makePlace(), { governance: { rules: RULES }, tools: { dialects: ["native", "open-sandbox"] } });
  const url = await server.url();
  ({ origin } = new URL(url));
  client = await connectHttp(url);
  id = String((await call(client, "sandbox_create")).structuredContent?.["session_id"]);
  await call(client, "shell_exec", {
    session_id: id,
    command: "mkdir d && echo hello | tee open.txt > secret.txt && ln -s secret.txt x-link",
  });
});

afterAll(async () => {
  await client.close();
  await server.stop();
});

async function outcome(name: string, args: Record<string, unknown>): Promise<string> {
  return settled(call(client, name, { session_id: id, ...args }));
}

function settled(work: Promise<unknown>): Promise<string> {
  return work.then(
    (result) => JSON.stringify(result),
    (error: unknown) => `${String(error)} ${JSON.stringify(error)}`,
  );
}

const spellingsOf = (name: string): readonly string[] => [
  name,
  `./${name}`,
  `.//${name}`,
  `d/../${name}`,
  `/workspace/${name}`,
  `/workspace/./d/../${name}`,
  `//workspace//${name}`,
  `../workspace/${name}`,
  `/tmp/../workspace/${name}`,
  `${name}/.`,
];

test.each(spellingsOf("secret.txt"))(
  "a rule on a path holds for the spelling %s, under every name of the tool",
  async (path) => {
    for (const name of ["file_read", "file.read"]) expect(await outcome(name, { path })).toContain("rules.secret");
    expect(await outcome("file_write", { path, content: "x" })).toContain("rules.secret");
    expect(await outcome("file_replace", { path, old_text: "hello", new_text: "x" })).toContain("rules.secret");
    expect(await outcome("file_list", { path })).toContain("rules.secret");
    expect(await outcome("file_search", { path, pattern: "hello" })).toContain("rules.secret");
    expect(await outcome("browser_screenshot", { path })).toContain("rules.secret");
    const uri = `sandbox://${id}/${path}`;
    expect(await settled(client.readResource({ uri }))).toContain("rules.secret");
  },
);

test.each(spellingsOf("secret"))("a rule on the folder of a command holds for the spelling %s", async (cwd) => {
  for (const name of ["shell_exec", "shell.exec"]) {
    expect(await outcome(name, { command: "pwd", cwd })).toContain("rules.folders");
  }
});

test.each(spellingsOf("open.txt").slice(0, -1))("another file is read by the spelling %s", async (path) => {
  expect(await outcome("file_read", { path })).toContain("hello");
  expect(JSON.stringify(await client.readResource({ uri: `sandbox://${id}/${path}` }))).toContain("hello");
});

test("a link of the system that leads into the workspace is not followed", async () => {
  for (const path of ["/proc/self/cwd/secret.txt", "/proc/self/root/workspace/secret.txt"]) {
    expect(await outcome("file_read", { path })).toContain("rules.files");
    expect(await outcome("file_replace", { path, old_text: "hello", new_text: "x" })).toContain(
      "outside the workspace",
    );
  }
});

test("a rule can look at the spelling that was sent", async () => {
  expect(await outcome("file_read", { path: "././open.txt" })).toContain("rules.dots");
});

test("a file over HTTP is refused by the same rule", async () => {
  const files = `${origin}/api/sandboxes/${id}/files`;
  expect((await fetch(`${files}/secret.txt`)).status).toBe(403);
  expect((await fetch(`${files}/%2e/secret.txt`)).status).not.toBe(200);
  expect((await fetch(`${files}//secret.txt`)).status).not.toBe(200);
  expect((await fetch(`${files}/open.txt`)).status).toBe(200);
});

test("a link in the workspace is another name: the server cannot resolve it", async () => {
  expect(await outcome("file_read", { path: "x-link" })).toContain("hello");
});
