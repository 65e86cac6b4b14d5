import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Lifeline } from "../../../src/call/lifeline.ts";
import { ClientQuestions } from "../../../src/mcp/peer.ts";
import type { Question } from "../../../src/mcp/conversations/questions.ts";

const QUESTION: Question = { method: "roots/list", params: {} };

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

function open(firstId = 0) {
  const questions = new ClientQuestions(firstId);
  const life = new Lifeline();
  const sent: unknown[] = [];
  const ask = (): Promise<unknown> => questions.ask(QUESTION, { life, send: (message) => sent.push(message) });
  return { questions, life, sent, ask };
}

describe("questions to a client", () => {
  test("are numbered from the first id on, and each answer belongs to its question", async () => {
    const { questions, sent, ask } = open(7);
    const first = ask();
    const second = ask();
    expect(sent).toEqual([
      { jsonrpc: "2.0", id: 7, ...QUESTION },
      { jsonrpc: "2.0", id: 8, ...QUESTION },
    ]);
    questions.answer({ jsonrpc: "2.0", id: 8, result: { n: 2 } });
    questions.answer({ jsonrpc: "2.0", id: "7", result: { n: 1 } });
    await expect(first).resolves.toEqual({ n: 1 });
    await expect(second).resolves.toEqual({ n: 2 });
  });

  test("reject with the client's error, and answers to nothing are ignored", async () => {
    const { questions, ask } = open();
    const asked = ask();
    questions.answer({ jsonrpc: "2.0", id: 5, result: {} });
    questions.answer({ jsonrpc: "2.0", id: null, error: { code: -2, message: "of nothing" } });
    questions.answer({ jsonrpc: "2.0", id: 0, error: { code: -1, message: "no" } });
    questions.answer({ jsonrpc: "2.0", id: 0, result: {} });
    await expect(asked).rejects.toThrow("no");
  });

  test("end with the request that they belong to, and are not asked after it", async () => {
    const { life, sent, ask } = open();
    const asked = ask();
    life.end();
    await expect(asked).rejects.toMatchObject({ kind: "cancelled" });
    await expect(ask()).rejects.toMatchObject({ kind: "cancelled" });
    expect(sent).toHaveLength(1);
  });

  test("are withdrawn when no answer comes in ten minutes", async () => {
    const { sent, ask } = open();
    const failure = ask().catch((error: unknown) => error);
    await vi.advanceTimersByTimeAsync(600_000);
    expect(await failure).toMatchObject({
      kind: "execution_error",
      message: 'the client gave no answer within 600 seconds to "roots/list"',
    });
    expect(sent.at(-1)).toEqual({
      jsonrpc: "2.0",
      method: "notifications/cancelled",
      params: { requestId: 0, reason: "no answer within 600 seconds" },
    });
    expect(vi.getTimerCount()).toBe(0);
  });
});
