import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Client } from "@modelcontextprotocol/client";
import { expect, onTestFinished, test } from "vitest";
import { BIN, call, connectHttp, makePlace, readText, Server } from "./sandbox-client.ts";

async function outputOf(client: Client, command: string): Promise<string> {
  return String((await call(client, "shell_exec", { command })).structuredContent?.["stdout"]);
}

test("SANDBOX_WORKSPACE renames the workspace for code, commands, files, descriptions and errors", async () => {
  const server = new Server(makePlace(), {}, { SANDBOX_WORKSPACE: "/home/agent/project" });
  const url = await server.url();
  const client = await connectHttp(url);
  const python = await call(client, "code_run", { code: "import os\nopen('a.txt', 'w').write('x')\nos.getcwd()" });
  expect(python.structuredContent).toMatchObject({ value: "'/home/agent/project'" });
  const node = await call(client, "code_run", { code: "process.cwd()", language: "node" });
  expect(node.structuredContent).toMatchObject({ value: "'/home/agent/project'" });
  expect(await outputOf(client, "pwd; ls; ls -d /workspace || echo none")).toBe("/home/agent/project\na.txt\nnone\n");

  await call(client, "file_write", { path: "/home/agent/project/b.txt", content: "absolute" });
  expect((await call(client, "file_read", { path: "b.txt" })).structuredContent).toMatchObject({ content: "absolute" });
  const refused = await call(client, "file_read", { path: "/workspace/b.txt" });
  expect(readText(refused)).toMatchObject({ hint: expect.stringContaining("/home/agent/project") });
  const sessionId = String(python.structuredContent?.["session_id"]);
  const response = await fetch(`${new URL(url).origin}/api/sandboxes/${sessionId}/files/b.txt`);
  expect(await response.text()).toBe("absolute");

  const { tools } = await client.listTools();
  expect(JSON.stringify(tools)).toContain("/home/agent/project");
  expect(JSON.stringify(tools)).not.toContain("/workspace");
});

test("a workspace where the system's own folders are is refused at start", async () => {
  const { folder, dataFolder } = makePlace();
  mkdirSync(join(folder, "work"));
  const { url } = startApart(folder, { SANDBOX_ROOT: dataFolder, SANDBOX_WORKSPACE: "/usr" });
  await expect(url).rejects.toThrow("sandbox.workspace");
});

/** Where programs leave files that outlive them. A clone in one of them hides it: the test empties them for the server. */
const SHARED_PLACES = ["/var/tmp", "/dev/shm"].filter((path) => !BIN.startsWith(`${path}/`));
const isRoot = process.getuid?.() === 0;

test("[003-NFR-005] with SANDBOX_ROOT, a session of calls leaves nothing in home, temporary or working folders", async () => {
  const { folder, dataFolder } = makePlace();
  const own = ["home", "tmp", "work"].map((name) => join(folder, name));
  for (const path of own) mkdirSync(path);
  const before = listing(own, "");
  const sharedBefore = isRoot ? SHARED_PLACES.toSorted() : listing(SHARED_PLACES, "");
  const { child, url } = startApart(folder, { SANDBOX_ROOT: dataFolder });
  const client = await connectHttp(await url);
  const sessionId = await useEverything(client);
  const file = `${new URL(await url).origin}/api/sandboxes/${sessionId}/files/up.bin`;
  expect((await fetch(file, { method: "PUT", body: new Uint8Array(3_000_000) })).status).toBe(201);

  const view = isRoot ? `/proc/${child.pid}/root` : "";
  const check = (): void => {
    expect(listing(own, "")).toEqual(before);
    expect(readdirSync(folder).toSorted()).toEqual(["data", "home", "tmp", "work"]);
  };
  check();
  expect(listing(SHARED_PLACES, view)).toEqual(sharedBefore);
  expect(readdirSync(join(dataFolder, "sandboxes"))).not.toEqual([]);
  await client.close();
  child.kill("SIGTERM");
  expect(await once(child, "exit")).toEqual([0, null]);
  check();
  expect(readdirSync(join(dataFolder, "sandboxes"))).toEqual([]);
});

/** Every tool family once, with as much noise in usual places as code inside can make. */
async function useEverything(client: Client): Promise<string> {
  const noise = `
import os, pathlib, tempfile
for folder in (os.path.expanduser("~"), "/tmp", "/var/tmp", "/dev/shm", tempfile.gettempdir(), "."):
    try:
        pathlib.Path(folder, "noise").write_text("x")
    except OSError:
        pass
import matplotlib.pyplot
`;
  const made = await call(client, "code_run", { code: noise });
  expect(made.structuredContent).toMatchObject({ status: "ok" });
  const session_id = String(made.structuredContent?.["session_id"]);
  await call(client, "code_run", { code: "console.log('x'.repeat(200000))", language: "node", session_id });
  await call(client, "shell_exec", { command: "seq 100000; echo > ~/noise", session_id });
  await call(client, "shell_exec", { command: "sleep 1000", background: true, session_id });
  await call(client, "file_write", { path: "a/b", content: "x", session_id });
  await call(client, "file_search", { pattern: "x", session_id });
  const other = await call(client, "sandbox_create", { env: { A: "b" } });
  await call(client, "sandbox_destroy", { session_id: other.structuredContent?.["session_id"] });
  return session_id;
}

/**
 * The server with folders of its own. Others write to the shared places too; root can give it empty ones, which are
 * looked at through the process itself.
 */
function startApart(
  folder: string,
  env: Readonly<Record<string, string>>,
): { child: ChildProcess; url: Promise<string> } {
  const start = [
    process.execPath,
    BIN,
    "mcp-server",
    "start",
    "--transport",
    "http",
    "--host",
    "127.0.0.1",
    "--port",
    "0",
  ];
  const empty = SHARED_PLACES.map((path) => `mount -t tmpfs none ${path} && `).join("");
  const argv = isRoot ? ["unshare", "--mount", "sh", "-c", `${empty}exec "$@"`, "sh", ...start] : start;
  const [command = "", ...args] = argv;
  const child = spawn(command, args, {
    cwd: join(folder, "work"),
    env: { PATH: process.env["PATH"], HOME: join(folder, "home"), TMPDIR: join(folder, "tmp"), ...env },
    stdio: ["ignore", "ignore", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGTERM"));
  const url = new Promise<string>((listen, fail) => {
    const said: string[] = [];
    createInterface({ input: child.stderr }).on("line", (line) => {
      said.push(line);
      const address = /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(line)?.[0];
      if (line.includes('"listening"') && address !== undefined) listen(address);
    });
    child.once("exit", () => fail(new Error(`the server ended: ${said.join("\n")}`)));
  });
  return { child, url };
}

/** Every path below the folders, as seen from `view`. */
function listing(folders: readonly string[], view: string): string[] {
  const below = (path: string): string[] =>
    readdirSync(`${view}${path}`, { withFileTypes: true }).flatMap((entry) => {
      const inside = join(path, entry.name);
      return entry.isDirectory() ? [inside, ...below(inside)] : [inside];
    });
  return folders.flatMap((folder) => [folder, ...below(folder)]).toSorted();
}
