import type { Tool } from "../../capabilities/registry.ts";
import type { JsonSchema } from "../../capabilities/schema.ts";
import type { Caller } from "../../pipeline/caller.ts";
import type { Mcp } from "../mcp.ts";
import { paginate } from "../paginate.ts";
import { isModern } from "../versions.ts";

const PAGE_SIZE = 100;

/** Enough for every page of a list with some thousand tools; nobody can fill the memory with cursors. */
const MAX_CACHED_PAGES = 64;

interface Rendered {
  readonly skillsVersion: number;
  readonly pages: Map<string, Record<string, unknown>>;
}

/** By the list itself: the pipeline gives out the same one until something changed. */
const rendered = new WeakMap<readonly Tool[], Rendered>();

export function listTools(mcp: Mcp, cursor: string | undefined, caller: Caller): Record<string, unknown> {
  const tools = mcp.pipeline.visibleTools(caller);
  const isNew = isModern(caller.protocolVersion);
  const { pages } = cacheOf(tools, mcp.pipeline.skillTexts?.version ?? 0);
  const key = JSON.stringify([isNew, cursor]);
  let page = pages.get(key);
  if (page === undefined) {
    page = renderPage(mcp, tools, { cursor, isNew });
    if (pages.size < MAX_CACHED_PAGES) pages.set(key, page);
  }
  return page;
}

function cacheOf(tools: readonly Tool[], skillsVersion: number): Rendered {
  let found = rendered.get(tools);
  if (found === undefined || found.skillsVersion !== skillsVersion) {
    found = { skillsVersion, pages: new Map() };
    rendered.set(tools, found);
  }
  return found;
}

function renderPage(
  mcp: Mcp,
  tools: readonly Tool[],
  { cursor, isNew }: { readonly cursor: string | undefined; readonly isNew: boolean },
): Record<string, unknown> {
  const page = paginate(tools, { list: "tools", size: PAGE_SIZE, cursor, keyOf: ({ name }) => name });
  const { nextCursor } = page;
  const entries = page.items.map((tool) =>
    describeTool(tool, {
      isNew,
      skillText: tool.skill === undefined ? undefined : mcp.pipeline.skillTexts?.of(tool.skill),
    }),
  );
  return { tools: entries, ...(nextCursor !== undefined && { nextCursor }) };
}

export interface DescribeToolOptions {
  /** Whether the client's revision knows results that are no objects. */
  readonly isNew?: boolean;
  /** What the tool's skill says, for its description. */
  readonly skillText?: string | undefined;
}

export function describeTool(
  tool: Tool,
  { isNew = true, skillText }: DescribeToolOptions = {},
): Readonly<Record<string, unknown>> {
  const { name, title, description, input, output, effect, icons } = tool;
  const meta = metaOf(tool);
  return {
    name,
    ...(title !== undefined && { title }),
    description: tool.skill === undefined ? description : withSkill(description, tool.skill, skillText),
    inputSchema: input.json,
    ...(output !== undefined && { outputSchema: isNew ? output.json : asObject(output.json) }),
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

function withSkill(description: string, uri: string, text: string | undefined): string {
  return `${description}\n\n${text ?? `Skill ${uri}`}`;
}

/** What a call is held to, for clients and people that plan. */
function metaOf({ meta, price, timeoutMs, confirm, skill }: Tool): Readonly<Record<string, unknown>> | undefined {
  const { fixed, perSecond, perEgressMb, max } = price;
  const hasPrice = fixed > 0 || perSecond > 0 || perEgressMb > 0 || max !== undefined;
  const all = {
    ...(hasPrice && {
      "owlclaw/cost": {
        fixed,
        ...(perSecond > 0 && { perSecond }),
        ...(perEgressMb > 0 && { perEgressMb }),
        ...(max !== undefined && { max }),
      },
    }),
    ...(timeoutMs !== undefined && { "owlclaw/timeoutMs": timeoutMs }),
    ...(confirm !== undefined && { "owlclaw/confirm": confirm }),
    ...(skill !== undefined && { "owlclaw/skill": skill }),
    ...meta,
  };
  return Object.keys(all).length === 0 ? undefined : all;
}

/** Revisions before 2026-07-28 know structured results only as objects: others stand in a field `result`. */
function asObject(schema: JsonSchema): JsonSchema {
  if (schema["type"] === "object") return schema;
  const { $defs, ...result } = schema;
  return {
    type: "object",
    properties: { result },
    required: ["result"],
    ...($defs !== undefined && { $defs }),
  };
}
