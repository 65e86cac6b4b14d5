import type { Tool } from "../../capabilities/registry.ts";
import type { Caller } from "../../pipeline/caller.ts";
import { CONSTRAINTS_META_KEY, constraintsOf } from "../constraints.ts";
import type { Exchange } from "../exchange.ts";
import type { Mcp } from "../mcp.ts";
import { paginate } from "../paginate.ts";

const PAGE_SIZE = 100;

type Entry = Readonly<Record<string, unknown>>;

/** By the caller's own list: it is another object when the policy or the tools have changed. */
const entries = new WeakMap<readonly Tool[], Map<Tool, Entry>>();

export async function listTools(
  mcp: Mcp,
  cursor: string | undefined,
  exchange: Exchange,
): Promise<Record<string, unknown>> {
  const { caller } = exchange;
  const visible = mcp.pipeline.visibleTools(caller);
  const page = paginate(visible, {
    list: "tools",
    size: PAGE_SIZE,
    cursor,
    keyOf: ({ name }) => name,
  });
  const { nextCursor } = page;
  const known = entries.get(visible) ?? new Map<Tool, Entry>();
  entries.set(visible, known);
  const tools = page.items.map((tool) => {
    const entry = known.get(tool) ?? governedEntry(mcp, tool, caller);
    known.set(tool, entry);
    return entry;
  });
  await mcp.pipeline.recordList("tools/list", exchange, tools.length);
  return { tools, ...(nextCursor !== undefined && { nextCursor }) };
}

/** The tool with what the policy holds against its calls. */
function governedEntry({ pipeline }: Mcp, tool: Tool, caller: Caller): Entry {
  const entry = describeTool(tool);
  const terms = pipeline.view.termsOf(tool, caller);
  const constraints = terms === undefined ? {} : constraintsOf(terms);
  if (Object.keys(constraints).length === 0) return entry;
  return { ...entry, _meta: { ...tool.meta, [CONSTRAINTS_META_KEY]: constraints } };
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
