import type { IncomingMessage, ServerResponse } from "node:http";
import * as z from "zod";
import type { Authenticator } from "../../auth/authenticator.ts";
import { ADMIN_SCOPE, type Principal } from "../../auth/principal.ts";
import { requireScope } from "../../auth/protected-resource.ts";
import type { LoginFacts, SessionAnswer } from "../../operator/contract.ts";
import {
  isSameSecret,
  type OperatorSession,
  type OperatorSessions,
  type OneTimeLinks,
  type LoginLimiter,
} from "../../operator/operator-sessions.ts";
import { OwlError, toOwlError } from "../../errors/owl-error.ts";
import type { OperatorActs } from "../../call/operator-acts.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { endedCookie, sessionCookie, sessionKeyOf } from "./dashboard-guard.ts";
import { header, sendJson } from "./exchange-io.ts";
import type { ClientAddresses } from "./client-address.ts";
import { readBody } from "./read-body.ts";

export interface DashboardLoginParts {
  readonly sessions: OperatorSessions;
  readonly links: OneTimeLinks;
  readonly limiter: LoginLimiter;
  readonly authenticator: Authenticator | undefined;
  readonly addresses: ClientAddresses;
  readonly isTls: boolean;
  readonly logger: Logger;
  /** Records logins and logouts. */
  readonly acts: OperatorActs | undefined;
}

/** The operator when auth is off. No client can have this id. */
export const LINK_OPERATOR = "dashboard";

const MAX_LOGIN_BYTES = 16_384;
const CSRF_HEADER = "x-owlclaw-csrf";
const IDLE_HEADER = "x-owlclaw-idle";
const loginSchema = z.strictObject({ token: z.string().min(1).max(8192) });

/** Login by token, by one-time link, and logout. */
export class DashboardLogin {
  readonly #parts: DashboardLoginParts;

  constructor(parts: DashboardLoginParts) {
    this.#parts = parts;
  }

  /** `GET login`. Succeeds without a session too. */
  facts(request: IncomingMessage): LoginFacts {
    const session = this.#find(request);
    return { ...this.#way(), session: session === undefined ? null : answerOf(session) };
  }

  #way(): Pick<LoginFacts, "by" | "hint"> {
    return this.#parts.authenticator === undefined
      ? {
          by: "link",
          hint: "Run `owlclaw mcp-server dashboard` on the server's machine: it prints a link that works once.",
        }
      : { by: "token", hint: `Paste a token with the scope ${ADMIN_SCOPE}.` };
  }

  /** `POST login`. Always opens a new session, and ends an existing one. */
  async login(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { authenticator, limiter, sessions, logger } = this.#parts;
    if (authenticator === undefined)
      throw new OwlError("forbidden", "auth is off: no token opens the dashboard", { hint: this.#way().hint });
    const peer = this.#parts.addresses.of(request);
    limiter.check(peer);
    const { token } = readLogin(await readBody(request, MAX_LOGIN_BYTES));
    try {
      const principal = await authenticator.authenticate(`Bearer ${token}`);
      this.#assertOperator(principal);
      limiter.succeeded(peer);
      this.#endOld(request);
      const untilMs = principal.expiresAt === undefined ? undefined : principal.expiresAt * 1000;
      const { key, session } = sessions.open(principal, untilMs);
      logger.info("an operator opened the dashboard", { principal: principal.id, by: "token" });
      this.#note("operator.login", principal.id, { by: "token" });
      response.setHeader("set-cookie", sessionCookie(key, this.#isSecure(request)));
      sendJson(response, 200, answerOf(session));
    } catch (error) {
      limiter.failed(peer);
      throw error;
    }
  }

  #assertOperator(principal: Principal): void {
    try {
      requireScope(principal, ADMIN_SCOPE);
    } catch (error) {
      this.#note("operator.login", principal.id, { by: "token" }, toOwlError(error));
      throw error;
    }
  }

  /**
   * `GET /dashboard/open?key=`. It has no rate limit: the key cannot be guessed, and with a limit any page could lock
   * out its visitor by failing here.
   */
  open(request: IncomingMessage, response: ServerResponse, query: string): void {
    const { links, sessions, authenticator, logger } = this.#parts;
    const purpose = `${header(request, "sec-purpose") ?? ""}${header(request, "purpose") ?? ""}`;
    // Prefetch and prerender requests must not consume the key.
    const isMeant = request.method === "GET" && !/prefetch|prerender/.test(purpose);
    const key = new URLSearchParams(query).get("key") ?? "";
    if (!isMeant || authenticator !== undefined || !links.take(key)) {
      throw new OwlError("forbidden", "this link has been used, or its ten minutes are over", {
        hint: this.#way().hint,
      });
    }
    this.#endOld(request);
    const opened = sessions.open({ id: LINK_OPERATOR, scopes: [ADMIN_SCOPE], claims: {} });
    logger.info("an operator opened the dashboard", { principal: LINK_OPERATOR, by: "link" });
    this.#note("operator.login", LINK_OPERATOR, { by: "link" });
    response.setHeader("set-cookie", sessionCookie(opened.key, this.#isSecure(request)));
    response.writeHead(303, { location: "/dashboard", "content-length": 0 }).end();
  }

  logout(request: IncomingMessage, response: ServerResponse): void {
    const session = this.#find(request);
    if (session !== undefined) this.#note("operator.logout", session.operator.id, {});
    this.#endOld(request);
    response.setHeader("set-cookie", endedCookie(this.#isSecure(request)));
    sendJson(response, 200, {});
  }

  /** Does not wait for the ledger: operators must be able to log in when the ledger cannot be written. */
  #note(name: string, by: string, args: Readonly<Record<string, unknown>>, refusal?: OwlError): void {
    this.#parts.acts?.note({ by, transport: "http", name, args, ...(refusal !== undefined && { refusal }) });
  }

  session(session: OperatorSession, response: ServerResponse): void {
    sendJson(response, 200, answerOf(session));
  }

  /**
   * Authenticates by the cookie only. Requests that change something need the CSRF header too.
   * @throws OwlError
   */
  sessionOf(request: IncomingMessage): OperatorSession {
    const session = this.#find(request);
    if (session === undefined)
      throw new OwlError("unauthorized", "there is no session, or it has ended", { hint: this.#way().hint });
    const isRead = request.method === "GET" || request.method === "HEAD";
    if (isRead || isSameSecret(header(request, CSRF_HEADER) ?? "", session.csrf)) return session;
    throw new OwlError("forbidden", `the request does not carry the session's ${CSRF_HEADER}`, {
      facts: { reason: "csrf" },
      hint: "load the page again",
    });
  }

  #find(request: IncomingMessage): OperatorSession | undefined {
    const key = sessionKeyOf(header(request, "cookie"));
    return key === undefined ? undefined : this.#parts.sessions.find(key, { isUse: isUse(request) });
  }

  #endOld(request: IncomingMessage): void {
    const key = sessionKeyOf(header(request, "cookie"));
    if (key !== undefined) this.#parts.sessions.end(key);
  }

  /** Behind a proxy that terminates TLS, the scheme of the page's origin decides. */
  #isSecure({ headers: { origin } }: IncomingMessage): boolean {
    return this.#parts.isTls || origin?.startsWith("https://") === true;
  }
}

/** Whether the request counts as use of the session. Automatic updates and event streams of an idle page do not. */
function isUse(request: IncomingMessage): boolean {
  return header(request, IDLE_HEADER) === undefined && !/\btext\/event-stream\b/.test(header(request, "accept") ?? "");
}

function answerOf({ operator, csrf, expiresAtMs }: OperatorSession): SessionAnswer {
  return { operator: operator.id, csrf, expiresAt: new Date(expiresAtMs).toISOString() };
}

function readLogin(text: string): z.output<typeof loginSchema> {
  try {
    return loginSchema.parse(JSON.parse(text));
  } catch {
    // The cause is omitted, because it could contain the token.
    throw new OwlError("invalid_params", 'the body must be {"token": "…"}');
  }
}
