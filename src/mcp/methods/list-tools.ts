import type { Tool } from "../../capability/registry.ts";
import type { JsonSchema } from "../../capability/schema.ts";
import type { Caller } from "../../call/call.ts";
import type { Exchange } from "../exchange.ts";
import type { Mcp } from "../mcp.ts";
import { paginate } from "../paginate.ts";
import { isModern } from "../versions.ts";
import { type Terms, fromMicros } from "../../governance/policy/terms.ts";

const PAGE_SIZE = 100;

/** Enough for every page of a list with some thousand tools. Invented cursors cannot fill the memory. */
const MAX_CACHED_PAGES = 64;

type Constraints = Readonly<Record<string, unknown>>;

interface Page extends Record<string, unknown> {
  readonly tools: readonly Readonly<Record<string, unknown>>[];
  readonly nextCursor?: string;
}

interface Rendered {
  readonly skillsVersion: number;
  readonly pages: Map<string, Page>;
}

/** Keyed by the list: the pipeline returns the same list until something changes. */
const rendered = new WeakMap<readonly Tool[], Rendered>();

export async function listTools(
  mcp: Mcp,
  cursor: string | undefined,
  exchange: Exchange,
): Promise<Record<string, unknown>> {
  const page = listPage(mcp, cursor, exchange.caller);
  await mcp.pipeline.recordList("tools/list", exchange, page.tools.length);
  return page;
}

/** The tools of every page of the list, as this caller would get them. */
export function allTools(mcp: Mcp, caller: Caller): readonly Readonly<Record<string, unknown>>[] {
  const all: Readonly<Record<string, unknown>>[] = [];
  let cursor: string | undefined;
  do {
    const page = listPage(mcp, cursor, caller);
    all.push(...page.tools);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return all;
}

/** A rendered page, made once for all callers that see the same tools. */
function listPage(mcp: Mcp, cursor: string | undefined, caller: Caller): Page {
  const tools = mcp.pipeline.visibleTools(caller);
  const isNew = isModern(caller.protocolVersion);
  const { pages } = cacheOf(tools, mcp.pipeline.skillTexts?.version ?? 0);
  const key = JSON.stringify([isNew, cursor]);
  let page = pages.get(key);
  if (page === undefined) {
    page = renderPage(mcp, tools, { cursor, isNew, caller });
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
  { cursor, isNew, caller }: { readonly cursor: string | undefined; readonly isNew: boolean; readonly caller: Caller },
): Page {
  const page = paginate(tools, { list: "tools", size: PAGE_SIZE, cursor, keyOf: ({ name }) => name });
  const { nextCursor } = page;
  const entries = page.items.map((item) => {
    const tool = withoutHiddenSkill(mcp, item, caller);
    return describeTool(tool, {
      isNew,
      skillText: tool.skill === undefined ? undefined : mcp.pipeline.skillTexts?.of(tool.skill),
      constraints: constraintsFor(mcp, item, caller),
    });
  });
  return { tools: entries, ...(nextCursor !== undefined && { nextCursor }) };
}

/**
 * A caller that may use a tool may not be allowed to see its skill: then the tool is shown without the name, summary
 * and text of the skill.
 */
function withoutHiddenSkill({ pipeline }: Mcp, tool: Tool, caller: Caller): Tool {
  if (tool.skill === undefined || pipeline.view.sees(tool.skill, caller)) return tool;
  return { ...tool, skill: undefined };
}

export interface DescribeToolOptions {
  /** Whether the client's revision supports results that are not objects. */
  readonly isNew?: boolean;
  /** The text of the tool's skill, for its description. */
  readonly skillText?: string | undefined;
  readonly constraints?: Constraints;
}

export function describeTool(
  tool: Tool,
  { isNew = true, skillText, constraints = {} }: DescribeToolOptions = {},
): Readonly<Record<string, unknown>> {
  const { name, title, description, input, output, effect, icons } = tool;
  const meta = metaOf(tool, constraints);
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

function metaOf({ meta, skill }: Tool, constraints: Constraints): Readonly<Record<string, unknown>> | undefined {
  const all = {
    ...(Object.keys(constraints).length > 0 && { [CONSTRAINTS_META_KEY]: constraints }),
    ...(skill !== undefined && { "owlclaw/skill": skill }),
    ...meta,
  };
  return Object.keys(all).length === 0 ? undefined : all;
}

/**
 * The constraints on a call, for clients and people that plan: those of the tool's author, overridden by those of the
 * policy.
 */
function constraintsFor({ pipeline }: Mcp, tool: Tool, caller: Caller): Constraints {
  const terms = pipeline.view.termsOf(tool, caller);
  return { ...authorsConstraints(tool), ...(terms !== undefined && constraintsOf(terms)) };
}

function authorsConstraints({ price, timeoutMs, confirm }: Tool): Constraints {
  const { fixed, perSecond, perEgressMb, max } = price;
  const isFree = fixed === 0 && perSecond === 0 && perEgressMb === 0 && max === undefined;
  const cost = {
    fixed,
    per_second: perSecond,
    per_egress_mb: perEgressMb,
    ...(max !== undefined && { reserved: max }),
  };
  return {
    ...(!isFree && { cost }),
    ...(timeoutMs !== undefined && { timeout_ms: timeoutMs }),
    ...(confirm !== undefined && { confirm }),
  };
}

/** Revisions before 2026-07-28 support only objects as structured results: other results are in a field `result`. */
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

const CONSTRAINTS_META_KEY = "owlclaw/constraints";

/** The constraints of the policy on every call of a tool, for clients that plan ahead. Empty without any. */
export function constraintsOf({ counters, price, reserveMicros, maxCost, confirm }: Terms): Record<string, unknown> {
  const lowest = (pick: (counter: Terms["counters"][number]) => number | undefined): number | undefined => {
    const limits = counters.map(pick).filter((limit) => limit !== undefined);
    return limits.length === 0 ? undefined : Math.min(...limits);
  };
  const budget = lowest((counter) => counter.budget?.limit);
  const { fixed, perSecond, perEgressMb, max = 0 } = price;
  const isFree = fixed === 0 && perSecond === 0 && perEgressMb === 0 && max === 0;
  return withoutUndefined({
    calls_per_minute: lowest(({ perMinute }) => perMinute?.limit),
    calls_per_day: lowest(({ perDay }) => perDay?.limit),
    concurrency: lowest(({ concurrency }) => concurrency?.limit),
    monthly_budget: budget === undefined ? undefined : fromMicros(budget),
    max_cost_per_call: maxCost === undefined ? undefined : fromMicros(maxCost.limit),
    cost: isFree
      ? undefined
      : { fixed, per_second: perSecond, per_egress_mb: perEgressMb, reserved: fromMicros(reserveMicros) },
    confirm: confirm?.by,
  });
}

function withoutUndefined(record: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined));
}
