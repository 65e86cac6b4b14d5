import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { connect, createServer, type Server } from "node:net";
import { join } from "node:path";
import { constants, networkInterfaces } from "node:os";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import { callTool, eventually, modernRequest, openResponse, openSession, send } from "../escape/http-client.ts";
import { type HttpServerProcess, type ServerOptions, spawnServer, startHttp } from "../escape/server.ts";
import { freePort } from "../services/free-port.ts";

const opened: { stop(): Promise<void> }[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((server) => server.stop()));
});

async function start(options: ServerOptions = {}): Promise<HttpServerProcess> {
  const server = await startHttp(options);
  opened.push(server);
  return server;
}

/** A call that runs until the test makes its file. */
async function holdCall(server: HttpServerProcess, key: string, id: string | number = key) {
  const file = join(server.folder, `${key}.release`);
  const journal = join(server.folder, `${key}.journal`);
  const answer = callTool(server.origin, "hold", { key, file, journal }, { id });
  const settled = answer.then(
    (value) => value,
    (error: unknown) => error,
  );
  await eventually(
    () => existsSync(journal),
    (exists) => exists,
  );
  return {
    answer: settled,
    release: () => writeFile(file, ""),
    journal: async () =>
      (await readFile(journal, "utf8"))
        .trim()
        .split("\n")
        .map((line) => line.replace(`${key} `, "")),
  };
}

async function isRefused(port: number, host = "127.0.0.1"): Promise<boolean> {
  const socket = connect(port, host);
  const refused = await Promise.race([
    once(socket, "connect").then(() => false),
    new Promise<boolean>((resolve) => socket.once("error", () => resolve(true))),
  ]);
  socket.destroy();
  return refused;
}

describe.each(["SIGTERM", "SIGINT"] as const)("%s", (signal) => {
  test("[000-R7.2] [000-R7.3] accepts no more calls and tells probes so, lets running calls finish, answers them, and exits with 0", async () => {
    const server = await start();
    const running = await holdCall(server, "slow");
    server.kill(signal);
    await server.logged('"message":"stopping"');
    const probe = (path: string) => send(`${server.origin}/health${path}`);
    expect(
      await eventually(
        () => probe("/ready"),
        ({ status }) => status === 503,
      ),
    ).toMatchObject({ json: { status: "draining" } });
    expect(await probe("")).toMatchObject({ status: 503, json: { status: "draining" } });
    expect(await probe("/live")).toMatchObject({ status: 200, json: { status: "ok" } });
    const late = await callTool(server.origin, "held");
    expect(late).toMatchObject({ status: 503, json: { error: { data: { kind: "shutting_down", retryable: true } } } });
    expect(late.headers).toMatchObject({ "retry-after": "1", connection: "close" });
    expect(server.child.exitCode).toBeNull();
    await running.release();
    expect(await running.answer).toMatchObject({
      status: 200,
      json: { id: "slow", result: { content: [{ text: "slow done" }] } },
    });
    expect(await server.exited).toBe(0);
    expect(await running.journal()).toEqual(["waiting", "released"]);
  });

  test("[000-R7.2] a request on a connection that was open before is told that the server stops", async () => {
    const { Agent, request } = await import("node:http");
    const server = await start();
    const running = await holdCall(server, "slow");
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    onTestFinished(() => agent.destroy());
    const health = async (): Promise<number> => {
      const sent = request(`${server.origin}/health`, { agent });
      sent.end();
      const [response] = await once(sent, "response");
      response.resume();
      await once(response, "end");
      return response.statusCode;
    };
    // A second request waits behind the first on the same connection, which is busy when the signal comes.
    const held = request(`${server.origin}/mcp`, {
      agent,
      method: "POST",
      headers: { "content-type": "application/json" },
    });
    const file = join(server.folder, "agent.release");
    held.end(
      JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "tools/call",
        params: { name: "hold", arguments: { key: "agent", file } },
      }),
    );
    await eventually(
      async () => (await callTool(server.origin, "held")).json.result.structuredContent.holds["agent"],
      (state) => state === "waiting",
    );
    const later = health().catch(() => "refused");
    server.kill(signal);
    await server.logged('"message":"stopping"');
    const answered = once(held, "response");
    await writeFile(file, "");
    const [response] = await answered;
    response.resume();
    expect(response.statusCode).toBe(200);
    expect([503, "refused"]).toContain(await later);
    await running.release();
    expect(await server.exited).toBe(0);
  });

  test("[000-R7.3] calls that do not finish are cancelled at the deadline, each of them, and the exit code is 0", async () => {
    const server = await start({ config: { shutdown: { deadlineSeconds: 0.3 } } });
    // Clients without a handshake all count from 1.
    const running = [
      await holdCall(server, "first", 1),
      await holdCall(server, "second", 1),
      await holdCall(server, "third", 1),
    ];
    server.kill(signal);
    expect(await server.exited).toBe(0);
    for (const { journal } of running) expect(await journal()).toEqual(["waiting", "cancelled"]);
    await Promise.all(running.map(({ answer }) => answer));
    expect(server.log()).toContain("shutdown deadline passed");
  });

  test("a second signal exits at once", async () => {
    const server = await start();
    const running = await holdCall(server, "slow");
    server.kill(signal);
    await server.logged('"message":"stopping"');
    server.kill(signal);
    expect(await server.exited).toBeNull();
    expect(server.child.signalCode).toBe(signal);
    await running.answer;
  });

  test("a second signal exits at once where signals do not end the process, as in a container", async () => {
    const server = await start({ within: ["unshare", "--pid", "--fork", "--kill-child", "--"] });
    const running = await holdCall(server, "slow");
    // The child here is unshare, which passes on how its own child ended, and no signals.
    const first = (await readFile(`/proc/${server.child.pid}/task/${server.child.pid}/children`, "utf8")).trim();
    process.kill(Number(first), signal);
    await server.logged('"message":"stopping"');
    process.kill(Number(first), signal);
    expect(await server.exited).toBe(128 + constants.signals[signal]);
    await running.answer;
  });

  test("idle sessions, streams and subscriptions do not hold the exit up", async () => {
    const server = await start({ config: { shutdown: { deadlineSeconds: 600 } } });
    const headers = await openSession(server.origin);
    const streams = [
      await openResponse(`${server.origin}/mcp`, { headers: { ...headers, accept: "text/event-stream" } }),
      await openResponse(`${server.origin}/mcp/sse`),
      await openListening(server.origin),
    ];
    for (const stream of streams) stream.on("error", () => undefined).resume();
    server.kill(signal);
    expect(await server.exited).toBe(0);
  });
});

describe("[000-R7.5] a failed start", () => {
  async function fail(options: ServerOptions): Promise<{ code: number | null; log: string }> {
    const server = await spawnServer(options);
    opened.push(server);
    return { code: await server.exited, log: server.log() };
  }

  test("because the port is in use says so, exits non-zero and leaves nothing behind", async () => {
    const blocker = await listen();
    const { port } = blocker.address() as { port: number };
    const { code, log } = await fail({ args: ["--host", "127.0.0.1", "--port", String(port)] });
    expect(code).toBe(2);
    expect(log).toContain(`http.port = ${port}`);
    expect(log).toContain("the port is in use by another process");
    expect(log).toMatch(/fix: .*--port/);
    blocker.close();
    await once(blocker, "close");
    expect(await isRefused(port)).toBe(true);
  });

  test.each([
    ["an unknown key", { http: { prot: 1 } }, "http.prot"],
    ["a value of the wrong type", { http: { port: "many" } }, "http.port"],
    ["a value out of range", { http: { port: 70_000 } }, "http.port"],
    ["an unknown transport", { transport: "carrier-pigeon" }, "transport"],
    ["a non-loopback host without auth", { http: { host: "0.0.0.0", port: 0 } }, "http.host"],
    ["another non-loopback host without auth", { http: { host: "::", port: 0 } }, "http.host"],
    [
      "a host that this machine does not have",
      { http: { host: "127.0.0.1.invalid", port: 0, allowUnauthenticated: true } },
      "http.host",
    ],
  ])("because of %s names path, value, reason and fix", async (_name, config, path) => {
    const { code, log } = await fail({ config });
    expect(code).toBe(2);
    expect(log).toMatch(new RegExp(`${path.replaceAll(".", "\\.")} = .+`));
    expect(log).toMatch(/reason: .+/);
    expect(log).toMatch(/fix: .+/);
    expect(log).not.toContain('"listening"');
    expect(log).not.toMatch(/\n\s+at /);
  });

  test("--allow-unauthenticated opens another address by name", async () => {
    const server = await start({ args: ["--host", "0.0.0.0", "--port", "0", "--allow-unauthenticated"] });
    expect((await send(`http://127.0.0.1:${server.port}/health`)).status).toBe(200);
    const refused = await Promise.all(outerAddresses().map((address) => isRefused(server.port, address)));
    expect(refused.filter(Boolean)).toEqual([]);
  });
});

describe("start order", () => {
  test("while a handler file is still loading probes hear so and no call is taken; the first answer has its tool", async () => {
    const port = await freePort();
    const folder = join(await temporaryFolder(), "handlers");
    await mkdir(folder);
    const release = join(folder, "release");
    const reached = join(folder, "reached");
    await writeFile(
      join(folder, "late.mjs"),
      `import { existsSync, writeFileSync } from "node:fs";
import { defineHandler } from "owlclaw";
writeFileSync(${JSON.stringify(reached)}, "");
while (!existsSync(${JSON.stringify(release)})) await new Promise((resolve) => setTimeout(resolve, 10));
export const late = defineHandler({ name: "late", description: "Loads late", run: () => "here" });
`,
    );
    const server = await spawnServer({
      config: { handlers: { paths: [folder] } },
      args: ["--host", "127.0.0.1", "--port", String(port)],
    });
    opened.push(server);
    await eventually(
      () => existsSync(reached),
      (exists) => exists,
    );
    const origin = `http://127.0.0.1:${port}`;
    expect(await send(`${origin}/health/live`)).toMatchObject({ status: 200, json: { status: "ok" } });
    for (const path of ["/health", "/health/ready"])
      expect(await send(`${origin}${path}`)).toMatchObject({ status: 503, json: { status: "starting" } });
    const early = await callTool(origin, "late");
    expect(early).toMatchObject({ status: 503, json: { error: { data: { kind: "starting", retryable: true } } } });
    expect(early.headers).toMatchObject({ "retry-after": "1", connection: "close" });
    const fromAfar = await send(`${origin}/health`, { headers: { host: "evil.example" } });
    expect(fromAfar).toMatchObject({ status: 403, json: { error: { data: { kind: "forbidden" } } } });
    expect(server.log()).not.toContain('"message":"listening"');
    await writeFile(release, "");
    await server.logged('"message":"listening"');
    expect(await send(`${origin}/health/ready`)).toMatchObject({ status: 200, json: { status: "ok" } });
    const answer = await callTool(origin, "late");
    expect(answer.json.result.content[0].text).toBe("here");
  });
});

describe("the address", () => {
  test("[000-R6.1] MCP_SERVER_HOST binds it, and no other", async () => {
    // One that nobody else has at 127.0.0.1, where it is looked for.
    const env = { MCP_SERVER_HOST: "127.0.0.2", MCP_SERVER_PORT: String(await freePort()) };
    const server = await start({ env });
    expect(server.origin).toBe(`http://127.0.0.2:${server.port}`);
    expect((await send(`${server.origin}/health`)).status).toBe(200);
    expect(await isRefused(server.port)).toBe(true);
  });

  test("[000-R6.2] MCP_SERVER_PORT sets the port, and a flag beats it", async () => {
    const port = await freePort();
    const server = await start({ env: { MCP_SERVER_PORT: String(port) } });
    expect(server.port).toBe(port);
    expect((await send(`http://127.0.0.1:${port}/health`)).status).toBe(200);
    const other = await start({ env: { MCP_SERVER_PORT: String(port) }, args: ["--port", "0"] });
    expect(other.port).not.toBe(port);
  });

  test("[000-R6.4] [004-R3.2] without any setting it is localhost, port 8080", async () => {
    // Something else may have the port: then the server must say that it wanted exactly this one.
    const isTaken = !(await isRefused(8080));
    const server = await spawnServer();
    opened.push(server);
    const wanted = isTaken ? "http.port = 8080" : '"url":"http://localhost:8080/mcp"';
    expect(await server.logged(wanted)).toContain(wanted);
    const reached = await send("http://localhost:8080/health").then(({ status }) => status, String);
    expect(isTaken || reached === 200).toBe(true);
    const beyond = await Promise.all(outerAddresses().map((address) => isRefused(8080, address)));
    expect(isTaken || beyond.every(Boolean), "no other address is open").toBe(true);
  });
});

async function openListening(origin: string) {
  const { params, headers } = modernRequest("subscriptions/listen", { notifications: { toolsListChanged: true } });
  return openResponse(`${origin}/mcp`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "subscriptions/listen", params }),
  });
}

/** The addresses under which other machines see this one; there may be none. */
function outerAddresses(): string[] {
  const entries = Object.values(networkInterfaces()).flatMap((found) => found ?? []);
  return entries.filter(({ family, internal }) => family === "IPv4" && !internal).map(({ address }) => address);
}

async function listen(): Promise<Server> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

async function temporaryFolder(): Promise<string> {
  const { mkdtemp, rm } = await import("node:fs/promises");
  const { tmpdir } = await import("node:os");
  const folder = await mkdtemp(join(tmpdir(), "owlclaw-test-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}
