import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type HttpServer, scratchFile, startHttp, until } from "../harness.ts";
import { closeStreams, HttpSession, plain, plainCall } from "../http-client.ts";
import { isAlive } from "../is-alive.ts";
import { expectedData, text } from "../wire-messages.ts";

let server: HttpServer;

beforeAll(async () => {
  server = await startHttp({
    handlers: "workers",
    env: { MCP_AUTH_JWT_SECRET: "", SHOP_PASSWORD: "open sesame", MCP_SERVER_SANDBOX_ENV: "KEY=hidden" },
  });
});

afterAll(() => server.stop());

const call = async (name: string, args: Record<string, unknown> = {}, from = server) =>
  (await plainCall(from.url, name, args)).body;
const pidOf = async (from = server): Promise<number> => Number(text(await call("worker_pid", {}, from)));

describe("a handler in a worker process", () => {
  test("[004-R5.1] runs beside the server, and what its file keeps in memory stays from call to call", async () => {
    expect(await pidOf()).not.toBe(server.child.pid);
    const first = Number(text(await call("count_up")));
    expect(Number(text(await call("count_up")))).toBe(first + 1);
  });

  test("[004-R5.7] that blocks delays neither the server nor other handlers", async () => {
    const pid = await pidOf();
    const file = scratchFile();
    const blocked = call("block_until", { file });
    // Sent behind the one that blocks: these are taken back and run elsewhere.
    const others = await Promise.all([call("worker_pid"), call("worker_pid"), call("worker_pid")]);
    for (const body of others) expect(Number(text(body))).not.toBe(pid);
    writeFileSync(file, "");
    expect(text(await blocked)).toBe("blocked");
    expect(await until(pidOf, (found) => found === pid)).toBe(pid);
  });

  test("[004-R5.8] that blocks its process for long is reported over SSE all the same", async () => {
    const own = await startHttp({ handlers: "workers", config: { tools: { progressAfterSeconds: 1 } } });
    const session = await HttpSession.open(own.url);
    const params = { name: "block", arguments: { ms: 5000 }, _meta: { progressToken: "p" } };
    const stream = await session.open({ jsonrpc: "2.0", id: 8, method: "tools/call", params });
    expect(stream.response.headers.get("content-type")).toContain("text/event-stream");
    expect(text(await stream.message(({ id }) => id === 8))).toBe("blocked");
    const [first, second] = stream.messages;
    expect(first?.params).toEqual({
      progressToken: "p",
      progress: expect.any(Number),
      message: expect.stringMatching(/has been running for \d s$/),
    });
    expect(second?.params).toMatchObject({ progressToken: "p", progress: expect.any(Number) });
    expect(Number(second?.params?.["progress"])).toBeGreaterThan(Number(first?.params?.["progress"]));
    closeStreams();
    await own.stop();
  });

  test("[004-R5.10] that blocks beyond its time loses its process, and the next call has a new one", async () => {
    const own = await startHttp({ handlers: "workers" });
    const pid = await pidOf(own);
    const waiting = call("wait", { ms: 60_000 }, own);
    const answer = await call("block_too_long", {}, own);
    expect(answer.error?.data).toEqual(expectedData("timeout"));
    expect((await waiting).error?.data).toEqual(
      expectedData("execution_error", { retryable: true, message: expect.stringContaining("block_too_long") }),
    );
    expect(await pidOf(own)).not.toBe(pid);
    await until(
      () => isAlive(pid),
      (alive) => !alive,
    );
    await own.stop();
  });

  test("[004-R5.7] that blocks beyond its time again and again makes nobody wait longer each time", async () => {
    const own = await startHttp({ handlers: "workers" });
    const ended = (): readonly unknown[] =>
      own.logs
        .filter(({ message }) => message === "a worker process of handlers ended")
        .map(({ pause_ms }) => pause_ms);
    await pidOf(own);
    for (let round = 1; round <= 3; round += 1) {
      expect((await call("block_too_long", {}, own)).error?.data).toEqual(expectedData("timeout"));
      await until(ended, ({ length }) => length === round);
      await pidOf(own);
    }
    expect(ended()).toEqual([0, 0, 0]);
    await own.stop();
  });

  test.each(["exits", "throws_later", "runs_out_of_memory", "kills_itself"])(
    "[004-R5.9] that %s fails its own call with the reason, and the next one works",
    async (how) => {
      const own = await startHttp({ handlers: "workers", env: { NODE_OPTIONS: "--max-old-space-size=100" } });
      const answer = await call("die", { how }, own);
      expect(answer.error?.data).toEqual(
        expectedData("execution_error", { retryable: true, message: expect.stringContaining('the tool "die"') }),
      );
      expect(text(await call("count_up", {}, own))).toBe("1");
      await own.stop();
    },
  );

  test("prints to the log and never on the protocol's stream", async () => {
    await call("print", { line: '{"t":"done","id":1}' });
    await until(
      () => server.logs.filter(({ message }) => message === "handler says").length,
      (count) => count >= 2,
    );
    const said = server.logs.filter(({ message }) => message === "handler says");
    expect(said).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ from: "stdout", text: '{"t":"done","id":1}' }),
        expect.objectContaining({ from: "stderr", text: '{"t":"done","id":1}' }),
      ]),
    );
  });

  test("has the operator's environment without the server's own secrets", async () => {
    const env = JSON.parse(text(await call("environment")) ?? "{}");
    expect(env).toMatchObject({ SHOP_PASSWORD: "open sesame" });
    expect(Object.keys(env)).not.toContain("MCP_AUTH_JWT_SECRET");
    expect(Object.keys(env)).not.toContain("MCP_SERVER_SANDBOX_ENV");
  });

  test("ends with the server, even when the server is killed", async () => {
    const own = await startHttp({ handlers: "workers" });
    const pid = await pidOf(own);
    own.child.kill("SIGKILL");
    await own.exit();
    expect(
      await until(
        () => isAlive(pid),
        (alive) => !alive,
      ),
    ).toBe(false);
  });

  test("isolation: none runs it in the server's own process, with the same answers", async () => {
    const own = await startHttp({ handlers: "workers", config: { handlers: { paths: [fixture], isolation: "none" } } });
    expect(await pidOf(own)).toBe(own.child.pid);
    expect(text(await call("count_up", {}, own))).toBe("1");
    const { error } = await call("block", { ms: "long" }, own);
    expect(error).toMatchObject({ code: -32602, data: { issues: [{ path: "ms" }] } });
    await own.stop();
  });
});

test("constraints of a tool are in its _meta", async () => {
  const { tools } = (await plain(server.url, "tools/list")).body.result ?? {};
  expect(tools.find(({ name }: { name: string }) => name === "block_too_long")).toMatchObject({
    _meta: { "owlclaw/constraints": { timeout_ms: 1000, cost: { fixed: 3 } } },
  });
});

const fixture = new URL("../../fixtures/workers", import.meta.url).pathname;
