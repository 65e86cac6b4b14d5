import { describe, expect, onTestFinished, test, vi } from "vitest";
import { createLogger, SILENT_LOGGER, type Logger, type LoggerOptions } from "../../../src/telemetry/logger.ts";

function recording(options: Partial<LoggerOptions> = {}): { logger: Logger; lines: string[] } {
  const lines: string[] = [];
  const logger = createLogger({ level: "info", format: "json", write: (line) => lines.push(line), ...options });
  return { logger, lines };
}

function onlyLine(lines: readonly string[]): string {
  expect(lines).toHaveLength(1);
  return lines[0] ?? "";
}

describe("[004-R10.10] levels", () => {
  test.each([
    ["debug", ["debug", "info", "warning", "error"]],
    ["info", ["info", "warning", "error"]],
    ["warning", ["warning", "error"]],
    ["error", ["error"]],
  ] as const)("%s writes the lines at and above it", (level, expected) => {
    const { logger, lines } = recording({ level });
    logger.debug("x");
    logger.info("x");
    logger.warning("x");
    logger.error("x");
    expect(lines.map((line) => JSON.parse(line).level)).toEqual(expected);
  });

  test("a disabled line never looks at its fields", () => {
    const { logger, lines } = recording({ level: "error" });
    logger.info("x", {
      get boom(): never {
        throw new Error("was read");
      },
    });
    expect(lines).toEqual([]);
  });
});

describe("JSON lines", () => {
  test("carry time, level, message and fields, in this order, one object a line", () => {
    const { logger, lines } = recording();
    logger.info("two\nlines", { port: 8080, tags: ["a"] });
    const line = onlyLine(lines);
    expect(line.endsWith("\n")).toBe(true);
    expect(line.trimEnd()).not.toContain("\n");
    expect(Object.keys(JSON.parse(line))).toEqual(["time", "level", "message", "port", "tags"]);
    expect(JSON.parse(line)).toMatchObject({ level: "info", message: "two\nlines", port: 8080, tags: ["a"] });
  });

  test("a field cannot replace the head", () => {
    const { logger, lines } = recording();
    logger.info("real", { message: "forged", level: "error", time: "never" });
    expect(JSON.parse(onlyLine(lines))).toMatchObject({
      message: "real",
      level: "info",
      time: expect.stringMatching(/^\d{4}-/),
    });
  });

  test("children add their fields, and the call's own fields win", () => {
    const { logger, lines } = recording();
    logger.child({ a: 1, b: 1 }).child({ c: 1 }).info("x", { b: 2 });
    expect(JSON.parse(onlyLine(lines))).toMatchObject({ a: 1, b: 2, c: 1 });
  });

  test("errors carry type, message, stack, own facts and cause", () => {
    const { logger, lines } = recording();
    const error = Object.assign(new TypeError("outer", { cause: new Error("inner") }), { code: "E1" });
    logger.error("failed", { error });
    expect(JSON.parse(onlyLine(lines)).error).toEqual({
      type: "TypeError",
      message: "outer",
      stack: expect.stringContaining("TypeError: outer"),
      code: "E1",
      cause: { type: "Error", message: "inner", stack: expect.any(String) },
    });
  });
});

describe("whatever is logged", () => {
  const cyclic: Record<string, unknown> = { name: "loop" };
  cyclic["self"] = cyclic;
  const deep = JSON.parse(`${'{"a":'.repeat(500)}1${"}".repeat(500)}`);
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  const hostile: readonly (readonly [string, unknown])[] = [
    ["a cycle", cyclic],
    ["a big integer", 10n ** 30n],
    ["depth", deep],
    ["a getter that throws", Object.defineProperty({}, "x", { enumerable: true, get: () => JSON.parse("{") })],
    ["a toJSON that throws", { toJSON: () => JSON.parse("{") }],
    ["a revoked proxy", revoked.proxy],
    ["a symbol", Symbol("s")],
    ["an invalid date", new Date(Number.NaN)],
    ["not a number", Number.NaN],
    ["a map", new Map([[{}, new Set([1])]])],
    ["bytes", new Uint8Array(9)],
    ["a long list", Array.from({ length: 100_000 }, (_, index) => index)],
    ["long text", "x".repeat(1_000_000)],
    ["an object without prototype", Object.create(null)],
    ["a lone surrogate", "\ud800"],
  ];
  test.each(hostile)("%s is written, neither throwing nor flooding the log", (_, value) => {
    for (const format of ["json", "pretty"] as const) {
      const { logger, lines } = recording({ format });
      logger.info("x", { value });
      expect(onlyLine(lines).length).toBeLessThan(50_000);
    }
  });

  test("a cycle is shown up to where it closes", () => {
    const { logger, lines } = recording();
    logger.info("x", { value: cyclic });
    expect(JSON.parse(onlyLine(lines)).value).toEqual({ name: "loop", self: "[circular]" });
  });

  test("a writer that fails does not fail the caller", () => {
    const { logger } = recording({
      write: () => {
        throw new Error("EPIPE");
      },
    });
    expect(() => logger.error("x")).not.toThrow();
    expect(() => SILENT_LOGGER.child({}).error("x")).not.toThrow();
  });
});

describe("JSON lines", () => {
  const evil = 'x\u2028{"forged":1}\u2029\u0085\u001b[31m';

  test.each([
    ["simple", { text: evil }],
    ["any", { error: new Error(evil), text: evil }],
  ])("with %s fields hold nothing that ends a line for some reader, and say the same", (_kind, fields) => {
    const { logger, lines } = recording({ format: "json" });
    logger.info(evil, fields);
    const line = onlyLine(lines);
    expect(line.slice(0, -1)).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/);
    expect(JSON.parse(line)).toMatchObject({ message: evil, text: evil });
  });
});

describe("pretty lines", () => {
  test("are one line for a person", () => {
    const { logger, lines } = recording({ format: "pretty" });
    logger.warning("slow client", { client: "a b", ms: 12 });
    expect(onlyLine(lines)).toMatch(/^\d\d:\d\d:\d\d\.\d{3} warning slow client client="a b" ms=12\n$/);
  });

  test("text from outside cannot forge a line, a colour or a direction", () => {
    const { logger, lines } = recording({ format: "pretty" });
    const evil = "x\n00:00:00.000 error   forged\r\u001b[31m\u0085\u2028\u202e";
    logger.info(evil, {
      [evil]: evil,
      error: Object.assign(new Error(evil), { stack: `Error: ${evil}\n    at a\u001b[2J` }),
    });
    const text = lines.join("");
    expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u202e]/);
    expect(text.trimEnd().split("\n").slice(1)).toEqual(["    at a\\u001b[2J"]);
  });

  test("have colours only when asked", () => {
    const plain = recording({ format: "pretty" });
    plain.logger.info("x");
    expect(plain.lines.join("")).not.toContain("\u001b");
    const colored = recording({ format: "pretty", color: true });
    colored.logger.info("x");
    expect(colored.lines.join("")).toContain("\u001b[36m");
  });
});

describe("[004-R11.5] the level", () => {
  test("can be changed while the server runs, for children that are there already", () => {
    const lines: string[] = [];
    const logger = createLogger({ level: "warning", format: "json", write: (line) => lines.push(line) });
    const child = logger.child({ part: "a" });
    child.debug("before");
    expect(child.shows("debug")).toBe(false);
    logger.level = "debug";
    child.debug("after");
    expect(child.shows("debug")).toBe(true);
    logger.level = "error";
    child.warning("too late");
    expect(lines.map((line) => JSON.parse(line).message)).toEqual(["after"]);
    expect(logger.level).toBe("error");
  });
});

describe("repeats", () => {
  test("a warning that comes again and again is written some times, then counted", () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const { logger, lines } = recording();
    for (let times = 0; times < 1000; times += 1) logger.warning("disk is slow", { reason: "busy", at: times });
    logger.warning("disk is slow", { reason: "another" });
    expect(lines).toHaveLength(21);
    vi.advanceTimersByTime(10_000);
    expect(JSON.parse(lines[21] ?? "")).toMatchObject({ level: "warning", message: "disk is slow", repeated: 980 });
    logger.warning("disk is slow", { reason: "busy" });
    expect(lines).toHaveLength(23);
  });

  test("lines that are records are all written", () => {
    const { logger, lines } = recording();
    for (let times = 0; times < 100; times += 1) logger.info("tool call", { tool: "echo" });
    expect(lines).toHaveLength(100);
  });
});

test("what the operator wants redacted is redacted in the log, too", () => {
  const { logger, lines } = recording({ redact: [String.raw`/acct-\d{8}/`] });
  logger.info("x", { text: "of acct-12345678" });
  logger.info("x", { error: new Error("no acct-12345678") });
  expect(lines.join("")).not.toContain("12345678");
});

test("a copy is JSON, whatever the lines on the terminal look like", () => {
  const copies: string[] = [];
  const { logger, lines } = recording({ format: "pretty", copy: (line) => copies.push(line) });
  logger.info("hello", { a: 1 });
  expect(onlyLine(lines)).toMatch(/info {4}hello a=1\n$/);
  expect(JSON.parse(onlyLine(copies))).toMatchObject({ level: "info", message: "hello", a: 1 });
});
