import { mintToken } from "../../src/auth/mint-token.ts";
import { dashboardAddresses } from "../../src/server/control-client.ts";
import { type Answer, send, type SendOptions } from "./http-client.ts";
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
