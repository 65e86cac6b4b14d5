import type { IncomingMessage, ServerResponse } from "node:http";
import type { Authenticator } from "../../auth/authenticator.ts";
import type { ApiRoute } from "../../operator/api.ts";
import type { PageFile, PageFiles } from "../../operator/page-files.ts";
import { ERROR_KINDS } from "../../errors/kinds.ts";
import { OwlError, toOwlError } from "../../errors/owl-error.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { DashboardApi, wrongMethod } from "./dashboard-api.ts";
import { type DashboardGuard, DASHBOARD_HEADERS, PAGE_POLICY, PERMISSIONS } from "./dashboard-guard.ts";
import { DashboardLogin, type DashboardLoginParts } from "./dashboard-login.ts";
import { sendJson } from "./exchange-io.ts";
import { retryHeader } from "./quota-headers.ts";
import type { RequestTarget } from "./request-target.ts";

export interface DashboardEndpointOptions extends DashboardLoginParts {
  readonly routes: readonly ApiRoute[];
  readonly pages: PageFiles;
  readonly guard: DashboardGuard;
  /** Absent when auth is off: then a one-time link opens the page. */
  readonly authenticator: Authenticator | undefined;
  readonly keepAliveMs: number;
  readonly logger: Logger;
}

const API = "/dashboard/api/";
const ASSET = /^\/dashboard\/(assets\/[\w.-]{1,128})$/;
/** Names of assets contain a digest of their content. */
const FOR_EVER = "public, max-age=31536000, immutable";

/** Serves everything below `/dashboard`. Its session cookie is valid only here, and bearer tokens are not. */
export class DashboardEndpoint {
  readonly #options: DashboardEndpointOptions;
  readonly #login: DashboardLogin;
  readonly #api: DashboardApi;

  constructor(options: DashboardEndpointOptions) {
    this.#options = options;
    this.#login = new DashboardLogin(options);
    this.#api = new DashboardApi({ ...options, login: this.#login });
  }

  async handle(request: IncomingMessage, response: ServerResponse, target: RequestTarget): Promise<void> {
    for (const [name, value] of Object.entries(DASHBOARD_HEADERS)) response.setHeader(name, value);
    try {
      this.#options.guard.check(request, target);
      await this.#serve(request, response, target);
    } catch (thrown) {
      this.#fail(request, response, thrown);
    }
  }

  async #serve(request: IncomingMessage, response: ServerResponse, target: RequestTarget): Promise<void> {
    const { guard } = this.#options;
    if (target.path.startsWith(API)) {
      guard.checkOrigin(request, target);
      return this.#api.serve({ request, response, name: target.path.slice(API.length), query: target.query });
    }
    if (request.method !== "GET" && request.method !== "HEAD") throw wrongMethod(request, response, "GET, HEAD");
    if (target.path === "/dashboard/open") return this.#login.open(request, response, target.query);
    const asset = ASSET.exec(target.path)?.[1];
    const isAsset = asset !== undefined || target.path.startsWith("/dashboard/assets");
    return this.#sendFile(request, response, isAsset ? (asset ?? "") : "index.html");
  }

  async #sendFile(request: IncomingMessage, response: ServerResponse, name: string): Promise<void> {
    const file = await this.#options.pages.get(name);
    if (file === undefined) throw new OwlError("route_not_found", "the dashboard has no such file");
    const isIndex = name === "index.html";
    response.setHeader("content-type", file.type);
    response.setHeader("cache-control", isIndex ? "no-cache" : FOR_EVER);
    response.setHeader("etag", file.etag);
    if (isIndex) {
      response.setHeader("content-security-policy", PAGE_POLICY);
      response.setHeader("permissions-policy", PERMISSIONS);
    }
    sendBytes(request, response, file);
  }

  #fail(request: IncomingMessage, response: ServerResponse, thrown: unknown): void {
    const error = toOwlError(thrown);
    const { kind, hint, facts } = error;
    const { logger } = this.#options;
    const [path = ""] = (request.url ?? "").slice(0, 128).split("?");
    if (kind === "internal") logger.error("dashboard request failed", { path, error: thrown });
    else {
      const client = this.#options.addresses.of(request);
      const refused = { path, kind, reason: error.message, method: request.method, client_address: client };
      logger.warning("dashboard request refused", refused);
    }
    if (response.headersSent) return void response.destroy();
    const message = kind === "internal" ? "the server could not do this; its log says why" : error.message;
    const headers = kind === "too_many_attempts" ? retryHeader(facts["retry_after"]) : {};
    // The unread rest of a refused body would be parsed as the next request.
    const closing = request.complete ? {} : { connection: "close" };
    const status = ERROR_KINDS[kind].httpStatus;
    sendJson(response, status, { error: { kind, message, hint } }, { ...headers, ...closing });
  }
}

function sendBytes({ method, headers }: IncomingMessage, response: ServerResponse, file: PageFile): void {
  response.setHeader("vary", "accept-encoding");
  if (headers["if-none-match"] === file.etag) return void response.writeHead(304).end();
  const isPacked = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/.test(headers["accept-encoding"]?.toString() ?? "");
  const bytes = isPacked ? file.gzip : file.bytes;
  response.writeHead(200, { "content-length": bytes.length, ...(isPacked && { "content-encoding": "gzip" }) });
  response.end(method === "HEAD" ? undefined : bytes);
}
