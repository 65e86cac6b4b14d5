import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type HttpServer, startHttp, until } from "../harness.ts";
import { closeStreams, HttpSession, plain, plainCall } from "../http-client.ts";
import { expectedData, text } from "../wire-messages.ts";

const folder = mkdtempSync(path.join(tmpdir(), "owlclaw-python-"));

const SHOP = `
from __future__ import annotations
import asyncio
import os
import time
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Dict, List, Optional

from _prices import PRICES
from owlclaw import Context, handler


class Color(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Item:
    name: str
    color: Color = Color.RED
    tags: List[str] = field(default_factory=list)


def price(item: Item, count: int = 1, when: Optional[datetime] = None) -> Dict[str, str]:
    """Says what an item costs.

    Longer text.

    Args:
        item: What to buy.
        count: How many of it.

    Skill: shop/prices
    Cost: 2.5
    """
    assert isinstance(item, Item) and isinstance(item.color, Color)
    return {"price": str(PRICES[item.name] * count), "color": item.color.name, "when": type(when).__name__}


@handler(name="renamed", title="Renamed", readonly=True, timeout=0.5, confirm="client")
def _private_but_marked(seconds: float) -> str:
    """Sleeps, if the client says yes."""
    time.sleep(seconds)
    return "slept"


@handler(timeout=0.5)
def oversleeps(seconds: float) -> str:
    """Sleeps for longer than it may."""
    time.sleep(seconds)
    return "slept"


async def together(seconds: float) -> int:
    """Sleeps beside others."""
    await asyncio.sleep(seconds)
    return os.getpid()


def process() -> int:
    """Says which process it is."""
    return os.getpid()


def steps(count: int):
    """Counts."""
    for step in range(count):
        yield {"done": step + 1, "total": count, "message": f"step {step + 1}"}
    return {"counted": count}


def fails() -> None:
    """Fails."""
    raise KeyError("no such thing")


def dies() -> None:
    """Ends its process."""
    os._exit(3)


def who(context: Context, greeting: str = "hello") -> str:
    """Greets the caller."""
    print("printed by a handler")
    return f"{greeting} {context.principal['id']}"


def helper_without_docstring(x: int) -> int:
    return x
`;

const BAD = `
def bad(value: complex) -> str:
    """Has a type that JSON cannot carry."""
    return ""


def good() -> str:
    """Works beside it."""
    return "good"
`;

let server: HttpServer;

beforeAll(async () => {
  mkdirSync(path.join(folder, "shop"));
  writeFileSync(path.join(folder, "shop/_prices.py"), 'PRICES = {"apple": 3}\n');
  writeFileSync(path.join(folder, "shop/shop.py"), SHOP);
  writeFileSync(path.join(folder, "shop/bad.py"), BAD);
  writeFileSync(path.join(folder, "shop/syntax.py"), "def broken(:\n");
  writeFileSync(path.join(folder, "shop/missing.py"), "import a_module_that_is_nowhere\n");
  server = await startHttp({ config: { handlers: { paths: [path.join(folder, "shop")], watch: false } } });
});

afterAll(async () => {
  closeStreams();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

const call = async (name: string, args: Record<string, unknown> = {}) => (await plainCall(server.url, name, args)).body;

describe("Python handlers", () => {
  test("[004-R4.1] [004-R14.1] public functions with a docstring are tools, and nothing else is", async () => {
    const { tools } = (await plain(server.url, "tools/list")).body.result ?? {};
    expect(tools.map(({ name }: { name: string }) => name)).toEqual([
      "dies",
      "fails",
      "good",
      "oversleeps",
      "price",
      "process",
      "renamed",
      "steps",
      "together",
      "who",
    ]);
  });

  test("[004-R4.3] [004-R4.4] [004-R4.5] [004-R14.3] hints and docstring make the tool", async () => {
    const { tools } = (await plain(server.url, "tools/list")).body.result ?? {};
    const tool = tools.find(({ name }: { name: string }) => name === "price");
    expect(tool).toMatchObject({
      description: expect.stringMatching(
        /^Says what an item costs\.\n\nLonger text\.\n\nSkill skill:\/\/shop\/prices$/,
      ),
      inputSchema: {
        type: "object",
        properties: {
          item: {
            type: "object",
            description: "What to buy.",
            properties: { name: { type: "string" }, color: { enum: ["red", "blue"], default: "red" } },
            required: ["name"],
          },
          count: { type: "integer", description: "How many of it.", default: 1 },
        },
        required: ["item"],
        additionalProperties: false,
      },
      outputSchema: { type: "object", additionalProperties: { type: "string" } },
      _meta: { "owlclaw/constraints": { cost: { fixed: 2.5 } }, "owlclaw/skill": "skill://shop/prices" },
    });
    expect(tools.find(({ name }: { name: string }) => name === "renamed")).toMatchObject({
      title: "Renamed",
      annotations: { readOnlyHint: true, destructiveHint: false },
      _meta: { "owlclaw/constraints": { timeout_ms: 500, confirm: "client" } },
    });
  });

  test("[004-R5.1] values come as the types of their hints, and go back as JSON", async () => {
    const { result } = await call("price", {
      item: { name: "apple", color: "blue" },
      count: 2,
      when: "2026-01-31T12:00:00Z",
    });
    expect(result?.["structuredContent"]).toEqual({ price: "6", color: "BLUE", when: "datetime" });
  });

  test("[004-R5.2] [004-R5.3] what does not fit is refused with its path, and the function is not called", async () => {
    const { error } = await call("price", { item: { name: 1 } });
    expect(error).toMatchObject({
      code: -32602,
      data: { issues: [{ path: "item.name", message: "must be string, not number" }] },
    });
    expect((await call("price", { item: { name: "apple" }, extra: 1 })).error?.code).toBe(-32602);
  });

  test("[004-R5.9] an exception is the call's failure, with its name and message", async () => {
    expect((await call("fails")).error?.data).toEqual(
      expectedData("execution_error", { message: "KeyError: 'no such thing'" }),
    );
  });

  test("[004-R5.7] [004-R5.10] the time-out stops a sync function by ending its process; others go on", async () => {
    const slow = call("oversleeps", { seconds: 60 });
    expect(text(await call("who"))).toBe("hello anonymous");
    expect((await slow).error?.data).toEqual(expectedData("timeout"));
    const ended = await server.logged("a worker process of handlers ended");
    expect(ended["reason"]).toContain("oversleeps");
    expect(text(await call("who", { greeting: "hi" }))).toBe("hi anonymous");
  });

  test("[004-R5.7] async functions share a process, sync ones do not wait for them", async () => {
    const both = await Promise.all([
      call("together", { seconds: 0.3 }),
      call("together", { seconds: 0.3 }),
      call("process"),
    ]);
    const [one, two] = both.map((body) => text(body));
    expect(one).toBe(two);
    expect(both[2].result).toBeDefined();
  });

  test("a generator's yields are progress, its return is the result", async () => {
    const session = await HttpSession.open(server.url);
    const params = { name: "steps", arguments: { count: 3 }, _meta: { progressToken: "p" } };
    const stream = await session.open({ jsonrpc: "2.0", id: 77, method: "tools/call", params });
    const answer = await stream.message(({ id }) => id === 77);
    expect(answer.result?.["structuredContent"]).toEqual({ counted: 3 });
    const seen = stream.messages
      .filter(({ method }) => method === "notifications/progress")
      .map(({ params }) => params);
    expect(seen).toEqual(
      [1, 2, 3].map((step) => ({ progressToken: "p", progress: step, total: 3, message: `step ${step}` })),
    );
    await session.delete();
  });

  test("a process that dies fails its call alone, and comes back", async () => {
    const dead = await call("dies");
    expect(dead.error?.data).toEqual(
      expectedData("execution_error", {
        message: expect.stringContaining("exit code 3"),
        retryable: true,
        hint: expect.anything(),
      }),
    );
    expect(text(await call("who"))).toBe("hello anonymous");
  });

  test("what handlers print goes to the log", async () => {
    await call("who");
    expect(
      await until(
        () => server.logs.some((line) => line["message"] === "handler says" && line["text"] === "printed by a handler"),
        Boolean,
      ),
    ).toBe(true);
  });

  test("bad types, broken syntax and missing modules are named with file, line and fix; the rest is served", async () => {
    const problems = server.logs.filter(({ message }) => String(message).endsWith("cannot be used"));
    expect(problems).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          file: path.join(folder, "shop/bad.py"),
          line: 2,
          reason: "bad: the type complex cannot be expressed in JSON",
          fix: expect.stringContaining("dataclass"),
        }),
        expect.objectContaining({ file: path.join(folder, "shop/syntax.py"), line: 1 }),
        expect.objectContaining({
          file: path.join(folder, "shop/missing.py"),
          line: 1,
          reason: expect.stringContaining("a_module_that_is_nowhere"),
          fix: expect.stringContaining("handlers.python"),
        }),
      ]),
    );
    expect(text(await call("good"))).toBe("good");
  });
});
