import type { Prompt } from "../../capability/registry.ts";
import type { Exchange } from "../exchange.ts";
import { isObject } from "../json-rpc.ts";
import type { Mcp } from "../mcp.ts";
import { paginate } from "../paginate.ts";
import { quotaMeta } from "../request-envelope.ts";
import { runWithQuestions } from "./run-with-questions.ts";

const PAGE_SIZE = 100;

export async function listPrompts(
  mcp: Mcp,
  cursor: string | undefined,
  exchange: Exchange,
): Promise<Record<string, unknown>> {
  const page = paginate(mcp.pipeline.view.prompts(exchange.caller), {
    list: "prompts",
    size: PAGE_SIZE,
    cursor,
    keyOf: ({ definition }) => definition.name,
  });
  const { nextCursor } = page;
  await mcp.pipeline.recordList("prompts/list", exchange, page.items.length);
  return { prompts: page.items.map(describePrompt), ...(nextCursor !== undefined && { nextCursor }) };
}

export function getPrompt(
  mcp: Mcp,
  {
    name,
    arguments: args,
  }: { readonly name: string; readonly arguments?: Readonly<Record<string, string>> | undefined },
  exchange: Exchange,
): Promise<Record<string, unknown>> {
  return runWithQuestions(mcp, exchange, {
    boundTo: ["prompts/get", name, args],
    run: async (call) => {
      const { value, quota } = await mcp.pipeline.getPrompt(name, args, call);
      return { ...value, ...quotaMeta(quota) };
    },
  });
}

function describePrompt(prompt: Prompt): Record<string, unknown> {
  const { name, title, description, icons, _meta } = prompt.definition;
  return {
    name,
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    ...(prompt.arguments !== undefined && { arguments: describeArguments(prompt) }),
    ...(icons !== undefined && { icons }),
    ...(_meta !== undefined && { _meta }),
  };
}

/** MCP lists prompt arguments one by one, not as a schema. */
function describeArguments(prompt: Prompt): Record<string, unknown>[] {
  const { properties, required } = prompt.arguments?.json ?? {};
  if (!isObject(properties)) return [];
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    ...(isObject(schema) && typeof schema["title"] === "string" && { title: schema["title"] }),
    ...(isObject(schema) && typeof schema["description"] === "string" && { description: schema["description"] }),
    required: Array.isArray(required) && required.includes(name),
  }));
}
