import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { defineHandler, definePrompt, z } from "owlclaw";
import type { ElicitForm } from "owlclaw";

type HoldState = "waiting" | "released" | "cancelled";

const holds = new Map<string, HoldState>();
const releases = new Map<string, () => void>();
const POLL_MS = 10;

export const echo = defineHandler({
  name: "echo",
  description: "Answers with what it was sent",
  input: z.object({ text: z.string() }),
  run: ({ text }) => text,
});

export const whoami = defineHandler({
  name: "whoami",
  description: "Says who is calling",
  run: (_input, { principal }) => principal.id,
});

/** Stays open until it is let go by `release` or by a file, so that a test decides when a call ends. */
export const hold = defineHandler({
  name: "hold",
  description: "Waits until it is released or cancelled",
  input: z.object({ key: z.string(), file: z.string().optional(), journal: z.string().optional() }),
  async run({ key, file, journal }, { signal }) {
    // The server may be about to exit: what is not written at once is not written.
    const note = (state: HoldState): void => {
      holds.set(key, state);
      if (journal !== undefined) appendFileSync(journal, `${key} ${state}\n`);
    };
    const released = new Promise<void>((resolve) => releases.set(key, resolve));
    note("waiting");
    const cancelled = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    await Promise.race([released, cancelled, ...(file === undefined ? [] : [whenExists(file, signal)])]);
    note(signal.aborted ? "cancelled" : "released");
    return `${key} done`;
  },
});

export const release = defineHandler({
  name: "release",
  description: "Lets a held call go",
  input: z.object({ key: z.string() }),
  run({ key }) {
    releases.get(key)?.();
    return releases.has(key);
  },
});

export const held = defineHandler({
  name: "held",
  description: "Says what became of the held calls",
  run: () => ({ holds: Object.fromEntries(holds) }),
});

export const vitals = defineHandler({
  name: "vitals",
  description: "Says how the process is: memory after a collection where one can be asked for, and what it holds open",
  run() {
    globalThis.gc?.();
    const { rss, heapUsed } = process.memoryUsage();
    const sockets = process.getActiveResourcesInfo().filter((name) => name === "TCPSocketWrap").length;
    return { rssBytes: rss, heapBytes: heapUsed, sockets, isPolluted: "isAdmin" in {} };
  },
});

export const big = defineHandler({
  name: "big",
  description: "Answers with very much text",
  input: z.object({ chars: z.int().min(0) }),
  run: ({ chars }) => "x".repeat(chars),
});

export const chatter = defineHandler({
  name: "chatter",
  description: "Sends many messages before it answers",
  input: z.object({ messages: z.int(), chars: z.int() }),
  async run({ messages, chars }, context) {
    for (let sent = 0; sent < messages && !context.signal.aborted; sent++) {
      context.log("info", "x".repeat(chars));
      await delay(0);
    }
    return "said everything";
  },
});

const NAME: ElicitForm = {
  message: "What is your name?",
  requestedSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
};

export const ask = defineHandler({
  name: "ask",
  description: "Asks the person for a name",
  input: z.object({ topic: z.string().default("anything") }),
  async run({ topic }, context) {
    const answer = await context.elicit(NAME, { key: "name" });
    return answer.action === "accept" ? `${topic}: ${String(answer.content?.["name"])}` : answer.action;
  },
});

export const askOther = defineHandler({
  name: "ask_other",
  description: "Asks the same question as ask, in another tool",
  async run(_input, context) {
    const answer = await context.elicit(NAME, { key: "name" });
    return answer.action;
  },
});

export const askTwice = defineHandler({
  name: "ask_twice",
  description: "Asks for a name, and then for another",
  input: z.object({ topic: z.string() }),
  async run({ topic }, context) {
    const first = await context.elicit(NAME, { key: "first" });
    const second = await context.elicit(NAME, { key: "second" });
    return `${topic}: ${first.action} ${second.action}`;
  },
});

/** The same name, arguments and questions as the tool above: nothing but the method tells the two apart. */
export const askTwicePrompt = definePrompt({
  name: "ask_twice",
  arguments: z.object({ topic: z.string() }),
  async run({ topic }, context) {
    const first = await context.elicit(NAME, { key: "first" });
    const second = await context.elicit(NAME, { key: "second" });
    return `${topic}: ${first.action} ${second.action}`;
  },
});

export const job = defineHandler({
  name: "job",
  description: "Works as a task until it is cancelled",
  input: z.object({ key: z.string() }),
  task: { support: "required" },
  async run({ key }, { signal }) {
    holds.set(key, "waiting");
    await new Promise<void>((resolve) => {
      releases.set(key, resolve);
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    holds.set(key, signal.aborted ? "cancelled" : "released");
    return `secret of ${key}`;
  },
});

export const askingJob = defineHandler({
  name: "asking_job",
  description: "Works as a task that asks for a name",
  task: { support: "required" },
  async run(_input, context) {
    const answer = await context.elicit(NAME, { key: "name" });
    return answer.action === "accept" ? `Hello, ${String(answer.content?.["name"])}` : answer.action;
  },
});

async function whenExists(file: string, signal: AbortSignal): Promise<void> {
  while (!existsSync(file) && !signal.aborted) await delay(POLL_MS);
}
