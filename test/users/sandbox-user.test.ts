import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  accessSync,
  chownSync,
  constants,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { LogLines } from "../e2e/log-lines.ts";
import { type Account, makeOrdinaryAccount } from "../e2e/sandbox-account.ts";
import { call, connectHttp } from "../e2e/sandbox-client.ts";

let account: Account;
beforeAll(() => {
  account = makeOrdinaryAccount();
});
afterAll(() => account.remove());

interface UserServer {
  readonly child: ChildProcess;
  readonly folder: string;
  readonly log: Record<string, unknown>[];
  url(): Promise<string>;
  stop(): Promise<number | null>;
}

interface Home {
  readonly folder: string;
  readonly config: string;
  readonly environment: Record<string, string | undefined>;
}

/** A home of its own, with a configuration in it. */
function makeHome(sandbox: Readonly<Record<string, unknown>>): Home {
  const { uid } = account;
  const folder = mkdtempSync(join(account.folder, "home-"));
  chownSync(folder, uid, uid);
  for (const name of ["tmp", "work"]) {
    mkdirSync(join(folder, name));
    chownSync(join(folder, name), uid, uid);
  }
  const config = join(folder, "config.yaml");
  writeFileSync(
    config,
    JSON.stringify({ http: { host: "127.0.0.1", port: 0 }, sandbox: { pool: { size: 1 }, ...sandbox } }),
  );
  return { folder, config, environment: { PATH: process.env["PATH"], HOME: folder, TMPDIR: join(folder, "tmp") } };
}

/** The server with a home of its own and nothing else of ours. */
function startAsUser(sandbox: Readonly<Record<string, unknown>>): UserServer {
  const { uid, node, main } = account;
  const { folder, config, environment } = makeHome(sandbox);
  const child = spawn(node, [main, "mcp-server", "start", "--transport", "http", "--config", config], {
    cwd: join(folder, "work"),
    env: environment,
    stdio: ["ignore", "ignore", "pipe"],
    ...(process.getuid?.() === uid ? {} : { uid, gid: uid }),
  });
  let told = (): void => {};
  const lines = new LogLines(child.stderr, () => told());
  const log = lines.lines;
  const listening = new Promise<string>((listen, fail) => {
    told = () => {
      const entry = log.find(({ message }) => message === "listening");
      if (entry !== undefined) listen(String(entry["url"]));
    };
    child.once("exit", () => fail(new Error(`the server ended: ${JSON.stringify(log)}`)));
  });
  const stop = async (): Promise<number | null> => {
    child.kill("SIGTERM");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    return child.exitCode;
  };
  onTestFinished(async () => {
    await stop();
    lines.assertNothingElse();
  });
  return { child, folder, log, url: () => listening, stop };
}

/** Processes that name the folder, and as root all that run as the user. */
function processesOf(folder: string): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
        const status = readFileSync(`/proc/${pid}/status`, "utf8");
        const owner = Number(/^Uid:\s+(\d+)/m.exec(status)?.[1]);
        // What has ended is in the list until the first process of the machine has taken note.
        if (/^State:\s+[ZX]/m.test(status)) return [];
        return command.includes(folder) || (process.getuid?.() === 0 && owner === account.uid) ? [command] : [];
      } catch {
        // It ended while we looked.
        return [];
      }
    });
}

test("an ordinary user who accepts weaker limits has every tool, and nothing is left when the server ends", async () => {
  const server = startAsUser({ limits: "best-effort" });
  const client = await connectHttp(await server.url());
  expect(statSync(`/proc/${server.child.pid}`).uid).toBe(account.uid);
  const python = await call(client, "code_run", {
    code: "import os\nopen('made.txt', 'w').write('by code')\nos.getuid() != 0",
  });
  expect(python.structuredContent).toMatchObject({ status: "ok", value: "True" });
  const session_id = String(python.structuredContent?.["session_id"]);
  const nodeRun = await call(client, "code_run", { code: "1 + 1", language: "node", session_id });
  expect(nodeRun.structuredContent).toMatchObject({ status: "ok", value: "2" });
  const shell = await call(client, "shell_exec", { command: "cat made.txt; sleep 1000 & exit 3", session_id });
  expect(shell.content[0]?.text).toContain("by code");
  await call(client, "file_write", { path: "a/b.txt", content: "one\ntwo\n", session_id });
  await call(client, "file_replace", { path: "a/b.txt", old_text: "two", new_text: "three", session_id });
  expect((await call(client, "file_read", { path: "a/b.txt", session_id })).structuredContent).toMatchObject({
    content: "one\nthree\n",
  });
  const found = await call(client, "file_search", { pattern: "three", session_id });
  expect(JSON.stringify(found.structuredContent)).toContain("a/b.txt");
  expect(JSON.stringify((await call(client, "file_list", { session_id })).structuredContent)).toContain("made.txt");
  const files = `${new URL(await server.url()).origin}/api/sandboxes/${session_id}/files/up.bin`;
  expect((await fetch(files, { method: "PUT", body: new Uint8Array(3_000_000) })).status).toBe(201);
  expect((await (await fetch(files)).arrayBuffer()).byteLength).toBe(3_000_000);

  expect(processesOf(server.folder).length).toBeGreaterThan(1);
  await client.close();
  expect(await server.stop()).toBe(0);
  expect(processesOf(server.folder)).toEqual([]);
  const data = join(server.folder, ".local/share/owlclaw");
  expect(readdirSync(join(data, "sandboxes"))).toEqual([]);
  expect(readFileSync("/proc/self/mountinfo", "utf8")).not.toContain(server.folder);
  expect(readdirSync(server.folder).toSorted()).toEqual([".local", "config.yaml", "tmp", "work"]);
  expect([...readdirSync(join(server.folder, "tmp")), ...readdirSync(join(server.folder, "work"))]).toEqual([]);
});

test("what an ordinary user goes without is said at start", async () => {
  const server = startAsUser({ limits: "best-effort" });
  await server.url();
  const missing = server.log.filter(({ message }) => message === "sandboxes run without a limit");
  expect(missing.map(({ limit }) => limit)).toEqual(expect.arrayContaining(hasSession() ? [] : ["memory-limit"]));
  for (const { detail } of missing) expect(detail).not.toBe("");
});

/** With a session of systemd, an ordinary user may have limits by the kernel. */
function hasSession(): boolean {
  try {
    accessSync(`/run/user/${account.uid}/bus`, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}

test("where limits are required and cannot be kept, the log and every tool say what is missing and what to do", async (context) => {
  if (hasSession()) context.skip("a session of systemd gives this user memory and CPU limits");
  const server = startAsUser({ limits: "required" });
  const client = await connectHttp(await server.url());
  const said = server.log.find(({ message }) => message === "sandboxes are not available");
  expect(said).toMatchObject({
    level: "error",
    reason:
      "bubblewrap cannot run sandboxes here: no cgroup for this user, so memory and CPU time of a sandbox cannot be limited; no file system limits the workspace of a sandbox: a program can fill the disk before it is noticed",
    hint: expect.stringMatching(/^Start the server as root\. .*--set sandbox\.limits=best-effort/),
  });
  const failed = server.log.filter(({ message }) => message === "a check of the isolation failed");
  expect(failed.map(({ check }) => check)).toEqual(
    expect.arrayContaining(["memory-limit", "cpu-limit", "workspace-limit"]),
  );
  expect((await fetch(new URL("/health", await server.url()))).status).toBe(503);
  const calls = { code_run: { code: "1" }, shell_exec: { command: "true" }, file_list: {} };
  for (const [name, args] of Object.entries(calls))
    await expect(call(client, name, args)).rejects.toThrow(String(said?.["reason"]));
  expect(await server.stop()).toBe(0);
  expect(processesOf(server.folder)).toEqual([]);
});

interface Doctored {
  readonly code: number | null;
  find(name: string): Readonly<Record<string, unknown>> | undefined;
}

function doctorAsUser(sandbox: Readonly<Record<string, unknown>>): Doctored {
  const { node, main, uid } = account;
  const { folder, config, environment } = makeHome(sandbox);
  const { stdout, status } = spawnSync(node, [main, "mcp-server", "doctor", "--json", "--config", config], {
    cwd: join(folder, "work"),
    env: environment,
    encoding: "utf8",
    ...(process.getuid?.() === uid ? {} : { uid, gid: uid }),
  });
  const checks = JSON.parse(stdout) as Readonly<Record<string, unknown>>[];
  return { code: status, find: (name) => checks.find((check) => check["name"] === name) };
}

test("the doctor says to a user without control groups what is missing and what to do, and takes it when that is accepted", (context) => {
  if (hasSession()) context.skip("a session of systemd gives this user every limit");
  const told = {
    message: expect.stringMatching(/^no cgroup for this user/),
    fix: expect.stringMatching(/systemd-run --user --scope -p Delegate=yes .*--set sandbox\.limits=best-effort/),
  };
  const strict = doctorAsUser({ runtime: "bubblewrap" });
  for (const name of ["memory-limit", "cpu-limit"])
    expect(strict.find(name)).toMatchObject({ status: "failed", ...told });
  expect(strict.find("runtime bubblewrap")).toMatchObject({ status: "failed" });
  expect(strict.code).toBe(1);
  const accepted = doctorAsUser({ runtime: "bubblewrap", limits: "best-effort" });
  for (const name of ["memory-limit", "cpu-limit"])
    expect(accepted.find(name)).toMatchObject({ status: "warning", ...told });
  expect(accepted.find("runtime bubblewrap")).toMatchObject({ status: "warning" });
  expect(accepted.find("a call over stdio")).toMatchObject({ status: "ok" });
  expect(accepted.code).toBe(0);
});

test("one program gets no more memory than the sandbox is to have, whatever Node reserves for itself", async (context) => {
  if (hasSession()) context.skip("a session of systemd limits the whole sandbox instead");
  const server = startAsUser({ limits: "best-effort" });
  const client = await connectHttp(await server.url());
  const take = (mib: number): string =>
    `import mmap\nlen(mmap.mmap(-1, ${mib} << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)) >> 20`;
  const fits = await call(client, "code_run", { code: take(900) });
  expect(fits.structuredContent).toMatchObject({ status: "ok", value: "900" });
  const session_id = String(fits.structuredContent?.["session_id"]);
  for (const [tool, args] of [
    ["code_run", { code: take(1100) }],
    ["shell_exec", { command: `python3 -c '${take(1100)}'` }],
  ] as const)
    expect(JSON.stringify(await call(client, tool, { ...args, session_id }))).toContain("Cannot allocate memory");
  const large = { code: "Buffer.alloc(700 << 20).length >> 20", language: "node", session_id };
  expect((await call(client, "code_run", large)).structuredContent).toMatchObject({ status: "ok", value: "700" });
});
