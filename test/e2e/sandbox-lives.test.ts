import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Client } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { mintToken } from "../../src/auth/mint-token.ts";
import {
  BIN,
  call,
  type Called,
  connectHttp,
  connectStdio,
  makePlace,
  type Place,
  readText,
  Server,
} from "./sandbox-client.ts";

const SECRET = "a secret that is long enough for tests";
const AUTH = { enabled: true, jwt: { secret: SECRET } };

async function connectAs(url: string, subject: string): Promise<Client> {
  const token = await mintToken({ secret: SECRET, subject, scopes: [], expiresInSeconds: 600 });
  return connectHttp(url, { authorization: `Bearer ${token}` });
}

interface Listed {
  readonly session_id: string;
  readonly state: string;
}

async function sandboxesOf(client: Client): Promise<Listed[]> {
  return (await call(client, "sandbox_list")).structuredContent?.["sandboxes"] as Listed[];
}

function idOf({ structuredContent }: Called): string {
  return String(structuredContent?.["session_id"]);
}

async function create(client: Client, args: Record<string, unknown> = {}): Promise<string> {
  return idOf(await call(client, "sandbox_create", args));
}

async function until<T>(ask: () => T | Promise<T>, isGood: (value: T) => boolean): Promise<T> {
  for (;;) {
    const value = await ask();
    if (isGood(value)) return value;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Folders of sandboxes on disk: each is there as long as its sandbox. */
function foldersOf({ dataFolder }: Place): string[] {
  const folder = join(dataFolder, "sandboxes");
  return existsSync(folder) ? readdirSync(folder) : [];
}

function processesOf({ dataFolder }: Place): string[] {
  return execFileSync("ps", ["-eo", "args"], { encoding: "utf8" })
    .split("\n")
    .filter((line) => line.includes(dataFolder) && line.includes("bwrap"));
}

describe("a server with room", () => {
  const place = makePlace();
  const shared = join(place.folder, "shared");
  let server: Server;
  let url: string;
  beforeAll(async () => {
    mkdirSync(shared);
    const sandbox = { maxPerPrincipal: 50, codeTimeoutSeconds: 5, volumes: [`${shared}:/data`] };
    server = new Server(place, { tools: { timeoutSeconds: 40 }, sandbox });
    url = await server.url();
  });
  afterAll(() => server.stop());

  test("a call without session_id uses the default sandbox of its MCP session, and another session has its own", async () => {
    const [one, two] = [await connectHttp(url), await connectHttp(url)];
    const first = await call(one, "code_run", { code: "x = 1" });
    const second = await call(one, "code_run", { code: "x" });
    expect(first.structuredContent).toMatchObject({ session_created: true });
    expect(second.structuredContent).toMatchObject({ session_created: false, value: "1", session_id: idOf(first) });
    const other = await call(two, "shell_exec", { command: "true" });
    expect(other.structuredContent).toMatchObject({ session_created: true });
    expect(idOf(other)).not.toBe(idOf(first));
    // Anonymous callers: the id is the key, and the list shows what the same MCP session made.
    expect((await call(two, "code_run", { code: "x", session_id: idOf(first) })).structuredContent).toMatchObject({
      value: "1",
    });
    const listed = (await call(two, "sandbox_list")).structuredContent as { sandboxes: { session_id: string }[] };
    expect(listed.sandboxes.map(({ session_id }) => session_id)).toEqual([idOf(other)]);
  });

  test("[001-stateless] a plain call without a session gets a sandbox of its own, and goes on in it by its id", async () => {
    const post = async (args: Record<string, unknown>): Promise<Record<string, unknown>> => {
      const body = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "code_run", arguments: args } };
      const response = await fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      return ((await response.json()) as { result: { structuredContent: Record<string, unknown> } }).result
        .structuredContent;
    };
    const first = await post({ code: "x = 3" });
    const second = await post({ code: "1" });
    expect([first["session_created"], second["session_created"]]).toEqual([true, true]);
    expect(second["session_id"]).not.toBe(first["session_id"]);
    expect(await post({ code: "x", session_id: first["session_id"] })).toMatchObject({
      value: "3",
      session_created: false,
    });
  });

  test("a sandbox that was destroyed never comes back", async () => {
    const client = await connectHttp(url);
    const session_id = await create(client);
    await call(client, "sandbox_destroy", { session_id });
    for (const name of ["file_list", "sandbox_destroy"])
      expect(await call(client, name, { session_id })).toMatchObject({ isError: true });
  });

  test("calls at the same time in one sandbox do not disturb each other; code of one language waits for its turn", async () => {
    const client = await connectHttp(url);
    const session_id = await create(client);
    await call(client, "code_run", { code: "log = []", session_id });
    const codes = Array.from({ length: 5 }, (_, index) =>
      call(client, "code_run", {
        code: `log.append(${index})\nimport time; time.sleep(0.05)\nlog.append(${index})\n${index}`,
        session_id,
      }),
    );
    const shells = Array.from({ length: 5 }, (_, index) =>
      call(client, "shell_exec", { command: `echo ${index}`, session_id }),
    );
    expect((await Promise.all(codes)).map((each) => each.structuredContent?.["value"])).toEqual([
      "0",
      "1",
      "2",
      "3",
      "4",
    ]);
    expect((await Promise.all(shells)).map((each) => each.structuredContent?.["stdout"])).toEqual([
      "0\n",
      "1\n",
      "2\n",
      "3\n",
      "4\n",
    ]);
    const log = await call(client, "code_run", { code: "log", session_id });
    expect(log.structuredContent).toMatchObject({ value: "[0, 0, 1, 1, 2, 2, 3, 3, 4, 4]" });
  });

  test("a cancelled call stops its processes and keeps the sandbox", async () => {
    const client = await connectHttp(url);
    const session_id = await create(client);
    const abort = new AbortController();
    const running = client.callTool(
      { name: "shell_exec", arguments: { command: "touch started; setsid sleep 4321 & sleep 4321", session_id } },
      { signal: abort.signal },
    );
    await until(
      async () =>
        Object.keys((await call(client, "file_list", { session_id })).structuredContent?.["entries"] ?? []).length,
      (count) => count === 1,
    );
    abort.abort();
    await expect(running).rejects.toThrow(/abort/i);
    await until(
      async () =>
        (await call(client, "shell_exec", { command: "pgrep -c sleep; true", session_id })).structuredContent?.[
          "stdout"
        ],
      (count) => count === "0\n",
    );
  });

  test("[002-logs] the log has the tool, its time and its parameters without their contents, and the name of each sandbox", async () => {
    const client = await connectHttp(url);
    const before = server.log.length;
    const session_id = await create(client);
    await call(client, "file_write", { path: "a.txt", content: "very private", session_id });
    await call(client, "sandbox_destroy", { session_id });
    const own = (): Record<string, unknown>[] => server.log.slice(before);
    const created = own().find(({ message }) => message === "sandbox created");
    expect(created).toMatchObject({ sandbox: expect.stringMatching(/^owl-/), template: "python" });
    const isEnd = ({ message, sandbox }: Record<string, unknown>): boolean =>
      message === "sandbox ended" && sandbox === created?.["sandbox"];
    await expect.poll(() => own().some(isEnd)).toBe(true);
    const write = own().find(({ tool }) => tool === "file_write");
    expect(write).toMatchObject({
      outcome: "ok",
      duration_ms: expect.any(Number),
      parameters: { path: "a.txt", content: "[12 characters]" },
      sandbox: created?.["sandbox"],
      session: created?.["session"],
    });
    expect(JSON.stringify(server.log)).not.toContain("very private");
    expect(JSON.stringify(server.log)).not.toContain(session_id);
  });

  test("[002-timeouts] [002-coderun] the inner time-out ends first and keeps the state of the other language", async () => {
    const client = await connectHttp(url);
    await call(client, "code_run", { code: "var kept = 1", language: "node" });
    const cut = await call(client, "code_run", { code: "while True: pass" });
    expect(cut.content[0]?.text).toContain("code_run failed: the code ran for 5 s and was stopped");
    expect((await call(client, "code_run", { code: "kept", language: "node" })).structuredContent).toMatchObject({
      value: "1",
    });
    const { tools } = await client.listTools();
    const timeout = tools.find(({ name }) => name === "code_run")?.inputSchema.properties?.["timeout_seconds"];
    expect(timeout).toMatchObject({ default: 5, maximum: 30 });
  });

  test("[002-validate] arguments out of range are refused with their names", async () => {
    const client = await connectHttp(url);
    const result = await call(client, "code_run", { code: "1", timeout_seconds: -1, colour: "red" }).catch(
      (error: unknown) => String(error),
    );
    expect(JSON.stringify(result)).toMatch(/timeout_seconds/);
    expect(JSON.stringify(result)).toMatch(/colour/);
  });

  test("a volume is shared, and what is written there belongs to its owner's folder", async () => {
    const client = await connectHttp(url);
    await call(client, "shell_exec", { command: "echo from inside > /data/a.txt" });
    expect(readFileSync(join(shared, "a.txt"), "utf8")).toBe("from inside\n");
  });

  test("mcp.capabilities gives the scope of each tool", async () => {
    const body = { jsonrpc: "2.0", id: 1, method: "mcp.capabilities" };
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    const { result } = (await response.json()) as { result: { tools: { name: string; permissions: unknown }[] } };
    const scopes = Object.fromEntries(result.tools.map(({ name, permissions }) => [name, permissions]));
    expect(scopes).toMatchObject({
      code_run: { allow: true, scope: "exec" },
      shell_exec: { allow: true, scope: "exec" },
      file_read: { allow: true, scope: "workspace" },
      file_write: { allow: true, scope: "workspace" },
    });
  });

  test("[002-ensure] every tool but sandbox_create makes sure that there is a sandbox", async () => {
    const calls: [string, Record<string, unknown>][] = [
      ["code_run", { code: "1" }],
      ["shell_exec", { command: "true" }],
      ["shell_output", { process_id: "none" }],
      ["shell_kill", { process_id: "none" }],
      ["file_read", { path: "none" }],
      ["file_write", { path: "a", content: "" }],
      ["file_list", {}],
      ["file_search", { pattern: "a" }],
      ["file_replace", { path: "none", old_text: "a", new_text: "b" }],
    ];
    for (const [name, args] of calls) {
      const client = await connectHttp(url);
      expect(readText(await call(client, name, args)).json).toMatchObject({ session_created: true });
      expect(await sandboxesOf(client)).toHaveLength(1);
      await client.close();
    }
  });
});

test("another principal's session_id is not found, in the same words as one that never was", async () => {
  const url = await new Server(makePlace(), { auth: AUTH }).url();
  const [ada, eve] = [await connectAs(url, "ada"), await connectAs(url, "eve")];
  const session_id = await create(ada);
  await call(ada, "file_write", { path: "secret.txt", content: "ada's", session_id });
  const unknown = await call(eve, "file_read", { path: "secret.txt", session_id: "x".repeat(32) });
  const foreign = await call(eve, "file_read", { path: "secret.txt", session_id });
  expect(foreign.isError).toBe(true);
  expect(foreign.content).toEqual(unknown.content);
  expect((await call(eve, "sandbox_destroy", { session_id })).isError).toBe(true);
  await expect(eve.readResource({ uri: `sandbox://${session_id}/secret.txt` })).rejects.toThrow("there is no sandbox");
  expect((await call(eve, "sandbox_list")).structuredContent).toEqual({ sandboxes: [] });
  expect((await call(ada, "file_read", { path: "secret.txt", session_id })).structuredContent).toMatchObject({
    content: "ada's",
  });
});

describe("a server that makes and ends no sandbox by itself, and has room for one", () => {
  const place = makePlace();
  let server: Server;
  let url: string;
  beforeAll(async () => {
    server = new Server(place, { sandbox: { autoCreate: false, maxPerPrincipal: 1, evictIdle: false } });
    url = await server.url();
  });
  afterAll(() => server.stop());

  test("with autoCreate off a call without session_id fails with the way on, and works after sandbox_create", async () => {
    const client = await connectHttp(url);
    const refused = await call(client, "code_run", { code: "1" });
    expect(refused.isError).toBe(true);
    expect(refused.content[0]?.text).toContain("hint: call sandbox_create first");
    const made = await create(client);
    expect((await call(client, "code_run", { code: "1 + 1" })).structuredContent).toMatchObject({
      value: "2",
      session_id: made,
    });
    await call(client, "sandbox_destroy", { session_id: made });
  });

  test("where idle sandboxes may stay, the limit refuses the next one", async () => {
    const client = await connectHttp(url);
    const first = await create(client);
    await expect(call(client, "sandbox_create")).rejects.toThrow(
      "there is no room for another sandbox: 1 you have (sandbox.maxPerPrincipal)",
    );
    expect((await sandboxesOf(client)).map(({ session_id }) => session_id)).toEqual([first]);
    await call(client, "sandbox_destroy", { session_id: first });
    await call(client, "sandbox_destroy", { session_id: await create(client) });
  });

  test("the operator lists sandboxes without their ids, and destroys one", async () => {
    const client = await connectHttp(url);
    const session_id = await create(client);
    const cli = (...args: string[]): string =>
      execFileSync(process.execPath, [BIN, "mcp-server", "sandboxes", ...args], {
        encoding: "utf8",
        env: { PATH: process.env["PATH"], SANDBOX_ROOT: place.dataFolder },
        stdio: ["ignore", "pipe", "ignore"],
      });
    const listed = cli("list", "--json");
    expect(listed).not.toContain(session_id);
    const { sandboxes } = JSON.parse(listed) as { sandboxes: { name: string }[] };
    expect(sandboxes).toMatchObject([{ owner: "anonymous", state: "ready", template: "python", flavor: "small" }]);
    cli("destroy", sandboxes[0]?.name ?? "");
    expect(await call(client, "file_list", { session_id })).toMatchObject({ isError: true });
    expect(() => cli("destroy", "owl-none")).toThrow(/status 2|Command failed/);
  });
});

describe("a server whose sandboxes end soon", () => {
  const place = makePlace();
  let client: Client;
  beforeAll(async () => {
    client = await connectStdio(place, { sandbox: { idleTimeoutSeconds: 1, maxAgeSeconds: 5 } });
  });
  afterAll(() => client.close());

  test("an idle sandbox ends, and its id brings back an empty one that says so", async () => {
    const session_id = await create(client);
    await call(client, "file_write", { path: "a.txt", content: "a", session_id });
    await until(
      () => foldersOf(place),
      (folders) => folders.length === 0,
    );
    const back = await call(client, "file_list", { session_id });
    expect(back.structuredContent).toMatchObject({ session_id, session_created: true, entries: [] });
    expect(back.structuredContent?.["note"]).toContain("files, variables and processes are gone");
  });

  test("a sandbox ends at its maximum age even while it is busy", async () => {
    const session_id = await create(client);
    const cut = await call(client, "shell_exec", { command: "sleep 60", session_id });
    expect(cut.isError).toBe(true);
    expect(cut.content[0]?.text).toContain("the sandbox was stopped");
  });
});

test("at the limit the least recently used idle sandbox makes room, never a busy one", async () => {
  const client = await connectStdio(makePlace(), { sandbox: { maxPerPrincipal: 2 } });
  const [old, young] = [await create(client), await create(client)];
  const busy = call(client, "shell_exec", {
    command: "echo start; while [ ! -e done ]; do sleep 0.05; done",
    session_id: old,
  });
  await until(
    async () => (await sandboxesOf(client))[0]?.state,
    (state) => state === "busy",
  );
  // Now the busy one is the least recently used.
  await call(client, "file_list", { session_id: young });
  const third = await create(client);
  const ids = (
    (await call(client, "sandbox_list")).structuredContent as { sandboxes: { session_id: string }[] }
  ).sandboxes.map((each) => each.session_id);
  expect(ids.toSorted()).toEqual([old, third].toSorted());
  await call(client, "file_write", { path: "done", content: "", session_id: old });
  expect((await busy).structuredContent).toMatchObject({ exit_code: 0 });
  expect((await call(client, "file_list", { session_id: young })).structuredContent).toMatchObject({
    session_created: true,
  });
});

test("[000-R4.2] [000-R2.4] when all are busy the answer is a resource limit", async () => {
  const server = new Server(makePlace(), { sandbox: { maxTotal: 1 } });
  const url = await server.url();
  const client = await connectHttp(url);
  const session_id = await create(client);
  const busy = call(client, "shell_exec", { command: "while [ ! -e done ]; do sleep 0.05; done", session_id });
  await until(
    async () => (await sandboxesOf(client))[0]?.state,
    (state) => state === "busy",
  );
  const body = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "sandbox_create", arguments: {} } };
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  expect(await response.json()).toMatchObject({
    error: { code: -32600, data: { kind: "resource_limit", limit: "sandbox.maxTotal", maximum: 1, retryable: true } },
  });
  await call(client, "file_write", { path: "done", content: "", session_id });
  expect((await busy).isError).toBeUndefined();
});

describe("a server with a warm sandbox", () => {
  const place = makePlace();
  let server: Server;
  let client: Client;
  beforeAll(async () => {
    server = new Server(place, { logging: { level: "debug" }, sandbox: { pool: { size: 1 } } });
    client = await connectHttp(await server.url());
  });

  test("a warm sandbox is there at once and is replaced in the background", async () => {
    const isWarm = async (): Promise<unknown> => {
      await call(client, "sandbox_destroy", { session_id: await create(client) });
      return server.log.findLast(({ message }) => message === "sandbox created")?.["warm"];
    };
    for (const _round of [1, 2]) expect(await until(isWarm, (warm) => warm === true)).toBe(true);
  });

  test("[002-logs] what a guest refuses is logged with the method and the code of the error", async () => {
    await call(client, "file_read", { path: "nowhere.txt" });
    const isOfRead = ({ message, method }: Record<string, unknown>): boolean =>
      message === "guest refused a request" && method === "file.read";
    await expect.poll(() => server.log.some(isOfRead)).toBe(true);
    expect(server.log.findLast(isOfRead)).toMatchObject({
      sandbox: expect.stringMatching(/^owl-/),
      method: "file.read",
      code: -32050,
      reason: "not_found",
    });
  });

  test("[003-NFR-005] a server with sandboxes writes nothing outside its data folder", async () => {
    await call(client, "code_run", { code: "open('/tmp/x', 'w').write('a'); open('y', 'w').write('b')" });
    await call(client, "code_run", { code: "console.log(1)", language: "node" });
    const made = readdirSync(place.folder).filter((name) => !name.startsWith("config-"));
    expect(made).toEqual(["data"]);
  });

  test("[000-R2.1] [000-R7.1] [000-R2.2] [000-R7.4] the sandbox layer is up before the port and gone after the stop", async () => {
    const messages = server.log.map(({ message }) => message);
    expect(messages.indexOf("sandboxes are ready")).toBeGreaterThan(-1);
    expect(messages.indexOf("sandboxes are ready")).toBeLessThan(messages.indexOf("listening"));
    await create(client);
    await call(client, "shell_exec", { command: "setsid nohup sleep 4242 > /dev/null 2>&1 & true" });
    expect(await server.stop()).toBe(0);
    expect(foldersOf(place)).toEqual([]);
    expect(processesOf(place)).toEqual([]);
    expect(readdirSync(join(place.dataFolder, "bubblewrap", "cells"))).toEqual([]);
  });
});

test("what a killed server left is removed by the next one", async () => {
  const place = makePlace();
  const server = new Server(place, {});
  await create(await connectHttp(await server.url()));
  expect(foldersOf(place)).toHaveLength(1);
  await server.stop("SIGKILL");
  await until(
    () => processesOf(place),
    (processes) => processes.length === 0,
  );
  const next = new Server(place, {});
  await next.url();
  expect(foldersOf(place)).toEqual([]);
});

test("[000-R4.1] [000-R4.3] where sandboxes cannot run the server starts, and calls say why", async () => {
  // The network of its sandboxes is not known, on no machine.
  const env = { PATH: "/nowhere", PIP_CONFIG_FILE: "/dev/null" };
  const server = new Server(makePlace(), { sandbox: { network: { allow: ["pip"] } } }, env);
  const url = await server.url();
  const body = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "code_run", arguments: { code: "1" } } };
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  expect(await response.json()).toMatchObject({
    error: {
      code: -32603,
      message: "network.allow: the preset pip finds no index in pip's configuration",
      data: { kind: "sandbox_unavailable", hint: expect.stringContaining("set index-url in pip.conf") },
    },
  });
});

test("start --mount makes a folder of the machine the workspace, and its files stay", async () => {
  const place = makePlace();
  const project = join(place.folder, "project");
  mkdirSync(project);
  writeFileSync(join(project, "in.txt"), "from outside");
  const client = await connectStdio(place, {}, ["--mount", project]);
  expect((await call(client, "file_read", { path: "in.txt" })).structuredContent).toMatchObject({
    content: "from outside",
  });
  await call(client, "file_write", { path: "out.txt", content: "from inside" });
  await call(client, "sandbox_destroy");
  expect(readFileSync(join(project, "out.txt"), "utf8")).toBe("from inside");
  await client.close();
});

test("a host of network.allow is reached through the proxy, and no other; what was moved is counted", async () => {
  const upstream = createServer((_request, response) => response.end("hello from outside")).listen(0, "127.0.0.1");
  onTestFinished(() => void upstream.close());
  await once(upstream, "listening");
  const { port } = upstream.address() as AddressInfo;
  const server = new Server(makePlace(), { sandbox: { network: { allow: [`127.0.0.1:${port}`] } } });
  const url = await server.url();
  const client = await connectHttp(url);
  const countedBytes = async (): Promise<number> => {
    const metrics = await (await fetch(new URL("/metrics", url))).text();
    return Number(/^owlclaw_egress_bytes_total (\d+)$/m.exec(metrics)?.[1]);
  };
  // By hand: programs go round the proxy for 127.0.0.1, where servers inside the sandbox are.
  const fetched = `import http.client
try:
    connection = http.client.HTTPConnection("127.0.0.1", 3128, timeout=20)
    connection.request("GET", "http://127.0.0.1:%d/")
    response = connection.getresponse()
    print(response.status, response.read().decode()[:18])
except OSError as error:
    print(error)`;
  const get = async (to: number, args: Record<string, unknown> = {}): Promise<unknown> =>
    (await call(client, "code_run", { code: fetched.replace("%d", String(to)), ...args })).structuredContent?.[
      "stdout"
    ];
  expect(await countedBytes()).toBe(0);
  expect(await get(port)).toBe("200 hello from outside\n");
  // What was asked and what was answered, with their headers.
  expect(await countedBytes()).toBeGreaterThan("hello from outside".length);
  expect(await get(port === 1 ? 2 : 1)).toBe("403 egress refused: 12\n");
  expect(await get(port, { session_id: await create(client, { offline: true }) })).toContain("refused");
});

test("hosts differ by template, and a caller can have fewer of them but no others", async () => {
  const allow = ["api.example.com", "*.example.org"];
  const network = { allow, templates: { node: ["git.example.net"] } };
  const client = await connectStdio(makePlace(), { sandbox: { network } });
  const made = async (args: Record<string, unknown>): Promise<Called> => call(client, "sandbox_create", args);

  expect((await made({})).structuredContent).toMatchObject({ network: allow });
  expect((await made({ template: "node" })).structuredContent).toMatchObject({ network: ["git.example.net"] });
  expect((await made({ network: ["*.example.org"] })).structuredContent).toMatchObject({ network: ["*.example.org"] });
  expect((await made({ network: [] })).structuredContent).toMatchObject({ network: [] });
  const beyond = await made({ network: ["evil.example"] });
  expect(beyond).toMatchObject({ isError: true });
  expect(beyond.content[0]?.text).toMatch(/may not reach "evil.example"[^]*hint: .*api\.example\.com/);
});
