import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type HttpServer, startHttp } from "../integration/harness.ts";
import { plain, plainCall } from "../integration/http-client.ts";

const folder = mkdtempSync(path.join(tmpdir(), "owlclaw-pydantic-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const PYDANTIC = `
from datetime import date
from typing import List, Optional
from pydantic import BaseModel, Field


class Line(BaseModel):
    sku: str = Field(min_length=2)
    count: int = Field(1, ge=1)


class Order(BaseModel):
    """What is bought."""

    lines: List[Line]
    due: Optional[date] = None


def place(order: Order) -> Order:
    """Places an order."""
    assert isinstance(order, Order) and all(isinstance(line, Line) for line in order.lines)
    return order
`;

/** Debian's package is pydantic 1; a machine's own Python may have pydantic 2. */
describe.each(["/usr/bin/python3", ""])("pydantic models, with handlers.python: '%s'", (python) => {
  let own: HttpServer;

  beforeAll(async () => {
    writeFileSync(path.join(folder, "models.py"), PYDANTIC);
    own = await startHttp({ config: { handlers: { paths: [path.join(folder, "models.py")], watch: false, python } } });
  });

  afterAll(() => own.stop());

  test("[004-R14.2] make the schema, check the input and come back as JSON", async () => {
    const { tools } = (await plain(own.url, "tools/list")).body.result ?? {};
    expect(tools[0].inputSchema).toMatchObject({
      properties: { order: { type: "object", required: ["lines"] } },
      $defs: { Line: { properties: { sku: { type: "string", minLength: 2 }, count: { minimum: 1, default: 1 } } } },
    });
    const order = { lines: [{ sku: "ab" }], due: "2026-01-31" };
    const { result } = (await plainCall(own.url, "place", { order })).body;
    expect(result?.["structuredContent"]).toEqual({ lines: [{ sku: "ab", count: 1 }], due: "2026-01-31" });
    expect((await plainCall(own.url, "place", { order: { lines: [{ sku: "a" }] } })).body.error).toMatchObject({
      code: -32602,
      data: { issues: [{ path: expect.stringContaining("lines") }] },
    });
  });
});
