import type { ResourceDefinition } from "../../capabilities/define.ts";
import type { Resource } from "../../capabilities/registry.ts";
import { OwlError } from "../../errors/owl-error.ts";
import type { Exchange } from "../exchange.ts";
import type { Mcp } from "../mcp.ts";
import { paginate } from "../paginate.ts";
import { runWithQuestions } from "./run-with-questions.ts";

const PAGE_SIZE = 50;

export function listResources(mcp: Mcp, cursor: string | undefined): Record<string, unknown> {
  const { items, nextCursor } = paginate(mcp.pipeline.registry.resources(), {
    list: "resources",
    size: PAGE_SIZE,
    cursor,
    keyOf,
  });
  const resources = items.map(({ definition }) => ({ uri: definition.uri, ...details(definition) }));
  return { resources, ...(nextCursor !== undefined && { nextCursor }) };
}

export function listTemplates(mcp: Mcp, cursor: string | undefined): Record<string, unknown> {
  const { items, nextCursor } = paginate(mcp.pipeline.registry.templates(), {
    list: "templates",
    size: PAGE_SIZE,
    cursor,
    keyOf,
  });
  const resourceTemplates = items.map(({ definition }) => ({ uriTemplate: definition.uri, ...details(definition) }));
  return { resourceTemplates, ...(nextCursor !== undefined && { nextCursor }) };
}

export function readResource(mcp: Mcp, uri: string, exchange: Exchange): Promise<Record<string, unknown>> {
  return runWithQuestions(mcp, exchange, {
    boundTo: ["resources/read", uri],
    run: async (call) => ({ contents: await mcp.pipeline.readResource(uri, call) }),
  });
}

/** Only what can be read can be watched. */
export function assertSubscribable(mcp: Mcp, uri: string): void {
  if (mcp.pipeline.registry.findResource(uri) !== undefined) return;
  throw new OwlError("resource_not_found", `there is no resource "${uri.slice(0, 256)}"`, {
    facts: { uri: uri.slice(0, 256) },
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
