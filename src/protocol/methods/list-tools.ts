import type { Tool } from "../../capabilities/registry.ts";
import type { Caller } from "../../pipeline/caller.ts";
import type { Mcp } from "../mcp.ts";
import { paginate } from "../paginate.ts";

const PAGE_SIZE = 100;
const entries = new WeakMap<Tool, Readonly<Record<string, unknown>>>();

export function listTools(mcp: Mcp, cursor: string | undefined, caller: Caller): Record<string, unknown> {
  const page = paginate(mcp.pipeline.visibleTools(caller), {
    list: "tools",
    size: PAGE_SIZE,
    cursor,
    keyOf: ({ name }) => name,
  });
  const { nextCursor } = page;
  return { tools: page.items.map(toolEntry), ...(nextCursor !== undefined && { nextCursor }) };
}

function toolEntry(tool: Tool): Readonly<Record<string, unknown>> {
  let entry = entries.get(tool);
  if (entry === undefined) {
    entry = describeTool(tool);
    entries.set(tool, entry);
  }
  return entry;
}

export function describeTool({
  name,
  title,
  description,
  input,
  output,
  effect,
  icons,
  meta,
}: Tool): Readonly<Record<string, unknown>> {
  return {
    name,
    ...(title !== undefined && { title }),
    description,
    inputSchema: input.json,
    ...(output !== undefined && { outputSchema: output.json }),
    annotations: {
      ...(title !== undefined && { title }),
      readOnlyHint: effect.readOnly,
      destructiveHint: effect.destructive,
      idempotentHint: effect.idempotent,
      openWorldHint: effect.openWorld,
    },
    ...(icons !== undefined && { icons }),
    ...(meta !== undefined && { _meta: meta }),
  };
}
