import { defineHandler } from "owlclaw";
import type { ElicitAnswer } from "owlclaw";
import { z } from "zod";

export const sampling = defineHandler({
  name: "test_sampling",
  description: "Asks the client's model and answers with what it said",
  input: z.object({ prompt: z.string().describe("The prompt to send to the model") }),
  async run({ prompt }, context) {
    const answer = await context.sample({
      messages: [{ role: "user", content: { type: "text", text: prompt } }],
      maxTokens: 100,
    });
    return `LLM response: ${JSON.stringify(answer.content)}`;
  },
});

export const missingCapability = defineHandler({
  name: "test_missing_capability",
  description: "Needs a client that offers sampling",
  async run(_input, context) {
    await context.sample({ messages: [{ role: "user", content: { type: "text", text: "Say yes" } }], maxTokens: 10 });
    return "Success";
  },
});

export const elicitation = defineHandler({
  name: "test_elicitation",
  description: "Asks the user for a name and an address",
  input: z.object({ message: z.string().describe("The message to show the user") }),
  async run({ message }, context) {
    const answer = await context.elicit({
      message,
      requestedSchema: {
        type: "object",
        properties: {
          username: { type: "string", description: "User's response" },
          email: { type: "string", description: "User's email address" },
        },
        required: ["username", "email"],
      },
    });
    return describe("User response", answer);
  },
});

export const elicitationDefaults = defineHandler({
  name: "test_elicitation_sep1034_defaults",
  description: "Asks with a default for each primitive type",
  async run(_input, context) {
    const answer = await context.elicit({
      message: "Please review and update the form fields with defaults",
      requestedSchema: {
        type: "object",
        properties: {
          name: { type: "string", description: "User name", default: "John Doe" },
          age: { type: "integer", description: "User age", default: 30 },
          score: { type: "number", description: "User score", default: 95.5 },
          status: {
            type: "string",
            description: "User status",
            enum: ["active", "inactive", "pending"],
            default: "active",
          },
          verified: { type: "boolean", description: "Verification status", default: true },
        },
        required: [],
      },
    });
    return describe("Elicitation completed", answer);
  },
});

export const elicitationEnums = defineHandler({
  name: "test_elicitation_sep1330_enums",
  description: "Asks with each of the five kinds of enum",
  async run(_input, context) {
    const answer = await context.elicit({
      message: "Please select options from the enum fields",
      requestedSchema: {
        type: "object",
        properties: {
          untitledSingle: { type: "string", enum: ["option1", "option2", "option3"] },
          titledSingle: { type: "string", oneOf: titled("value", "Option") },
          legacyEnum: {
            type: "string",
            enum: ["opt1", "opt2", "opt3"],
            enumNames: ["Option One", "Option Two", "Option Three"],
          },
          untitledMulti: {
            type: "array",
            minItems: 1,
            maxItems: 3,
            items: { type: "string", enum: ["option1", "option2", "option3"] },
          },
          titledMulti: { type: "array", minItems: 1, maxItems: 3, items: { anyOf: titled("value", "Choice") } },
        },
        required: [],
      },
    });
    return describe("Elicitation completed", answer);
  },
});

function titled(constant: string, title: string): { const: string; title: string }[] {
  return ["First", "Second", "Third"].map((ordinal, index) => ({
    const: `${constant}${index + 1}`,
    title: `${ordinal} ${title}`,
  }));
}

function describe(what: string, answer: ElicitAnswer): string {
  const content = answer.action === "accept" ? answer.content : {};
  return `${what}: action=${answer.action}, content=${JSON.stringify(content ?? {})}`;
}
