import type { LoadedConfig } from "../config/load.ts";

/** What only the running server knows. */
export interface StartFacts {
  readonly version: string;
  /** Where it listens, on HTTP. */
  readonly url?: string;
}

export interface StartSummary {
  /** For a log line. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** For a person at a terminal. */
  readonly lines: readonly string[];
}

/** The address and the choices that matter. It is made from named facts, so that no secret can slip in. */
export function startSummary({ config, file }: LoadedConfig, { version, url }: StartFacts): StartSummary {
  const isHttp = config.transport === "http";
  const auth = isHttp ? (config.auth.enabled ? `on (${keyKind(config.auth.jwt)})` : "off") : "not used on stdio";
  const fields = {
    version,
    address: url ?? "stdin and stdout",
    transport: config.transport,
    mode: config.mode,
    auth,
    ...(isHttp
      ? { tls: config.http.tls.certFile === "" ? "off" : "on", cors: corsText(config.http.cors) }
      : { client: config.stdio.clientId }),
    handlerPaths: config.handlers.paths.length,
    toolTimeoutSeconds: config.tools.timeoutSeconds,
    logLevel: config.logging.level,
    dataFolder: config.sandbox.root,
    configFile: file ?? "none",
  };
  const { version: _, ...shown } = fields;
  const labels = Object.entries(shown).map(([name, value]) => `  ${words(name).padEnd(20)} ${String(value)}`);
  return { fields, lines: [`OwlClaw MCP server ${version}`, ...labels, ...warnings(config)] };
}

type Config = LoadedConfig["config"];

function warnings({ transport, http, auth, mode }: Config): string[] {
  const found: string[] = [];
  if (transport === "http" && http.allowUnauthenticated && !auth.enabled)
    found.push("  warning: anyone who reaches this address can use the server");
  if (mode === "development") found.push("  warning: development mode shows stack traces to clients");
  return found;
}

function keyKind({ secret, publicKey }: Config["auth"]["jwt"]): string {
  if (secret !== "") return "shared secret";
  return publicKey === "" ? "key set" : "public key";
}

function corsText({ enabled, origins }: Config["http"]["cors"]): string {
  if (!enabled) return "off";
  return origins.length === 0 ? "loopback origins" : origins.join(", ");
}

function words(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}
