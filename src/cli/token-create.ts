import { SignJWT } from "jose";
import { loadConfig } from "../config/load.ts";
import { type CommandCall, UsageError } from "./command.ts";
import { toLoadOptions } from "./config-flags.ts";
import { jsonText } from "./text.ts";

const UNIT_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

export async function tokenCreateCommand({ terminal, flags }: CommandCall): Promise<number> {
  const subject = String(flags["sub"]).trim();
  if (subject === "") throw new UsageError("--sub wants a name, as in --sub ada");
  const lifetimeSeconds = parseLifetime(String(flags["expires"]));
  const scopes = parseScopes(flags["scope"]);
  const { jwt } = (await loadConfig(toLoadOptions(flags))).config.auth;
  if (jwt.secret === "") {
    throw new UsageError(
      "auth.jwt.secret is not set, so there is nothing to sign with. Set it in the config file or as MCP_AUTH_JWT_SECRET (at least 32 bytes); " +
        "tokens for a public key or a key set come from whoever holds the private key.",
    );
  }

  const issuedAt = Math.floor(Date.now() / 1000);
  const claims = {
    sub: subject,
    ...(scopes.length === 0 ? {} : { scope: scopes.join(" ") }),
    ...(jwt.audience === "" ? {} : { aud: jwt.audience }),
    ...(jwt.issuer === "" ? {} : { iss: jwt.issuer }),
    iat: issuedAt,
    exp: issuedAt + lifetimeSeconds,
  };
  const token = await new SignJWT(claims)
    .setProtectedHeader({ alg: "HS256", typ: "JWT" })
    .sign(new TextEncoder().encode(jwt.secret));
  terminal.out(flags["json"] === true ? jsonText({ token, claims }) : `${token}\n`);
  return 0;
}

function parseLifetime(text: string): number {
  const [, amount = "", unit = ""] = /^([1-9]\d{0,8})([smhd])$/.exec(text) ?? [];
  const unitSeconds = UNIT_SECONDS[unit];
  if (unitSeconds === undefined)
    throw new UsageError(`--expires ${text}: give a number with s, m, h or d, as in 90s, 15m, 1h or 7d`);
  return Number(amount) * unitSeconds;
}

function parseScopes(value: unknown): string[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((part) => String(part).split(/[\s,]+/)).filter((scope) => scope !== "");
}
