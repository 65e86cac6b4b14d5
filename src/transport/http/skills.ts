import { type ResourceContents, type ContentFacts, META } from "../../capability/content.ts";
import type { ReadOptions } from "../../capability/context.ts";
import { isOwlError, type OwlError } from "../../errors/owl-error.ts";
import { quotaHeaders } from "../../governance/quota.ts";
import type { Call } from "../../call/call.ts";
import { silentConversation } from "../../mcp/conversations/silent.ts";
import type { Mcp } from "../../mcp/mcp.ts";
import { PLAIN_VERSION } from "../../mcp/versions.ts";
import { refusalHeaders } from "./quota-headers.ts";
import { header, type HttpExchange, lifeOf, sendError } from "./exchange-io.ts";
import type { RouteRequest } from "./route-table.ts";

/** A browser must not render any file of a skill as a page of this server. */
const HEADERS = {
  "content-security-policy": "sandbox",
  "x-content-type-options": "nosniff",
  // The response may be cached and must be revalidated. The entity tag makes that cheap.
  "cache-control": "private, no-cache",
  "accept-ranges": "bytes",
} as const;

/** `GET /skills/{category}/{name}[/file]`: a skill, or a file of it, for clients without MCP. */
export class SkillsEndpoint {
  readonly #mcp: Mcp;

  constructor(mcp: Mcp) {
    this.#mcp = mcp;
  }

  send(exchange: HttpExchange, request: RouteRequest): Promise<void> {
    return sendSkill(this.#mcp, exchange, request);
  }
}

async function sendSkill(mcp: Mcp, exchange: HttpExchange, { parts }: RouteRequest): Promise<void> {
  const { response, traceId } = exchange;
  const [path = ""] = parts;
  try {
    const { value, quota } = await mcp.pipeline.readResource(`skill://${path}`, callOf(mcp, exchange));
    const [content] = value;
    for (const [name, text] of Object.entries(quotaHeaders(quota ?? {}))) response.setHeader(name, text);
    if (content === undefined) throw new Error("a skill was read and had no content");
    sendContent(exchange, content);
  } catch (thrown) {
    if (!isOwlError(thrown) || thrown.kind === "internal") throw thrown;
    if (isRangeError(thrown)) response.setHeader("content-range", `bytes */${String(thrown.facts["size"])}`);
    const headers = thrown.kind === "governance_denied" ? refusalHeaders(thrown.facts) : {};
    sendError(response, thrown, { traceId, withStack: mcp.withStack, headers, ...statusOf(thrown) });
  }
}

/** The call goes through the same pipeline as MCP reads, so the same policy applies. */
function callOf(mcp: Mcp, { request, response, principal, label, traceId }: HttpExchange): Call {
  const caller = { principal, label, transport: "http", protocolVersion: PLAIN_VERSION, sessionId: undefined } as const;
  const range = request.method === "HEAD" ? undefined : header(request, "range");
  const [ifNoneMatch, ifRange] = [header(request, "if-none-match"), header(request, "if-range")];
  const readOptions: ReadOptions = {
    ...(range !== undefined && { range }),
    ...(ifNoneMatch !== undefined && { ifNoneMatch }),
    ...(ifRange !== undefined && { ifRange }),
  };
  return { caller, traceId, life: lifeOf(response), conversation: silentConversation(mcp.changes), readOptions };
}

function sendContent({ request, response }: HttpExchange, content: ResourceContents): void {
  const facts = factsOf(content);
  const headers = {
    ...HEADERS,
    ...(facts !== undefined && {
      etag: `"${facts.digest}"`,
      "last-modified": new Date(facts.lastModified).toUTCString(),
    }),
  };
  if (facts?.notModified === true) {
    response.writeHead(304, headers);
    response.end();
    return;
  }
  const body = "text" in content ? Buffer.from(content.text) : Buffer.from(content.blob, "base64");
  const { range, size = body.length } = facts ?? {};
  response.writeHead(range === undefined ? 200 : 206, {
    ...headers,
    "content-type": contentType(content),
    "content-length": body.length,
    ...(range !== undefined && { "content-range": `bytes ${range.start}-${range.end - 1}/${size}` }),
  });
  response.end(request.method === "HEAD" ? undefined : body);
}

function contentType({ mimeType = "application/octet-stream" }: ResourceContents): string {
  return mimeType.startsWith("text/") ? `${mimeType}; charset=utf-8` : mimeType;
}

function factsOf({ _meta }: ResourceContents): ContentFacts | undefined {
  const facts = _meta?.[META.content];
  return isContentFacts(facts) ? facts : undefined;
}

/** Only skills set these facts, and their code creates them, so checking one field is enough. */
function isContentFacts(value: unknown): value is ContentFacts {
  return typeof value === "object" && value !== null && "digest" in value;
}

function statusOf(error: OwlError): { readonly status?: number } {
  if (isRangeError(error)) return { status: 416 };
  return error.kind === "governance_denied" && error.facts["retry_after"] !== undefined ? { status: 429 } : {};
}

function isRangeError({ kind, facts }: OwlError): boolean {
  return kind === "invalid_params" && facts["reason"] === "range";
}
