import {
  badText,
  contradictions,
  removedKey,
  removedKeyOf,
  unknownKey,
  type Candidate,
  type LayerValues,
  nearest,
} from "./candidate.ts";
import type { ConfigIssue } from "./config-error.ts";
import { CONFIG_KEYS, findKey, type ConfigKey } from "./keys.ts";
import { showValue } from "./mask.ts";
import { valueFromText } from "./value-from-text.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** A command-line flag that sets a key. A list is used unchanged; text is parsed by the type of the key. */
export interface FlagSetting {
  readonly path: string;
  /** The flag as the user wrote it: `--port`. */
  readonly name: string;
  readonly value: string | readonly string[];
}

/** Names the config file. It does not set a key. */
export const CONFIG_FILE_VARIABLE = "MCP_SERVER_CONFIG";

const PREFIX = "MCP_SERVER_";

// Kubernetes sets these variables in every pod for a service called "mcp-server". They are not settings.
const SERVICE_LINK_NAME =
  /^MCP_SERVER_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$/;
const SERVICE_LINK_VALUE = /^(tcp|udp|sctp):\/\//;

const KEY_BY_VARIABLE: ReadonlyMap<string, ConfigKey> = new Map(
  CONFIG_KEYS.flatMap((key) => key.env.map((name) => [name, key] as const)),
);

/** An empty variable counts as not set, as is usual in containers and CI systems. */
export function readEnvironment(env: Environment): LayerValues {
  const candidates: Candidate[] = [];
  const issues: ConfigIssue[] = [];
  for (const [name, text] of Object.entries(env)) {
    if (text === undefined || text === "" || isServiceLink(name, text)) continue;
    const key = KEY_BY_VARIABLE.get(name);
    if (key !== undefined) collect({ key, value: text, origin: { layer: "env", source: name } }, candidates, issues);
    else if (name.startsWith(PREFIX) && name !== CONFIG_FILE_VARIABLE) issues.push(unknownVariable(name, text));
  }
  return { candidates, issues: [...issues, ...contradictions(candidates)] };
}

export function readFlags(flags: readonly FlagSetting[]): LayerValues {
  const candidates: Candidate[] = [];
  const issues: ConfigIssue[] = [];
  for (const { path, name, value } of flags) {
    const key = findKey(path);
    const origin = { layer: "flag", source: name } as const;
    if (key === undefined) issues.push(unknownKey(path, value, origin));
    else collect({ key, value, origin }, candidates, issues);
  }
  return { candidates, issues };
}

function collect(candidate: Candidate, candidates: Candidate[], issues: ConfigIssue[]): void {
  const { key, value, origin } = candidate;
  if (typeof value !== "string") {
    candidates.push(candidate);
    return;
  }
  const verdict = valueFromText(key, value);
  if (verdict.ok) candidates.push({ key, value: verdict.value, origin });
  else issues.push(badText(candidate, verdict.reason));
}

function unknownVariable(name: string, text: string): ConfigIssue {
  const removed = removedKey(removedKeyOf(name) ?? "", { layer: "env", source: name });
  if (removed !== undefined) return removed;
  const guess = nearest(name, KEY_BY_VARIABLE.keys());
  return {
    path: name,
    value: showValue(name, text),
    reason: `no setting has this variable, and every ${PREFIX}… variable must be one`,
    fix:
      guess === undefined
        ? "unset it; `owlclaw mcp-server config init --stdout` names them all"
        : `did you mean ${guess}? Otherwise unset it`,
    layer: "env",
    source: name,
  };
}

function isServiceLink(name: string, text: string): boolean {
  return SERVICE_LINK_NAME.test(name) || (name === "MCP_SERVER_PORT" && SERVICE_LINK_VALUE.test(text));
}
