import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type HttpServer, startHttp } from "../harness.ts";
import { closeStreams, HttpSession, plainCall } from "../http-client.ts";
import { text } from "../wire-messages.ts";

const FUNCTIONS = `
import type { CallContext } from "owlclaw";

interface Visit { at: Date; earlier?: Date[]; by: { [name: string]: Date }; note: string }

/** Says what came as a Date. */
export function visit({ at, earlier = [], by, note }: Visit): string[] {
  return [at, ...earlier, ...Object.values(by), note].map((value) =>
    value instanceof Date ? "Date " + value.getTime() : typeof value);
}

/** Takes a Date by its place. */
export function day(at: Date, shift = 0): number {
  return at.getUTCDate() + shift;
}

/** Subtracts. */
export function minus(a: number, b: number = 1): number {
  return a - b;
}

/** Joins whatever comes. */
export function joined(separator: string, ...parts: string[]): string {
  return parts.join(separator);
}

/** Greets the caller. */
export function greet(word: string, context: CallContext): string {
  return word + " " + context.principal.id;
}

/** Counts and tells. */
export function* counted(to: number): Generator<{ done: number; total: number; message: string }, { counted: number }> {
  for (let done = 1; done <= to; done += 1) yield { done, total: to, message: "at " + done };
  return { counted: to };
}

/** Counts and tells, later. */
export async function* countedLater(to: number): AsyncGenerator<number, { counted: number }> {
  for (let done = 1; done <= to; done += 1) yield done;
  return { counted: to };
}

/** May find nothing. */
export function found(name: string): { name: string } | undefined {
  return name === "" ? undefined : { name };
}

/** Says when. */
export async function when(): Promise<{ at: Date; all: Date[] }> {
  return { at: new Date(0), all: [new Date(1000)] };
}
`;

const folder = mkdtempSync(path.join(tmpdir(), "owlclaw-functions-"));
let server: HttpServer;

beforeAll(async () => {
  writeFileSync(path.join(folder, "functions.ts"), FUNCTIONS);
  server = await startHttp({ config: { handlers: { paths: [folder], watch: false } } });
});

afterAll(async () => {
  closeStreams();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

const call = async (name: string, args: Record<string, unknown> = {}) => (await plainCall(server.url, name, args)).body;

describe("[004-R5.1] a TypeScript function is called as its parameters want it", () => {
  test("dates come as Date wherever the type says so, and only there", async () => {
    const note = "1970-01-01T00:00:00Z";
    const answer = await call("visit", {
      at: "1970-01-01T00:00:01Z",
      earlier: ["1970-01-01T00:00:02Z", "1970-01-01T00:00:03+00:00"],
      by: { ada: "1970-01-01T00:00:04Z" },
      note,
    });
    expect(JSON.parse(text(answer) ?? "")).toEqual(["Date 1000", "Date 2000", "Date 3000", "Date 4000", "string"]);
    expect(text(await call("day", { at: "2026-01-30T12:00:00Z", shift: 1 }))).toBe("31");
    expect((await call("day", { at: "soon" })).error).toMatchObject({
      code: -32602,
      data: { issues: [{ path: "at" }] },
    });
  });

  test("fields go to parameters by name, whatever their order; what is left out has its default", async () => {
    expect(text(await call("minus", { b: 3, a: 10 }))).toBe("7");
    expect(text(await call("minus", { a: 10 }))).toBe("9");
  });

  test("a rest parameter takes an array", async () => {
    expect(text(await call("joined", { separator: "-", parts: ["a", "b", "c"] }))).toBe("a-b-c");
  });

  test("the context is filled in and is no field", async () => {
    expect(text(await call("greet", { word: "hello" }))).toBe("hello anonymous");
    expect((await call("greet", { word: "hello", context: {} })).error?.code).toBe(-32602);
  });

  test.each([
    ["counted", [1, 2, 3].map((step) => ({ progressToken: "p", progress: step, total: 3, message: `at ${step}` }))],
    ["countedLater", [1, 2, 3].map((step) => ({ progressToken: "p", progress: step }))],
  ])("%s: what a generator yields is progress, what it returns is the result", async (name, expected) => {
    const session = await HttpSession.open(server.url);
    const params = { name, arguments: { to: 3 }, _meta: { progressToken: "p" } };
    const stream = await session.open({ jsonrpc: "2.0", id: 5, method: "tools/call", params });
    const answer = await stream.message(({ id }) => id === 5);
    expect(answer.result?.["structuredContent"]).toEqual({ counted: 3 });
    const seen = stream.messages.filter(({ method }) => method === "notifications/progress");
    expect(seen.map((message) => message.params)).toEqual(expected);
    await session.delete();
  });

  test("undefined is null on the wire where the type allows it", async () => {
    expect((await call("found", { name: "Ada" })).result?.["structuredContent"]).toEqual({ result: { name: "Ada" } });
    const nothing = await call("found", { name: "" });
    expect(nothing.error).toBeUndefined();
    expect(nothing.result?.["structuredContent"]).toEqual({ result: null });
  });

  test("a returned Date is ISO text, and the output schema agrees with it", async () => {
    expect((await call("when")).result?.["structuredContent"]).toEqual({
      at: "1970-01-01T00:00:00.000Z",
      all: ["1970-01-01T00:00:01.000Z"],
    });
  });
});
