import { defineHandler, definePrompt } from "owlclaw";
import type { ElicitAnswer, ElicitForm, SampleRequest } from "owlclaw";

const WHAT_NAME: ElicitForm = form("What is your name?", "name");
const PLEASE_CONFIRM: ElicitForm = form("Please confirm", "ok", "boolean");

export const oneElicitation = defineHandler({
  name: "test_input_required_result_elicitation",
  description: "Asks for a name and greets",
  async run(_input, context) {
    const answer = await context.elicit(WHAT_NAME, { key: "user_name" });
    return `Hello, ${field(answer, "name")}!`;
  },
});

export const oneSampling = defineHandler({
  name: "test_input_required_result_sampling",
  description: "Asks the client's model a question",
  async run(_input, context) {
    const answer = await context.sample(prompt("What is the capital of France?", 100), { key: "capital_question" });
    return `Sampling result: ${JSON.stringify(answer.content)}`;
  },
});

export const oneRootsList = defineHandler({
  name: "test_input_required_result_list_roots",
  description: "Asks for the client's roots",
  async run(_input, context) {
    const roots = await context.roots({ key: "client_roots" });
    return `Roots: ${roots.map(({ uri }) => uri).join(", ")}`;
  },
});

export const requestState = defineHandler({
  name: "test_input_required_result_request_state",
  description: "Asks for a confirmation, with state that comes back",
  async run(_input, context) {
    const answer = await context.elicit(PLEASE_CONFIRM, { key: "confirm" });
    return `state-ok: ${field(answer, "ok")}`;
  },
});

export const tamperedState = defineHandler({
  name: "test_input_required_result_tampered_state",
  description: "Asks for a confirmation, with state that nobody may change",
  async run(_input, context) {
    const answer = await context.elicit(PLEASE_CONFIRM, { key: "confirm" });
    return `integrity-ok: ${field(answer, "ok")}`;
  },
});

export const multipleInputs = defineHandler({
  name: "test_input_required_result_multiple_inputs",
  description: "Asks the user, the model and for the roots, all at once",
  async run(_input, context) {
    const [name, greeting, roots] = await Promise.all([
      context.elicit(WHAT_NAME, { key: "user_name" }),
      context.sample(prompt("Generate a greeting", 50), { key: "greeting" }),
      context.roots({ key: "client_roots" }),
    ]);
    return `Name: ${field(name, "name")}; Greeting: ${JSON.stringify(greeting.content)}; Roots: ${roots.length}`;
  },
});

export const multiRound = defineHandler({
  name: "test_input_required_result_multi_round",
  description: "Asks two questions, one after the other",
  async run(_input, context) {
    const name = await context.elicit(form("Step 1: What is your name?", "name"), { key: "step1" });
    const color = await context.elicit(form("Step 2: What is your favorite color?", "color"), { key: "step2" });
    return `${field(name, "name")} likes ${field(color, "color")}`;
  },
});

export const declaredCapabilities = defineHandler({
  name: "test_input_required_result_capabilities",
  description: "Asks only what this client can answer",
  async run(_input, context) {
    const answers = await Promise.allSettled([
      context.elicit(form("Elicitation input", "value"), { key: "elicit_input" }),
      context.sample(prompt("Sample request", 50), { key: "sample_input" }),
    ]);
    return `answered: ${answers.filter(({ status }) => status === "fulfilled").length}`;
  },
});

export const streamingElicitation = defineHandler({
  name: "test_streaming_elicitation",
  description: "Reports progress, then asks",
  async run(_input, context) {
    context.progress(50, { total: 100 });
    const answer = await context.elicit(WHAT_NAME, { key: "user_name" });
    return `Streaming complete for ${field(answer, "name")}`;
  },
});

export const askingPrompt = definePrompt({
  name: "test_input_required_result_prompt",
  description: "A prompt that asks for its context",
  async run(_args, context) {
    const answer = await context.elicit(form("What context should the prompt use?", "context"), {
      key: "user_context",
    });
    return `Prompt with context: ${field(answer, "context")}`;
  },
});

function form(message: string, name: string, type = "string"): ElicitForm {
  return { message, requestedSchema: { type: "object", properties: { [name]: { type } }, required: [name] } };
}

function prompt(text: string, maxTokens: number): SampleRequest {
  return { messages: [{ role: "user", content: { type: "text", text } }], maxTokens };
}

function field(answer: ElicitAnswer, name: string): string {
  return answer.action === "accept" ? String(answer.content?.[name]) : answer.action;
}
