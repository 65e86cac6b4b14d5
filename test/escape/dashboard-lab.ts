import type { IncomingMessage } from "node:http";
import { mintToken } from "../../src/auth/mint-token.ts";
import { dashboardAddresses } from "../../src/operator/control-client.ts";
import { type Answer, openResponse, send, type SendOptions } from "./http-client.ts";
import type { ServerProcess } from "./server.ts";

export const SECRET = "a secret that is long enough for tests";
export const ADMIN = "owlclaw:admin";
export const AUTH = { auth: { enabled: true, jwt: { secret: SECRET } } } as const;

export function token(subject: string, scopes: readonly string[] = []): Promise<string> {
  return mintToken({ secret: SECRET, subject, scopes, expiresInSeconds: 600 });
}

/** What a browser sends from the page itself. */
export function fromPage(origin: string): Record<string, string> {
  return { origin, "sec-fetch-site": "same-origin", "content-type": "application/json" };
}

export function cookieOf({ headers }: Answer): string {
  const [cookie = ""] = headers["set-cookie"] ?? [];
  return cookie.split(";")[0] ?? "";
}

export function login(origin: string, text: string, headers: Record<string, string> = {}): Promise<Answer> {
  const body = JSON.stringify({ token: text });
  return send(`${origin}/dashboard/api/login`, {
    method: "POST",
    body,
    headers: { ...fromPage(origin), ...headers },
  });
}

/** A link of the server, as `owlclaw mcp-server dashboard` gets it. */
export async function newLink({ folder }: Pick<ServerProcess, "folder">): Promise<string> {
  const [address] = await dashboardAddresses(`${folder}/data`);
  if (address?.link === undefined) throw new Error("the server gave no link");
  return address.link;
}

/** An operator at the page. */
export class PageOperator {
  readonly origin: string;
  readonly cookie: string;
  readonly csrf: string;

  constructor(origin: string, cookie: string, csrf: string) {
    this.origin = origin;
    this.cookie = cookie;
    this.csrf = csrf;
  }

  static async byToken(origin: string, subject = "root"): Promise<PageOperator> {
    const answer = await login(origin, await token(subject, [ADMIN]));
    return new PageOperator(origin, cookieOf(answer), answer.json.csrf);
  }

  static async byLink(link: string): Promise<PageOperator> {
    const { origin } = new URL(link);
    const cookie = cookieOf(await send(link));
    const { json } = await send(`${origin}/dashboard/api/session`, { headers: { cookie } });
    return new PageOperator(origin, cookie, json.csrf);
  }

  get headers(): Record<string, string> {
    return { ...fromPage(this.origin), cookie: this.cookie, "x-owlclaw-csrf": this.csrf };
  }

  get(name: string): Promise<Answer> {
    return this.send(name, {});
  }

  post(name: string, body: unknown = {}): Promise<Answer> {
    return this.send(name, { method: "POST", body: JSON.stringify(body) });
  }

  send(name: string, { headers, ...options }: SendOptions): Promise<Answer> {
    const url = `${this.origin}/dashboard/api/${name}`;
    return send(url, { ...options, headers: { ...this.headers, ...headers } });
  }
}

export interface PageEvent {
  readonly event: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into events of every shape
  readonly data: any;
}

/** A stream of the page, with all that has come. */
export class PageStream {
  readonly events: PageEvent[] = [];
  readonly response: IncomingMessage;
  readonly #waiting = new Set<() => void>();
  #rest = "";

  constructor(response: IncomingMessage) {
    this.response = response;
    response.setEncoding("utf8").on("data", (chunk: string) => this.#take(chunk));
    // Whoever waits for the end of a cut stream hears of it by `close`.
    response.on("error", () => undefined).on("close", () => this.#wake());
  }

  static async open(operator: PageOperator, name: string): Promise<PageStream> {
    const { "content-type": _, ...headers } = operator.headers;
    const url = `${operator.origin}/dashboard/api/${name}`;
    return new PageStream(await openResponse(url, { headers: { ...headers, accept: "text/event-stream" } }));
  }

  /** The first event that fits, past or future. */
  async find(fits: (event: PageEvent) => boolean): Promise<PageEvent> {
    for (;;) {
      const found = this.events.find(fits);
      if (found !== undefined) return found;
      if (this.response.closed) throw new Error(`the stream ended after ${JSON.stringify(this.events)}`);
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
  }

  async ended(): Promise<void> {
    while (!this.response.closed) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  close(): void {
    this.response.destroy();
  }

  #take(chunk: string): void {
    const parts = (this.#rest + chunk).split("\n\n");
    this.#rest = parts.pop() ?? "";
    for (const part of parts) {
      const event = /^event: (.*)$/m.exec(part)?.[1];
      const data = /^data: (.*)$/m.exec(part)?.[1];
      if (event !== undefined && data !== undefined) this.events.push({ event, data: JSON.parse(data) });
    }
    this.#wake();
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }
}
