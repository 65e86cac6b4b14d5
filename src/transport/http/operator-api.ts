import * as z from "zod";
import { ADMIN_SCOPE, isOperator } from "../../auth/principal.ts";
import { requireScope } from "../../auth/protected-resource.ts";
import { OwlError } from "../../errors/owl-error.ts";
import type { Approval } from "../../governance/approval/approvals.ts";
import { type Quota, toQuota } from "../../governance/quota.ts";
import type { Asker } from "../../governance/subject.ts";
import type { LedgerStats } from "../../governance/ledger/query.ts";
import type { Mcp } from "../../mcp/mcp.ts";
import { type HttpExchange, sendJson } from "./exchange-io.ts";
import { readBody } from "./read-body.ts";
import type { RouteRequest } from "./route-table.ts";

/** Statistics and approvals of governance. */
export interface OperatorService {
  stats(filter: {
    readonly principal?: string;
    readonly fromMs?: number;
    readonly toMs?: number;
  }): Promise<LedgerStats>;
  approvals(): Promise<readonly Approval[]>;
  decide(decision: {
    readonly id: string;
    readonly decision: "approve" | "deny";
    readonly by: string;
    readonly reason: string;
  }): Promise<boolean>;
}

const MAX_BODY_BYTES = 10_000;
const decisionSchema = z.strictObject({
  decision: z.enum(["approve", "deny"]),
  reason: z.string().max(500).default(""),
});

/** `/api/stats` for every caller about its own calls, and `/api/approvals` for operators. */
export class OperatorApi {
  readonly #mcp: Mcp;
  readonly #service: OperatorService;

  constructor({ mcp, service }: { readonly mcp: Mcp; readonly service: OperatorService }) {
    this.#mcp = mcp;
    this.#service = service;
  }

  /** The caller's own statistics. `?client=` and the statistics of all clients require the operator's scope. */
  async stats({ response, principal, label }: HttpExchange, { query }: RouteRequest): Promise<void> {
    const params = new URLSearchParams(query);
    const client = params.get("client");
    const wanted = client ?? (isOperator(principal) && params.get("all") !== "false" ? undefined : principal.id);
    if (wanted !== principal.id) requireScope(principal, ADMIN_SCOPE);
    const range = { ...timeOf(params, "from", "fromMs"), ...timeOf(params, "to", "toMs") };
    const stats = await this.#service.stats({ ...(wanted !== undefined && { principal: wanted }), ...range });
    const isOwn = wanted === undefined || wanted === principal.id;
    const quota = await this.#quotaOf(isOwn ? { principal, label } : namedOnly(wanted));
    const paused = isOperator(principal) ? { paused: this.#mcp.pipeline.governance?.governor.pauses.list() ?? [] } : {};
    sendJson(response, 200, { ...stats, quota, ...paused }, { "cache-control": "no-store" });
  }

  async #quotaOf(asker: Asker): Promise<Quota & { readonly client: string }> {
    const used = (await this.#mcp.pipeline.governance?.governor.usage(asker)) ?? [];
    return { client: asker.principal.id, ...toQuota(used, Date.now()) };
  }

  async listApprovals(exchange: HttpExchange): Promise<void> {
    const approvals = (await this.#service.approvals()).map((approval) => ({
      ...approval,
      createdAtMs: undefined,
      expiresAtMs: undefined,
      created: new Date(approval.createdAtMs).toISOString(),
      expires: new Date(approval.expiresAtMs).toISOString(),
    }));
    sendJson(exchange.response, 200, { approvals }, { "cache-control": "no-store" });
  }

  async decide(exchange: HttpExchange, { parts: [id = ""] }: RouteRequest): Promise<void> {
    const { request, response, principal } = exchange;
    if (!(await this.#service.approvals()).some((each) => each.id === id)) throw noApproval();
    const { decision, reason } = readDecision(await readBody(request, MAX_BODY_BYTES));
    if (!(await this.#service.decide({ id, decision, reason, by: principal.id }))) throw noApproval();
    sendJson(response, 200, { id, decision });
  }
}

/** The groups and the label of another client are unknown, so limits that depend on them are not reported. */
function namedOnly(id: string): Asker {
  return { principal: { id, scopes: [], claims: {} }, label: undefined };
}

function readDecision(text: string): z.output<typeof decisionSchema> {
  try {
    return decisionSchema.parse(JSON.parse(text));
  } catch (cause) {
    throw new OwlError(
      "invalid_params",
      'the body must be {"decision": "approve"} or {"decision": "deny", "reason": "…"}',
      {
        cause,
      },
    );
  }
}

function timeOf(params: URLSearchParams, name: string, key: "fromMs" | "toMs"): { fromMs?: number; toMs?: number } {
  const text = params.get(name);
  if (text === null) return {};
  const ms = Date.parse(text);
  if (Number.isNaN(ms)) throw new OwlError("invalid_params", `${name} must be a time such as 2026-11-15T00:00:00Z`);
  return { [key]: ms };
}

function noApproval(): OwlError {
  return new OwlError("route_not_found", "no call waits under this id: it was decided, or its time is over");
}
