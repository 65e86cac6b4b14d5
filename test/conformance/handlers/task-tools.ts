import { setTimeout as delay } from "node:timers/promises";
import { defineHandler, OwlError } from "owlclaw";
import type { ElicitForm } from "owlclaw";
import { z } from "zod";

const JOB_MS = 1000;

export const greet = defineHandler({
  name: "greet",
  description: "Greets by name, at once",
  input: z.object({ name: z.string() }),
  run: ({ name }) => `Hello, ${name}!`,
});

export const slowCompute = defineHandler({
  name: "slow_compute",
  description: "Waits, then answers",
  input: z.object({ seconds: z.number().min(0), label: z.string().optional() }),
  task: { support: "optional" },
  async run({ seconds, label }, context) {
    await delay(seconds * 1000, undefined, { signal: context.signal });
    return `Computed ${label ?? "nothing"} in ${seconds} s`;
  },
});

export const failingJob = defineHandler({
  name: "failing_job",
  description: "Runs and reports that it failed",
  task: { support: "required" },
  async run(_input, context) {
    await delay(JOB_MS, undefined, { signal: context.signal });
    return { isError: true, content: [{ type: "text", text: "The job failed" }] };
  },
});

export const protocolErrorJob = defineHandler({
  name: "protocol_error_job",
  description: "Breaks while it runs",
  task: { support: "required" },
  async run(_input, context) {
    await delay(JOB_MS, undefined, { signal: context.signal });
    throw new OwlError("internal", "The job broke");
  },
});

export const confirmDelete = defineHandler({
  name: "confirm_delete",
  description: "Asks before it pretends to delete a file",
  input: z.object({ filename: z.string() }),
  task: { support: "optional" },
  async run({ filename }, context) {
    const answer = await context.elicit(confirmation(`Delete ${filename}?`), { key: "confirm" });
    return answer.action === "accept" && answer.content?.["confirm"] === true
      ? `Deleted ${filename}`
      : `Kept ${filename}`;
  },
});

export const multiInput = defineHandler({
  name: "multi_input",
  description: "Asks two questions at once",
  task: { support: "optional" },
  async run(_input, context) {
    const answers = await Promise.all([
      context.elicit(confirmation("First?"), { key: "first" }),
      context.elicit(confirmation("Second?"), { key: "second" }),
    ]);
    return `Answers: ${answers.map(({ action }) => action).join(", ")}`;
  },
});

export const toolWithTask = defineHandler({
  name: "test_tool_with_task",
  description: "Asks for a name first, then goes on as a task",
  task: { support: "required", start: "explicit" },
  async run(_input, context) {
    const answer = await context.elicit(
      {
        message: "What is your name?",
        requestedSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
      },
      { key: "user_name" },
    );
    await context.startTask();
    const name = answer.action === "accept" ? String(answer.content?.["name"]) : "nobody";
    return `Hello, ${name}!`;
  },
});

function confirmation(message: string): ElicitForm {
  return {
    message,
    requestedSchema: { type: "object", properties: { confirm: { type: "boolean" } }, required: ["confirm"] },
  };
}
