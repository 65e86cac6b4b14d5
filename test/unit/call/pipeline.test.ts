import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { Registry } from "../../../src/capability/registry.ts";
import { OwlError } from "../../../src/errors/owl-error.ts";
import { CallSuspended } from "../../../src/call/call.ts";
import { Pipeline } from "../../../src/call/pipeline.ts";
import { makeCall, makeTool } from "./fixture.ts";

const pipeline = new Pipeline({
  registry: new Registry(),
  timeoutMs: 1000,
  progressAfterMs: 30_000,
  maxResultChars: 1000,
});

describe("a call through the pipeline", () => {
  test("validates, fills in defaults, runs and renders", async () => {
    const tool = makeTool({
      input: z.object({ a: z.number(), b: z.number().default(10) }),
      run: (input) => ({ got: input }),
    });
    expect(await pipeline.callTool(tool, { a: 1 }, makeCall())).toEqual({
      content: [{ type: "text", text: '{"got":{"a":1,"b":10}}' }],
      structuredContent: { got: { a: 1, b: 10 } },
    });
  });

  test("never runs the tool when its arguments are bad, and says which and what to do", async () => {
    const run = vi.fn<() => string>(() => "ran");
    const tool = makeTool({ input: z.object({ a: z.number(), b: z.object({ c: z.string() }) }), run });
    const failure = await failureOf(pipeline.callTool(tool, { a: "x", b: {} }, makeCall()));
    expect(failure.kind).toBe("invalid_arguments");
    expect(failure.facts["issues"]).toEqual([
      { path: "a", message: expect.any(String) },
      { path: "b.c", message: expect.any(String) },
    ]);
    expect(failure.hint).toContain("a, b");
    expect(run).not.toHaveBeenCalled();
  });

  test("a tool without input takes no arguments and says so", async () => {
    const failure = await failureOf(pipeline.callTool(makeTool({}), { extra: 1 }, makeCall()));
    expect(failure.message).toContain("extra: is unknown");
    expect(failure.hint).toContain("takes no arguments");
  });

  test("a schema that answers later is waited for", async () => {
    const tool = makeTool({
      input: z.object({ a: z.string().refine(async (value) => value === "good", "not good") }),
      run: () => "ran",
    });
    expect((await pipeline.callTool(tool, { a: "good" }, makeCall())).content).toEqual([{ type: "text", text: "ran" }]);
    expect((await failureOf(pipeline.callTool(tool, { a: "bad" }, makeCall()))).message).toContain("not good");
  });

  test("whatever a tool throws is an execution error with the cause kept; an OwlError stays itself", async () => {
    const thrower = (thrown: unknown) =>
      makeTool({
        run() {
          throw thrown;
        },
      });
    const cause = new Error("broke");
    const failure = await failureOf(pipeline.callTool(thrower(cause), {}, makeCall()));
    expect([failure.kind, failure.message, failure.cause]).toEqual(["execution_error", "broke", cause]);
    expect((await failureOf(pipeline.callTool(thrower("text"), {}, makeCall()))).message).toBe("text");
    expect((await failureOf(pipeline.callTool(thrower(undefined), {}, makeCall()))).kind).toBe("execution_error");
    expect((await failureOf(pipeline.callTool(thrower(new OwlError("internal", "x")), {}, makeCall()))).kind).toBe(
      "internal",
    );
    await expect(pipeline.callTool(thrower(new CallSuspended()), {}, makeCall())).rejects.toBeInstanceOf(CallSuspended);
  });

  test("an unknown tool, resource or prompt is not found, and long names are cut", async () => {
    await expect(pipeline.findTool("nobody", makeCall(), {})).rejects.toThrow('there is no tool named "nobody"');
    const long = await failureOf(pipeline.readResource("x".repeat(10_000), makeCall()));
    expect(long.message.length).toBeLessThan(400);
    expect((await failureOf(pipeline.getPrompt("nobody", {}, makeCall()))).kind).toBe("prompt_not_found");
  });
});

describe("the time of a call", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test("ends at the server's limit, or at the tool's own", async () => {
    const forever = () => new Promise<string>(() => undefined);
    const byServer = failureOf(pipeline.callTool(makeTool({ run: forever }), {}, makeCall()));
    await vi.advanceTimersByTimeAsync(1000);
    expect(await byServer).toMatchObject({ kind: "timeout", facts: { timeout_ms: 1000 } });
    const byTool = failureOf(pipeline.callTool(makeTool({ run: forever, timeoutMs: 50 }), {}, makeCall()));
    await vi.advanceTimersByTimeAsync(50);
    expect(await byTool).toMatchObject({ kind: "timeout", facts: { timeout_ms: 50 } });
  });

  test("the tool learns of the end through its signal, with the reason", async () => {
    let seen: unknown;
    const tool = makeTool({
      run: (_input, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => {
            seen = signal.reason;
            reject(new Error("stopped"));
          });
        }),
    });
    const failure = failureOf(pipeline.callTool(tool, {}, makeCall()));
    await vi.advanceTimersByTimeAsync(1000);
    expect((await failure).kind).toBe("timeout");
    expect(seen).toMatchObject({ kind: "timeout" });
  });

  test("a caller that is gone ends the call; one that was gone before never starts it", async () => {
    const run = vi.fn<() => Promise<string>>(() => new Promise(() => undefined));
    const call = makeCall();
    const failure = failureOf(pipeline.callTool(makeTool({ run }), {}, call));
    await vi.advanceTimersByTimeAsync(0);
    call.life.end();
    expect((await failure).kind).toBe("cancelled");
    expect((await failureOf(pipeline.callTool(makeTool({ run }), {}, call))).kind).toBe("cancelled");
    expect(run).toHaveBeenCalledTimes(1);
  });

  test("leaves no timer behind", async () => {
    await pipeline.callTool(makeTool({}), {}, makeCall({ wantsProgress: true }));
    expect(vi.getTimerCount()).toBe(0);
  });

  test("a long call is reported until the tool says something itself", async () => {
    const patient = new Pipeline({
      registry: new Registry(),
      timeoutMs: 600_000,
      progressAfterMs: 30_000,
      maxResultChars: 1000,
    });
    let speak: () => void = () => undefined;
    let finish: (value: string) => void = () => undefined;
    const tool = makeTool({
      run: (_input, context) => {
        speak = () => context.progress(100, { message: "mine" });
        return new Promise<string>((resolve) => {
          finish = resolve;
        });
      },
    });
    const call = makeCall({ wantsProgress: true });
    const pending = patient.callTool(tool, {}, call);
    await vi.advanceTimersByTimeAsync(65_000);
    expect(call.reports.map(({ done }) => done)).toEqual([30, 60]);
    speak();
    await vi.advanceTimersByTimeAsync(120_000);
    expect(call.reports.map(({ message }) => message)).toEqual([expect.any(String), expect.any(String), "mine"]);
    finish("done");
    await pending;
    const silent = makeCall();
    const unreported = patient.callTool(tool, {}, silent);
    await vi.advanceTimersByTimeAsync(65_000);
    expect(silent.reports).toEqual([]);
    finish("done");
    await unreported;
  });
});

async function failureOf(running: Promise<unknown>): Promise<OwlError> {
  try {
    await running;
  } catch (error) {
    if (error instanceof OwlError) return error;
    throw error;
  }
  throw new Error("it did not fail");
}
