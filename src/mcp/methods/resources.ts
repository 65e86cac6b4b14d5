import * as z from "zod";
import type { ReadOptions } from "../../capability/context.ts";
import type { ResourceDefinition } from "../../capability/define.ts";
import { META } from "../../capability/content.ts";
import type { Resource } from "../../capability/registry.ts";
import { OwlError } from "../../errors/owl-error.ts";
import type { Exchange } from "../exchange.ts";
import type { Mcp } from "../mcp.ts";
import { paginate } from "../paginate.ts";
import { quotaMeta } from "../request-envelope.ts";
import { isModern } from "../versions.ts";
import { runWithQuestions } from "./run-with-questions.ts";
import { skillFilter } from "../../capability/skill.ts";

const PAGE_SIZE = 50;

export interface ListParams {
  readonly cursor?: string | undefined;
  readonly _meta?: Readonly<Record<string, unknown>> | undefined;
}

export async function listResources(
  mcp: Mcp,
  { cursor, _meta }: ListParams,
  exchange: Exchange,
): Promise<Record<string, unknown>> {
  const { caller } = exchange;
  const filter = _meta?.[META.filter];
  const visible = mcp.pipeline.visibleResources(caller);
  const { items, nextCursor } = paginate(filter === undefined ? visible : visible.filter(resourceFilter(filter)), {
    list: "resources",
    size: PAGE_SIZE,
    cursor,
    keyOf,
  });
  const modern = isModern(caller.protocolVersion);
  const resources = items.map(({ definition }) => ({ uri: listedUri(definition, modern), ...detailsOf(definition) }));
  await mcp.pipeline.recordList("resources/list", exchange, resources.length);
  return { resources, ...(nextCursor !== undefined && { nextCursor }) };
}

/** Clients that support the skills extension find a skill by its SKILL.md, all others by its name. */
function listedUri({ uri, skill }: ResourceDefinition, modern: boolean): string {
  return modern && skill !== undefined ? skill.manifestUri : uri;
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
  const resourceTemplates = items.map(({ definition }) => ({ uriTemplate: definition.uri, ...detailsOf(definition) }));
  await mcp.pipeline.recordList("resources/templates/list", exchange, resourceTemplates.length);
  return { resourceTemplates, ...(nextCursor !== undefined && { nextCursor }) };
}

export interface ReadParams {
  readonly uri: string;
  readonly _meta?: Readonly<Record<string, unknown>> | undefined;
}

export async function readResource(
  mcp: Mcp,
  { uri, _meta }: ReadParams,
  exchange: Exchange,
): Promise<Record<string, unknown>> {
  const options = readOptionsOf(_meta?.[META.read]);
  return runWithQuestions(mcp, exchange, {
    boundTo: ["resources/read", uri],
    run: async (call) => {
      const { value, quota } = await mcp.pipeline.readResource(
        uri,
        options === undefined ? call : { ...call, readOptions: options },
      );
      return { contents: value, ...quotaMeta(quota) };
    },
  });
}

const WISH = z.strictObject({
  range: z
    .string()
    .max(64)
    .regex(/^bytes=\d*-\d*$/)
    .optional(),
  ifNoneMatch: z.string().max(1024).optional(),
});

function readOptionsOf(value: unknown): ReadOptions | undefined {
  if (value === undefined) return undefined;
  const { success, data } = WISH.safeParse(value);
  if (!success) {
    throw new OwlError("invalid_params", `_meta["${META.read}"] must be an object with range or ifNoneMatch`, {
      hint: 'write {"range": "bytes=0-99"}, or {"ifNoneMatch": "sha256:…"} with the digest of what you have',
    });
  }
  const { range, ifNoneMatch } = data;
  return { ...(range !== undefined && { range }), ...(ifNoneMatch !== undefined && { ifNoneMatch }) };
}

function keyOf({ definition }: Resource): string {
  return definition.uri;
}

const rendered = new WeakMap<ResourceDefinition, Readonly<Record<string, unknown>>>();

function detailsOf(definition: ResourceDefinition): Readonly<Record<string, unknown>> {
  let entry = rendered.get(definition);
  if (entry === undefined) {
    entry = details(definition);
    rendered.set(definition, entry);
  }
  return entry;
}

function details({
  name,
  title,
  description,
  mimeType,
  size,
  annotations,
  icons,
  _meta,
}: ResourceDefinition): Record<string, unknown> {
  return {
    name,
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    ...(mimeType !== undefined && { mimeType }),
    ...(size !== undefined && { size }),
    ...(annotations !== undefined && { annotations }),
    ...(icons !== undefined && { icons }),
    ...(_meta !== undefined && { _meta }),
  };
}

const FILTER = z.strictObject({
  category: z.string().max(1000).optional(),
  tag: z.union([z.string(), z.array(z.string()).max(20)]).optional(),
  uri: z.string().max(4096).optional(),
});

/** The filter in `_meta` of `resources/list`, which selects some of the skills. Other resources do not match it. */
export function resourceFilter(value: unknown): (resource: Resource) => boolean {
  const { success, data } = FILTER.safeParse(value);
  if (!success) {
    throw new OwlError("invalid_params", `_meta["${META.filter}"] must be an object with category, tag or uri`, {
      hint: 'write {"category": "ecommerce"}, {"tag": ["refund"]} or {"uri": "skill://ecommerce/*"}',
    });
  }
  const { category, tag, uri } = data;
  const isMeant = skillFilter({ category, uri, tags: typeof tag === "string" ? [tag] : tag });
  return ({ definition: { skill } }) => skill !== undefined && isMeant(skill);
}
