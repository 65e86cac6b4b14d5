import { isIPv4 } from "node:net";
import { OwlError } from "../../errors/owl-error.ts";
import { classifyAddress } from "./address-class.ts";
import { parseHost, toAsciiName } from "./host.ts";

export type PresetName = "pip" | "npm";

interface Ports {
  /** The rule as the operator wrote it. */
  readonly text: string;
  readonly ports: readonly number[];
}

export type AllowRule =
  | { readonly kind: "preset"; readonly text: string; readonly preset: PresetName }
  | (Ports & { readonly kind: "name"; readonly name: string })
  | (Ports & { readonly kind: "subdomains"; readonly suffix: string })
  | (Ports & { readonly kind: "range"; readonly address: string; readonly prefix: number });

export type HostRule = Exclude<AllowRule, { readonly kind: "preset" }>;

const DEFAULT_PORTS: readonly number[] = [80, 443];
// A shorter prefix covers more of the internet than an operator means to allow.
const MIN_PREFIX = 8;
const MAX_RULE_CHARS = 300;

/** Parses one entry of `network.allow`. Throws with the reason and the correct form. */
export function parseAllowRule(text: string): AllowRule {
  const trimmed = text.trim();
  if (trimmed === "pip" || trimmed === "npm") return { kind: "preset", text: trimmed, preset: trimmed };
  if (trimmed === "" || trimmed.length > MAX_RULE_CHARS) throw bad(text, "it is empty or too long");
  if (trimmed.includes("://")) throw bad(text, "it is a URL", "write the host name alone, as in example.com");
  if (trimmed.includes("@")) throw bad(text, "it holds a user name");
  const { host, prefix, port } = split(trimmed);
  const ports = port === undefined ? DEFAULT_PORTS : [readPort(text, port)];
  if (host.includes("*")) return { kind: "subdomains", text: trimmed, ports, suffix: readSuffix(text, host) };
  return readHost(text, { host, prefix, base: { text: trimmed, ports } });
}

interface Parts {
  readonly host: string;
  readonly prefix: string | undefined;
  readonly port: string | undefined;
}

/** `host`, `host:port`, `address/prefix`, `address/prefix:port`, `[v6]:port`, `[v6/prefix]:port`, `v6`, `v6/prefix`. */
function split(text: string): Parts {
  const bracketed = /^\[([^[\]/]*)(?:\/([^[\]/]*))?\](?::(.*))?$/.exec(text);
  if (bracketed !== null) return { host: `[${bracketed[1] ?? ""}]`, prefix: bracketed[2], port: bracketed[3] };
  if (text.split(":").length > 2) {
    const [host = "", prefix] = text.split("/", 2);
    return { host: `[${host}]`, prefix, port: undefined };
  }
  const [rest = "", port] = text.split(":", 2);
  const slash = rest.indexOf("/");
  if (slash === -1) return { host: rest, prefix: undefined, port };
  return { host: rest.slice(0, slash), prefix: rest.slice(slash + 1), port };
}

function readPort(text: string, port: string): number {
  const value = Number(port);
  if (/^[1-9][0-9]{0,4}$/.test(port) && value <= 65_535) return value;
  throw bad(text, "the port is not a number from 1 to 65535");
}

function readSuffix(text: string, host: string): string {
  const refusal = "a wildcard stands for whole subdomains, in front, as in *.example.com";
  if (host === "*") throw bad(text, "it would allow every host", "list the hosts, or *.example.com for subdomains");
  const suffix = host.startsWith("*.") ? toAsciiName(host.slice(2)) : undefined;
  const parsed = suffix === undefined ? undefined : parseHost(suffix);
  if (parsed === undefined || !("host" in parsed) || parsed.host.kind !== "name") throw bad(text, refusal);
  const why = whyTooBroad(parsed.host.name);
  if (why !== undefined) throw bad(text, why, "name the host itself");
  return parsed.host.name;
}

function readHost(text: string, parts: { host: string; prefix: string | undefined; base: Ports }): HostRule {
  const ascii = toAsciiName(parts.host);
  const parsed = ascii === undefined ? { problem: "it is no valid host name" } : parseHost(ascii);
  if ("problem" in parsed) throw bad(text, parsed.problem);
  if (parsed.host.kind === "name") {
    if (parts.prefix !== undefined) throw bad(text, "only an address takes a /prefix", "write the host name alone");
    return { ...parts.base, kind: "name", name: parsed.host.name };
  }
  const { address } = parsed.host;
  if (isIPv4(address) && parts.host !== address) {
    throw bad(text, "the address is in an unusual spelling", `write ${address}`);
  }
  const prefix = readPrefix(text, parts.prefix, isIPv4(address) ? 32 : 128);
  const facts = classifyAddress(address);
  if (facts?.openedBy === "nothing") throw bad(text, `it is ${facts.name}, which is never opened`);
  return { ...parts.base, kind: "range", address, prefix };
}

function readPrefix(text: string, prefix: string | undefined, bits: number): number {
  if (prefix === undefined) return bits;
  const value = Number(prefix);
  if (!/^[0-9]{1,3}$/.test(prefix) || value > bits) throw bad(text, `the prefix is not a number up to ${bits}`);
  if (value < MIN_PREFIX) throw bad(text, `a prefix below /${MIN_PREFIX} opens too much`, "list smaller ranges");
  return value;
}

function bad(text: string, reason: string, hint = "write a host such as example.com, *.example.com or 10.0.0.5:8080") {
  const shown = JSON.stringify(text.slice(0, 80));
  return new OwlError("invalid_params", `network.allow: ${shown} is refused: ${reason}`, {
    hint,
    facts: { rule: text.slice(0, 80), reason },
  });
}

// Anyone can register a name below these. The list contains the common ones, not all: docs/network.md documents this.
const SHARED_HOSTING = new Set([
  "amazonaws.com",
  "appspot.com",
  "azurewebsites.net",
  "blob.core.windows.net",
  "cloudapp.net",
  "cloudfront.net",
  "firebaseapp.com",
  "fly.dev",
  "github.io",
  "gitlab.io",
  "herokuapp.com",
  "netlify.app",
  "ngrok.io",
  "onrender.com",
  "pages.dev",
  "readthedocs.io",
  "run.app",
  "s3.amazonaws.com",
  "trycloudflare.com",
  "vercel.app",
  "web.app",
  "windows.net",
  "workers.dev",
]);

// Second-level names that country registries use as public suffixes, such as co.uk and com.au.
const REGISTRY_SECOND_LEVEL = /^(?:ac|co|com|edu|gob|go|gov|ltd|mil|ne|net|nom|or|org|plc|sch)$/;

/** Why a wildcard below this name would allow hosts that anyone can register; undefined when it would not. */
export function whyTooBroad(suffix: string): string | undefined {
  const labels = suffix.split(".");
  const [second = "", top = ""] = labels.slice(-2);
  if (labels.length === 1) return `"*.${suffix}" covers a whole top-level domain`;
  if (labels.length === 2 && top.length === 2 && REGISTRY_SECOND_LEVEL.test(second)) {
    return `"*.${suffix}" covers a whole public suffix`;
  }
  if (SHARED_HOSTING.has(suffix)) return `anybody can get a name below ${suffix}`;
  return undefined;
}
