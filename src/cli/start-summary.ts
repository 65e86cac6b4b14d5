import type { LoadedConfig } from "../config/load.ts";
import type { SandboxHealth } from "../sandbox/sandbox-runtime.ts";

/** Facts that only the running server knows. */
export interface StartFacts {
  readonly version: string;
  /** The URL of the server, on HTTP. */
  readonly url?: string;
  /** Absent when sandboxes are disabled. */
  readonly sandboxes?: SandboxHealth | undefined;
  /** Shown only to a person at a terminal, because the link gives access. */
  readonly dashboard?: { readonly url: string; readonly link?: string | undefined } | undefined;
}

export interface StartSummary {
  /** For a log line. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** For a person at a terminal. */
  readonly lines: readonly string[];
}

/** The address and the main settings. Every field is picked by name, so that no secret gets into the summary. */
export function startSummary(
  { config, file }: LoadedConfig,
  { version, url, sandboxes, dashboard }: StartFacts,
): StartSummary {
  const isHttp = config.transport === "http";
  const auth = isHttp ? (config.auth.enabled ? `on (${keyKind(config.auth.jwt)})` : "off") : "not used on stdio";
  const fields = {
    version,
    address:
      isHttp && config.http.socket !== ""
        ? `${config.http.socket} (Unix socket, path /mcp)`
        : (url ?? "stdin and stdout"),
    transport: config.transport,
    mode: config.mode,
    auth,
    ...(isHttp
      ? { tls: config.http.tls.certFile === "" ? "off" : "on", cors: corsText(config.http.cors) }
      : { client: config.stdio.clientId }),
    ...sandboxFields(config.sandbox, sandboxes),
    handlerPaths: config.handlers.paths.length,
    toolTimeoutSeconds: config.tools.timeoutSeconds,
    logLevel: config.logging.level,
    dataFolder: config.sandbox.root,
    configFile: file ?? "none",
  };
  const { version: _, ...shown } = fields;
  const labels = Object.entries(shown).map(([name, value]) => `  ${words(name).padEnd(20)} ${String(value)}`);
  return {
    fields,
    lines: [`OwlClaw MCP server ${version}`, ...labels, ...pageLines(dashboard), ...warnings(config, sandboxes)],
  };
}

type Config = LoadedConfig["config"];

function pageLines(dashboard: StartFacts["dashboard"]): string[] {
  if (dashboard === undefined) return [];
  const { url, link } = dashboard;
  return [`  ${"dashboard".padEnd(20)} ${link === undefined ? url : `${link} (opens once, within 10 minutes)`}`];
}

/**
 * The runtime of sandboxes, their limits, network and volumes, so that the log documents the settings of each start.
 */
function sandboxFields(
  { limits, template, network, volumes }: Config["sandbox"],
  health: SandboxHealth | undefined,
): Readonly<Record<string, unknown>> {
  if (health === undefined) return { sandboxes: "off" };
  const runs = health.status === "ok" ? health.runtime : health.status;
  return {
    sandboxes: health.status === "unavailable" ? `unavailable: ${health.reason}` : runs,
    sandboxTemplate: template,
    sandboxLimits: limits,
    sandboxNetwork: networkText(network),
    sandboxVolumes: volumes.length === 0 ? "none" : volumes.join(", "),
  };
}

function networkText({ allow, templates }: Config["sandbox"]["network"]): string {
  const own = Object.entries(templates).map(([name, hosts]) => `${name}: ${hosts.join(", ") || "none"}`);
  return [allow.join(", ") || "none", ...own].join("; ");
}

function warnings({ transport, http, auth, mode }: Config, sandboxes: SandboxHealth | undefined): string[] {
  const found: string[] = [];
  if (sandboxes?.status === "unavailable") found.push(`  warning: no sandbox can run. ${sandboxes.hint}`);
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
