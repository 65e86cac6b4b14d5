import * as z from "zod";
import type { Registry } from "../capability/registry.ts";
import { explain, type Explanation, type SupposedCall } from "../governance/explain.ts";
import type { Pause } from "../governance/pauses.ts";
import type { Policy } from "../governance/policy/policy.ts";
import type { Reload } from "../governance/policy/policy-source.ts";
import type { Subject } from "../governance/subject.ts";
import type { LedgerStats } from "../governance/ledger/query.ts";
import type { LedgerReader } from "../governance/ledger/store.ts";
import type { ApiRoute } from "./api.ts";
import type { ClientFacts, ClientPolicy, ExplainAnswer, ReloadState, ToolPolicy } from "./contract-policy.ts";
import { bodyAs } from "./request-body.ts";
import { OwlError } from "../errors/owl-error.ts";

const MAX_CHARS = 256;
const MAX_GROUPS = 100;

/** The caller of a policy query. Rules may read the claims of a token and the label of a client too. */
export const callerSchema = z.strictObject({
  client: z.string().max(MAX_CHARS),
  groups: z.array(z.string().min(1).max(MAX_CHARS)).max(MAX_GROUPS).default([]),
  claims: z.record(z.string(), z.unknown()).default({}),
  label: z.string().min(1).max(MAX_CHARS).optional(),
});

export interface PolicySources {
  readonly policy: () => Policy;
  readonly registry: Registry;
  /** Maps the name of a tool, a URI or `prompt:NAME` to the subject of policy rules. */
  readonly named: {
    subject(name: string): Subject;
    call(name: string, args: unknown): Promise<SupposedCall>;
  };
  readonly reader: Pick<LedgerReader, "stats">;
  /** The owners of sandboxes that are alive. */
  readonly owners: () => readonly string[];
  readonly pauses: () => readonly Pause[];
  /** The results of the last reloads of the configuration and the policy. */
  readonly reloads: () => readonly Reload[];
}

const MAX_ARGUMENT_CHARS = 256;
const FRESH_MS = 10_000;
/**
 * Only calls of the last weeks are counted. A client without calls in this time is listed only if the policy names it,
 * it owns a sandbox, or it is paused.
 */
const USUAL_MS = 35 * 86_400_000;
const explainSchema = callerSchema.extend({
  tool: z.string().min(1).max(MAX_ARGUMENT_CHARS),
  args: z.unknown().default({}),
});

/** `clients`, `policy` and `reload`: the known clients, and what each of them may do. */
export function policyRoutes(sources: PolicySources): readonly ApiRoute[] {
  const counts = new ClientCounts(sources.reader);
  return [
    { method: "GET", path: "clients", answer: async () => ({ clients: clientsOf(sources, await counts.get()) }) },
    {
      method: "GET",
      path: "policy",
      answer: ({ query }) => ({ ...policyOf(sources, callerOf(query)) }),
    },
    {
      method: "POST",
      path: "policy/explain",
      answer: async ({ body }) => {
        const { tool, label, args, ...caller } = bodyAs(explainSchema, body);
        const { named, policy } = sources;
        return { ...toAnswer(explain(policy(), { ...caller, label, ...(await named.call(tool, args)) })) };
      },
    },
    { method: "GET", path: "reload", answer: () => ({ ...reloadOf(sources.reloads()) }) },
  ];
}

type Counts = ReadonlyMap<string, LedgerStats["clients"][number]>;

/** Counting a long ledger takes seconds, so counts are cached for `FRESH_MS`. */
class ClientCounts {
  readonly #reader: PolicySources["reader"];
  #counted: { readonly atMs: number; readonly counts: Promise<Counts> } | undefined;

  constructor(reader: PolicySources["reader"]) {
    this.#reader = reader;
  }

  get(): Promise<Counts> {
    const atMs = performance.now();
    if (this.#counted === undefined || atMs - this.#counted.atMs > FRESH_MS) {
      const counts = this.#reader.stats({ fromMs: Date.now() - USUAL_MS });
      this.#counted = {
        atMs,
        counts: counts.then(({ clients }) => new Map(clients.map((each) => [each.client, each]))),
      };
      // After a failure the next request counts again.
      this.#counted.counts.catch(() => (this.#counted = undefined));
    }
    return this.#counted.counts;
  }
}

/** The clients that the policy names in full, without wildcards. */
export function namedClients({ config }: Policy): readonly string[] {
  return Object.keys(config.clients).filter((name) => !/[*?]/.test(name));
}

function clientsOf({ policy, owners, pauses }: PolicySources, counts: Counts): ClientFacts[] {
  const paused = new Set(pauses().map(({ client }) => client));
  const names = new Set([...counts.keys(), ...namedClients(policy()), ...owners(), ...paused]);
  names.delete("*");
  return [...names].sort().map((client) => {
    const { calls = 0, refused = 0, costMicros = 0 } = counts.get(client) ?? {};
    return { client, calls, refused, costMicros, paused: paused.has(client) || paused.has("*") };
  });
}

function policyOf({ policy, registry, named }: PolicySources, caller: SupposedCaller): ClientPolicy {
  const current = policy();
  const tools = registry.tools().map(({ name }): ToolPolicy => {
    const { decision, rule, reason, visible, lookedAt } = explain(current, {
      ...caller,
      subject: named.subject(name),
      args: {},
    });
    const depends = lookedAt.includes("args") ? "depends" : decision;
    return { tool: name, visible, decision: depends, rule, ...(reason !== undefined && { reason }) };
  });
  return { client: caller.client, revision: current.revision, tools };
}

function toAnswer({ reason, mistake, confirm, ...explanation }: Explanation): ExplainAnswer {
  return {
    ...explanation,
    ...(reason !== undefined && { reason }),
    ...(mistake !== undefined && { mistake }),
    ...(confirm !== undefined && { confirm }),
  };
}

function reloadOf(reloads: readonly Reload[]): ReloadState {
  const atMs = Math.max(0, ...reloads.map((each) => each.atMs));
  const problems = [...new Set(reloads.flatMap((each) => each.problems))];
  return { ...(atMs > 0 && { at: new Date(atMs).toISOString() }), ok: problems.length === 0, problems };
}

const MAX_CLAIMS_CHARS = 4096;

export interface SupposedCaller {
  readonly client: string;
  readonly groups: readonly string[];
  readonly claims: Readonly<Record<string, unknown>>;
  readonly label: string | undefined;
}

/**
 * The same from a query: groups separated by commas, claims as JSON.
 * @throws OwlError with the reason.
 */
export function callerOf(query: URLSearchParams): SupposedCaller {
  const { label, ...caller } = bodyAs(callerSchema, {
    client: (query.get("client") ?? "").slice(0, MAX_CHARS),
    groups: (query.get("groups") ?? "")
      .split(",")
      .map((group) => group.trim())
      .filter((group) => group !== ""),
    claims: claimsOf(query.get("claims") ?? ""),
    ...(query.get("label") ? { label: query.get("label") } : {}),
  });
  return { ...caller, label };
}

function claimsOf(text: string): unknown {
  try {
    return JSON.parse(text === "" ? "{}" : text.slice(0, MAX_CLAIMS_CHARS));
  } catch (error) {
    throw new OwlError("invalid_params", 'claims must be JSON such as {"level": 3}', { cause: error });
  }
}
