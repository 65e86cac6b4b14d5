import { chownSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import type { Client } from "@modelcontextprotocol/client";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { mintToken } from "../../src/auth/mint-token.ts";
import { call, connectHttp, makePlace, type Place, Server } from "../e2e/sandbox-client.ts";
import { ATTEMPT, groupFolders, openInside, textOf } from "./sandbox-lab.ts";
import { defineConfinementTests } from "./sandbox-confinement-suite.ts";
import { definePathSuite } from "./sandbox-path-suite.ts";
import type { TestRuntime } from "./test-runtime.ts";

const CANARY = `canary-${Math.random().toString(36).slice(2)}`;

/** Attacks through the tools of a real server. */
export function defineAttackSuite(runtime: TestRuntime): void {
  let place: Place;
  let server: Server;
  let url: string;
  let client: Client;

  beforeAll(async () => {
    place = makePlace(runtime.account());
    const beside = join(place.folder, "beside");
    mkdirSync(beside);
    writeFileSync(join(beside, "secret.txt"), CANARY);
    const sandbox = { maxPerPrincipal: 50, volumes: [`${beside}:/workspace2`], ...runtime.settings() };
    server = new Server(place, { sandbox }, { OWNER_SECRET: CANARY });
    url = await server.url();
    client = await connectHttp(url);
    const canary = join(place.dataFolder, "canary.txt");
    writeFileSync(canary, CANARY);
    if (place.account !== undefined) chownSync(canary, place.account.uid, place.account.uid);
  });

  definePathSuite(() => client, runtime.races);

  test("nothing inside holds the server's environment, files or configuration", async () => {
    const inside = await openInside(client);
    const seen = await inside.python(`
import glob, os
${ATTEMPT}
paths = [${JSON.stringify(join(place.dataFolder, "canary.txt"))}, ${JSON.stringify(place.folder)} + "/beside/secret.txt"]
for path in paths:
    attempt("direct", lambda: open(path).read())
    for pid in (1, 2, "self"):
        attempt("root", lambda: open(f"/proc/{pid}/root{path}").read())
        attempt("cwd", lambda: open(f"/proc/{pid}/cwd/../..{path}").read())
found = []
for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline") + glob.glob("/proc/[0-9]*/fd/*"):
    try:
        if os.path.isfile(path) and ${JSON.stringify(CANARY)}.encode() in open(path, "rb").read(1 << 20): found.append(path)
    except OSError: pass
print("found", found, ${JSON.stringify(CANARY)} in str(os.environ))
attempt("data folder", lambda: os.listdir(${JSON.stringify(place.dataFolder)}))
attempt("config", lambda: os.listdir(${JSON.stringify(place.folder)}))
`);
    expect(
      seen
        .trim()
        .split("\n")
        .filter((line) => !line.endsWith("refused")),
    ).toEqual(["found [] False"]);
  });

  test("processes of the host are neither seen nor signalled, and killing everything ends one's own sandbox alone", async () => {
    const [inside, other] = [await openInside(client), await openInside(client)];
    await other.python("kept = 41");
    const pids = [server.child.pid, process.pid, ...runtime.processes(server).map(({ pid }) => pid)];
    const seen = await inside.python(`
import os, signal
${ATTEMPT}
own = {int(p) for p in os.listdir("/proc") if p.isdigit()}
for pid in ${JSON.stringify(pids)}:
    if pid in own: continue
    for number in (0, signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP): attempt(pid, lambda: os.kill(pid, number))
    attempt(pid, lambda: os.listdir(f"/proc/{pid}/root"))
    attempt(pid, lambda: os.pidfd_open(pid))
print(max(own) < 1000)
`);
    expect(
      seen
        .trim()
        .split("\n")
        .filter((line) => !line.endsWith("refused")),
    ).toEqual(["True"]);
    expect(textOf(await inside.call("shell_exec", { command: "kill -9 -1; sleep 5" }))).toContain("sandbox_restarted");
    expect((await other.call("code_run", { code: "kept + 1" })).structuredContent).toMatchObject({ value: "42" });
    expect(await inside.sh("echo again")).toBe("again\n");
  });

  test("another sandbox is out of reach: its files, processes, ports and sockets", async () => {
    const [victim, attacker] = [await openInside(client), await openInside(client)];
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    await victim.python(`
import socket
open("secret.txt", "w").write(${JSON.stringify(CANARY)})
def listen(family, where):
    s = socket.socket(family); s.bind(where); s.listen(); return s
kept = [listen(socket.AF_INET, ("127.0.0.1", ${port})), listen(socket.AF_UNIX, "\\0${CANARY}"), listen(socket.AF_UNIX, "/tmp/s"), listen(socket.AF_UNIX, "/workspace/s"), listen(socket.AF_UNIX, "/dev/shm/s")]
`);
    const processes = runtime.processes(server);
    const pids = processes.map(({ pid }) => pid);
    const workspaces = (await runtime.workspaces(place)).filter((path) => existsSync(path));
    const holdsSecret = (path: string): boolean => path.endsWith(".img") || existsSync(join(path, "secret.txt"));
    expect(workspaces.filter(holdsSecret), "where the host sees the victim's files").not.toEqual([]);
    const groups = groupFolders(processes);
    expect(groups.length > 0 || runtime.limits.memory === "process", "groups that the host sees").toBe(true);
    const paths = [...workspaces, ...workspaces.map((path) => join(path, "secret.txt")), ...groups];
    const seen = await attacker.python(`
import os, socket
${ATTEMPT}
def reach(family, where):
    with socket.socket(family) as s: s.settimeout(1); s.connect(where)
attempt("port", lambda: reach(socket.AF_INET, ("127.0.0.1", ${port})))
for path in ("\\0${CANARY}", "/tmp/s", "/workspace/s", "/dev/shm/s"): attempt("socket", lambda: reach(socket.AF_UNIX, path))
attempt("file", lambda: open("/workspace/secret.txt").read())
shut = 0
for path in ${JSON.stringify(paths)}:
    for act in (os.listdir, lambda path: open(path, "rb").read(1)):
        try: print(path, "done", act(path))
        except OSError: shut += 1
print(shut, "of ${2 * paths.length} ways to paths of the host refused")
own = {int(p) for p in os.listdir("/proc") if p.isdigit()}
for pid in ${JSON.stringify(pids)}:
    if pid not in own: attempt("process", lambda: os.kill(pid, 0))
`);
    const answers = seen.trim().split("\n");
    expect(answers.length).toBeGreaterThan(10);
    expect(answers).toContain(`${2 * paths.length} of ${2 * paths.length} ways to paths of the host refused`);
    expect(answers.filter((line) => !line.endsWith("refused"))).toEqual([]);
  });

  test("another principal's session_id opens nothing, whichever tool or name is used", async () => {
    const secret = "a secret that is long enough for tests";
    const guarded = new Server(makePlace(place.account), {
      auth: { enabled: true, jwt: { secret } },
      sandbox: runtime.settings(),
    });
    const [ada, eve] = await Promise.all(
      ["ada", "eve"].map(async (subject) => {
        const token = await mintToken({ secret, subject, scopes: [], expiresInSeconds: 600 });
        return connectHttp(await guarded.url(), { authorization: `Bearer ${token}` });
      }),
    );
    const mine = await openInside(ada!);
    await mine.call("file_write", { path: "secret.txt", content: CANARY });
    const { structuredContent: started } = await mine.call("shell_exec", { command: "sleep 1000", background: true });
    const process_id = started?.["process_id"];
    const calls: Record<string, Record<string, unknown>> = {
      code_run: { code: "open('secret.txt').read()" },
      execute_code: { code: "open('secret.txt').read()" },
      "code.exec": { code: "open('secret.txt').read()" },
      shell_exec: { command: "cat secret.txt" },
      execute_command: { command: "cat", args: ["secret.txt"] },
      "shell.exec": { command: "cat secret.txt" },
      shell_output: { process_id },
      shell_kill: { process_id },
      file_read: { path: "secret.txt" },
      "file.read": { path: "secret.txt" },
      file_write: { path: "secret.txt", content: "x" },
      file_list: { path: "." },
      file_search: { pattern: "canary" },
      file_replace: { path: "secret.txt", old_text: "canary", new_text: "x" },
      sandbox_destroy: {},
      stop_session: {},
    };
    for (const [name, args] of Object.entries(calls)) {
      const answer = (session_id: string): Promise<string> =>
        call(eve!, name, { ...args, session_id }).then(
          (called) => `${called.isError} ${textOf(called)}`,
          (error: Error) => `thrown ${error.message}`,
        );
      const [foreign, unknown] = [await answer(mine.id), await answer("x".repeat(mine.id.length))];
      expect(foreign, `tool ${name}`).toMatch(/^(true|thrown) /);
      expect(foreign.replaceAll(mine.id, "ID"), `tool ${name}`).toBe(
        unknown.replaceAll("x".repeat(mine.id.length), "ID"),
      );
      expect(foreign).not.toContain(CANARY);
    }
    expect(textOf(await call(eve!, "sandbox_list", { session_id: mine.id }))).not.toContain("small");
    expect(await mine.sh("cat secret.txt; pgrep -c sleep")).toBe(`${CANARY}1\n`);
  });

  test.each([
    ["file_read", { path: "secret.txt" }, { content: CANARY }],
    ["code_run", { code: "open('secret.txt').read()" }, { value: `'${CANARY}'` }],
    ["shell_exec", { command: "cat secret.txt" }, { stdout: CANARY }],
    ["file_write", { path: "secret.txt", content: "x" }, { path: "secret.txt" }],
    ["sandbox_destroy", {}, { destroyed: true }],
  ])(
    "a session_id opens its sandbox for anybody's %s where nobody has a name, and so must stay secret",
    async (name, args, found) => {
      const mine = await openInside(client);
      await mine.call("file_write", { path: "secret.txt", content: CANARY });
      const stranger = await connectHttp(url);
      const answer = await call(stranger, name, { ...args, session_id: mine.id });
      expect(answer.structuredContent).toMatchObject(found);
    },
  );

  defineConfinementTests(
    () => client,
    async () => {
      const listener = createServer((socket) => socket.end("reached"));
      await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
      onTestFinished(() => void listener.close());
      const address = listener.address();
      return [Number(new URL(url).port), typeof address === "object" ? (address?.port ?? 0) : 0];
    },
  );
}
