import { defineHandler, definePrompt, defineResource, OwlError, z } from "owlclaw";
import type { Definition } from "owlclaw";

/** One tool for each shape of input and output that the protocol can tell apart. */
export const typed = defineHandler({
  name: "typed",
  title: "Typed",
  description: "Takes one argument of every type and gives it back",
  input: z.object({
    text: z.string().min(1).max(64),
    count: z.int().min(-10).max(10),
    ratio: z.number().optional(),
    flag: z.boolean().default(false),
    color: z.enum(["red", "green"]).optional(),
    list: z.array(z.string()).max(3).optional(),
    nested: z.object({ deep: z.object({ value: z.string() }) }).optional(),
    anything: z.record(z.string(), z.unknown()).optional(),
  }),
  output: z.object({ got: z.record(z.string(), z.unknown()) }),
  effect: { readOnly: true },
  run: (input) => ({ got: input }),
});

export const list = defineHandler({
  name: "list",
  description: "Answers with structured content that is a list",
  output: z.array(z.number()),
  run: () => [1, 2, 3],
});

export const wrongOutput = defineHandler({
  name: "wrong_output",
  description: "Answers with what its own schema forbids",
  output: z.object({ n: z.number() }),
  run: () => ({ n: "one" }),
});

export const fails = defineHandler({
  name: "fails",
  description: "Throws",
  input: z.object({ how: z.enum(["error", "text", "owl", "internal", "result"]) }),
  run({ how }) {
    if (how === "error") throw new Error("it broke");
    // oxlint-disable-next-line typescript/only-throw-error -- users' code throws anything
    if (how === "text") throw "it broke";
    if (how === "owl") throw new OwlError("resource_limit", "no room", { facts: { limit: 1 } });
    if (how === "internal") throw new OwlError("internal", "wires crossed");
    return { isError: true, content: [{ type: "text", text: "it broke" }] };
  },
});

export const media = defineHandler({
  name: "media",
  description: "Answers with every kind of content",
  run: () => ({
    content: [
      { type: "text", text: "words \u0000 \u2028 \uD83E\uDD89", annotations: { audience: ["user"], priority: 0.5 } },
      { type: "image", data: "AAAA", mimeType: "image/png" },
      { type: "audio", data: "AAAA", mimeType: "audio/wav" },
      { type: "resource_link", uri: "note://1", name: "note" },
      { type: "resource", resource: { uri: "note://1", mimeType: "text/plain", text: "note" } },
    ],
    _meta: { "test/extra": { a: [1, null, "x"] } },
  }),
});

export const values = defineHandler({
  name: "values",
  description: "Answers with plain values of each type",
  input: z.object({ kind: z.enum(["text", "number", "true", "null", "nothing", "object", "empty"]) }),
  run({ kind }) {
    const made = { text: "x", number: 1.5, true: true, null: null, nothing: undefined, object: { a: 1 }, empty: {} };
    return made[kind];
  },
});

export const talks = defineHandler({
  name: "talks",
  description: "Logs, reports progress, and answers",
  run(_input, context) {
    context.log("warning", { said: 1 }, "talks");
    context.progress(1, { total: 2 });
    return "done talking";
  },
});

export const asksForLogs = defineHandler({
  name: "waits_a_turn",
  description: "Answers after a turn of the event loop",
  run: () => new Promise<string>((resolve) => setImmediate(() => resolve("later"))),
});

export const slow = defineHandler({
  name: "times_out",
  description: "Never answers within its time",
  timeoutMs: 40,
  run: (_input, { signal }) =>
    new Promise<string>((resolve) => signal.addEventListener("abort", () => resolve("too late"), { once: true })),
});

export const headed = defineHandler({
  name: "headed",
  description: "Has an argument that is repeated in a header",
  input: {
    type: "object",
    properties: { region: { type: "string", "x-mcp-header": "Region" } },
    required: ["region"],
    additionalProperties: false,
  },
  run: (input) => JSON.stringify(input),
});

/** Enough of them for a second page. An export with a type of its own could be a function: the server would start a compiler. */
export const notes = sixtyNotes();

export const item = defineResource({
  uri: "item://{id}",
  name: "item",
  complete: { id: (value) => ["one", "two"].filter((id) => id.startsWith(value)) },
  read: (_uri, { id }) => `item ${id}`,
});

export const clientHello = definePrompt({
  name: "greeting",
  arguments: z.object({ name: z.string(), tone: z.string().optional() }),
  complete: { name: () => ["Ada"] },
  run: ({ name }) => `Greet ${name}`,
});

function sixtyNotes(): readonly Definition[] {
  return Array.from({ length: 60 }, (_, index) =>
    defineResource({
      uri: `note://${String(index).padStart(2, "0")}`,
      name: `note ${index}`,
      mimeType: "text/plain",
      read: () => `note ${index}`,
    }),
  );
}
