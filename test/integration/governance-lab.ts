import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { SignJWT } from "jose";
import Database from "libsql";
import { afterAll } from "vitest";
import { type HttpServer, startHttp } from "./harness.ts";
import { type HttpAnswer, postJson } from "./http-client.ts";

export const SECRET = "governance-tests-have-a-long-secret";

const folder = mkdtempSync(path.join(tmpdir(), "owlclaw-governance-"));
let count = 0;

afterAll(() => rmSync(folder, { recursive: true, force: true }));

export function newFolder(): string {
  return mkdtempSync(path.join(folder, `${++count}-`));
}

export function writeFile(name: string, content: unknown): string {
  const file = path.join(folder, name);
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
  return file;
}

export interface GovernedOptions {
  readonly governance?: Readonly<Record<string, unknown>>;
  readonly handlers?: string;
  readonly hasAuth?: boolean;
  readonly root?: string;
}

/** A server of its own data folder, so that nobody else's calls count. */
export async function startGoverned(options: GovernedOptions = {}): Promise<HttpServer & { readonly root: string }> {
  const { governance = {}, handlers = "handlers", hasAuth = false, root = newFolder() } = options;
  const auth = hasAuth ? { auth: { enabled: true, jwt: { secret: SECRET } } } : {};
  const server = await startHttp({ handlers, config: { governance, sandbox: { root, enabled: false }, ...auth } });
  return Object.assign(server, { root });
}

/** Takes no row any more under a server that believes in its ledger, and admits calls; and takes them again. */
export async function withoutLedger<T>(root: string, ask: () => Promise<T>): Promise<T> {
  const change = (sql: string): void => {
    const file = new Database(path.join(root, "ledger.db"), { timeout: 5000 });
    file.exec(sql);
    file.close();
  };
  change("CREATE TRIGGER refused BEFORE INSERT ON ledger BEGIN SELECT RAISE(ABORT, 'no row is written'); END");
  try {
    return await ask();
  } finally {
    change("DROP TRIGGER refused");
  }
}

export interface TokenClaims {
  readonly groups?: readonly string[];
  readonly scope?: string;
}

export function token(subject: string, claims: TokenClaims = {}): Promise<string> {
  return new SignJWT({ ...claims })
    .setProtectedHeader({ alg: "HS256" })
    .setSubject(subject)
    .setIssuedAt()
    .setExpirationTime("1h")
    .sign(Buffer.from(SECRET));
}

let lastId = 0;

export interface As {
  readonly token?: string;
  readonly label?: string;
}

export function headersOf({ token: bearer, label }: As): Record<string, string> {
  return {
    ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
    ...(label !== undefined && { "x-mcp-client-id": label }),
  };
}

export function rpc(
  url: string,
  method: string,
  params: Record<string, unknown> = {},
  as: As = {},
): Promise<HttpAnswer> {
  return postJson(url, { jsonrpc: "2.0", id: ++lastId, method, params }, headersOf(as));
}

export function call(url: string, name: string, args: Record<string, unknown> = {}, as: As = {}): Promise<HttpAnswer> {
  return rpc(url, "tools/call", { name, arguments: args }, as);
}

export async function toolNames(url: string, as: As = {}): Promise<string[]> {
  const { body } = await rpc(url, "tools/list", {}, as);
  return body.result?.["tools"].map(({ name }: { readonly name: string }) => name);
}
