import { expect, test } from "vitest";
import { compileTool } from "../../../src/capability/define-tool.ts";
import { type TaskBegun, Tasks } from "../../../src/mcp/tasks.ts";

const tool = compileTool({ name: "job", description: "A job", run: () => "done" });

function begunBy(id: string): TaskBegun {
  const principal = { id, scopes: [], claims: {} };
  const caller = {
    principal,
    label: undefined,
    transport: "http",
    protocolVersion: "2026-07-28",
    sessionId: undefined,
  } as const;
  return { tool, args: {}, caller };
}

const question = { method: "roots/list", params: {} } as const;

test("a task is seen by its owner only; another's looks like none", () => {
  const tasks = new Tasks();
  const task = tasks.create(begunBy("alice"), 60_000);
  expect(tasks.get(task.id, "alice")).toBe(task);
  const unknown = messageOf(() => tasks.get("x".repeat(24), "bob"));
  expect(messageOf(() => tasks.get(task.id, "bob"))).toBe(unknown.replace("x".repeat(24), task.id));
  tasks.close();
});

test("a task that is over stays as it ended", () => {
  const task = new Tasks().create(begunBy("alice"), 60_000);
  task.complete({ n: 1 });
  task.fail({ code: -1, message: "late" });
  task.cancel();
  expect(task.toWire({ detailed: true })).toMatchObject({ status: "completed", result: { n: 1 } });
  expect(task.life.isOver).toBe(false);
});

test("cancelling aborts the work and every open question", async () => {
  const task = new Tasks().create(begunBy("alice"), 60_000);
  const asked = task.ask(question, "q");
  expect(task.toWire({ detailed: true })).toMatchObject({ status: "input_required", inputRequests: { q: question } });
  task.cancel();
  await expect(asked).rejects.toThrow("cancelled");
  expect(task.life.isOver).toBe(true);
});

test("several questions are answered one by one, and unknown answers are ignored", async () => {
  const task = new Tasks().create(begunBy("alice"), 60_000);
  const asked = [task.ask(question, "a"), task.ask(question, "b")];
  task.answer({ a: 1, nobody: 2 });
  expect(task.toWire({ detailed: true })).toMatchObject({ status: "input_required", inputRequests: { b: question } });
  task.answer({ b: 3 });
  expect(task.toWire({ detailed: true })["status"]).toBe("working");
  await expect(Promise.all(asked)).resolves.toEqual([1, 3]);
});

test("an owner cannot keep tasks without end, and others are not hindered", () => {
  const tasks = new Tasks();
  for (let count = 0; count < 200; count++) tasks.create(begunBy("alice"), 60_000);
  expect(() => tasks.create(begunBy("alice"), 60_000)).toThrow(/200/);
  expect(() => tasks.create(begunBy("bob"), 60_000)).not.toThrow();
  tasks.close();
});

function messageOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error("it did not throw");
}
