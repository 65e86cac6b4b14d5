import type { ResourceDefinition } from "../../capabilities/define.ts";
import type { Resource } from "../../capabilities/registry.ts";
import type { Exchange } from "../exchange.ts";
import type { Mcp } from "../mcp.ts";
import { paginate } from "../paginate.ts";
import { quotaMeta } from "../quota-meta.ts";
import { runWithQuestions } from "./run-with-questions.ts";

const PAGE_SIZE = 50;

export async function listResources(
  mcp: Mcp,
  cursor: string | undefined,
  exchange: Exchange,
): Promise<Record<string, unknown>> {
  const { items, nextCursor } = paginate(mcp.pipeline.view.resources(exchange.caller), {
    list: "resources",
    size: PAGE_SIZE,
    cursor,
    keyOf,
  });
  const resources = items.map(({ definition }) => ({ uri: definition.uri, ...details(definition) }));
  await mcp.pipeline.recordList("resources/list", exchange, resources.length);
  return { resources, ...(nextCursor !== undefined && { nextCursor }) };
}

export async function listTemplates(
  mcp: Mcp,
  cursor: string | undefined,
  exchange: Exchange,
): Promise<Record<string, unknown>> {
  const { items, nextCursor } = paginate(mcp.pipeline.view.templates(exchange.caller), {
    list: "templates",
    size: PAGE_SIZE,
    cursor,
    keyOf,
  });
  const resourceTemplates = items.map(({ definition }) => ({ uriTemplate: definition.uri, ...details(definition) }));
  await mcp.pipeline.recordList("resources/templates/list", exchange, resourceTemplates.length);
  return { resourceTemplates, ...(nextCursor !== undefined && { nextCursor }) };
}

export function readResource(mcp: Mcp, uri: string, exchange: Exchange): Promise<Record<string, unknown>> {
  return runWithQuestions(mcp, exchange, {
    boundTo: ["resources/read", uri],
    run: async (call) => {
      const { value, quota } = await mcp.pipeline.readResource(uri, call);
      return { contents: value, ...quotaMeta(quota) };
    },
  });
}

function keyOf({ definition }: Resource): string {
  return definition.uri;
}

function details({
  name,
  title,
  description,
  mimeType,
  size,
  icons,
  _meta,
}: ResourceDefinition): Record<string, unknown> {
  return {
    name,
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    ...(mimeType !== undefined && { mimeType }),
    ...(size !== undefined && { size }),
    ...(icons !== undefined && { icons }),
    ...(_meta !== undefined && { _meta }),
  };
}
