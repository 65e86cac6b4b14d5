import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type HttpServer, startHttp, until } from "../harness.ts";
import { closeStreams, HttpSession, modern, plainCall } from "../http-client.ts";
import { expectedData, text } from "../wire-messages.ts";

const folder = mkdtempSync(path.join(tmpdir(), "owlclaw-python-context-"));

const CONTEXT = `
import time
from owlclaw import Context

FORM = {"type": "object", "properties": {"name": {"type": "string"}}}


def facts(context: Context) -> dict:
    """Says what it knows of its call."""
    context.progress(1, total=2, message="half")
    context.charge(0.5)
    context.logger.warning({"careful": True})
    return {
        "principal": context.principal["id"],
        "trace": len(context.trace_id) > 0,
        "version": context.protocol_version,
        "session": context.session_id is not None,
        "cancelled": context.is_cancelled,
    }


def asks(context: Context) -> str:
    """Asks the person."""
    answer = context.elicit("Your name?", FORM)
    return f"{answer['action']} {answer.get('content', {}).get('name')}"


async def asks_later(context: Context) -> str:
    """Asks the person from an async function."""
    answer = await context.elicit("Your name?", FORM)
    return f"{answer['action']} {answer.get('content', {}).get('name')}"


def asks_sandbox(context: Context) -> str:
    """Asks for a sandbox."""
    return context.sandbox.exec("true")["status"]


def notices(context: Context) -> str:
    """Works until it is cancelled."""
    print("works")
    for _ in range(600):
        if context.is_cancelled:
            print("noticed that it is cancelled")
            return "stopped"
        time.sleep(0.05)
    return "never stopped"
`;

let server: HttpServer;

beforeAll(async () => {
  writeFileSync(path.join(folder, "context.py"), CONTEXT);
  server = await startHttp({ config: { handlers: { paths: [path.join(folder, "context.py")], watch: false } } });
});

afterAll(async () => {
  closeStreams();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

const CAPABLE = { elicitation: { form: {} } };

describe("the context of a Python handler", () => {
  test("says who calls, and carries progress and log to the client", async () => {
    const session = await HttpSession.open(server.url);
    await session.request("logging/setLevel", { level: "info" });
    const params = { name: "facts", arguments: {}, _meta: { progressToken: "p" } };
    const stream = await session.open({ jsonrpc: "2.0", id: 3, method: "tools/call", params });
    const answer = await stream.message(({ id }) => id === 3);
    expect(answer.result?.["structuredContent"]).toEqual({
      principal: "anonymous",
      trace: true,
      version: "2025-11-25",
      session: true,
      cancelled: false,
    });
    const said = stream.messages
      .filter(({ method }) => method !== undefined)
      .map(({ method, params: told }) => [method, told]);
    expect(said).toEqual([
      ["notifications/progress", { progressToken: "p", progress: 1, total: 2, message: "half" }],
      ["notifications/message", expect.objectContaining({ level: "warning", data: { careful: true } })],
    ]);
    await session.delete();
  });

  test.each(["asks", "asks_later"])("%s: asks the person at the client", async (name) => {
    const session = await HttpSession.open(server.url, { capabilities: CAPABLE });
    const stream = await session.open({ jsonrpc: "2.0", id: 4, method: "tools/call", params: { name, arguments: {} } });
    const question = await stream.message(({ method }) => method === "elicitation/create");
    expect(question.params).toMatchObject({ message: "Your name?" });
    await session.send({
      jsonrpc: "2.0",
      id: question.id,
      result: { action: "accept", content: { name: "Ada" } },
    });
    expect(text(await stream.message(({ id }) => id === 4))).toBe("accept Ada");
    await session.delete();
  });

  test("a question on a revision without server requests is the answer of the call", async () => {
    const { body } = await modern(server.url, "tools/call", { name: "asks", arguments: {} }, { capabilities: CAPABLE });
    expect(body.result).toMatchObject({ resultType: "input_required" });
  });

  test("a client that cannot be asked, and a server without sandboxes, fail the call with their own reason", async () => {
    expect((await plainCall(server.url, "asks")).body.error?.data).toMatchObject({ hint: expect.any(String) });
    expect((await plainCall(server.url, "asks_sandbox")).body.error?.data).toEqual(
      expectedData("sandbox_unavailable", { message: "this server has no sandboxes" }),
    );
  });

  test("tells a function that it was cancelled", async () => {
    const session = await HttpSession.open(server.url);
    const call = { jsonrpc: "2.0", id: 6, method: "tools/call", params: { name: "notices", arguments: {} } };
    void session.open(call).catch(() => undefined);
    await until(() => server.logs.some((line) => line["text"] === "works"), Boolean);
    await session.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 6 } });
    const said = (): boolean => server.logs.some((line) => line["text"] === "noticed that it is cancelled");
    expect(await until(said, Boolean)).toBe(true);
    await session.delete();
  });
});
