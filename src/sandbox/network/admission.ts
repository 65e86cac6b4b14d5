import type { AddressClass } from "../../config/hosts/address-class.ts";
import { formatHost, type Host } from "../../config/hosts/host.ts";
import { EgressRefusal } from "./refusal.ts";
import { BlockList, isIPv4 } from "node:net";
import type { HostRule } from "../../config/hosts/allow-rule.ts";

const MAX_RULES_SHOWN = 20;

export interface Target {
  readonly host: Host;
  readonly port: number;
}

export interface Admission {
  readonly rule: string;
  /** All of them were checked. The proxy connects to one of these only. */
  readonly addresses: readonly string[];
}

export interface AdmissionOptions {
  readonly allow: AllowList;
  readonly resolve: (name: string) => Promise<readonly string[]>;
  readonly resolveTimeoutMs: number;
  readonly classify: (address: string) => AddressClass | undefined;
}

export function formatTarget(target: Target): string {
  return `${formatHost(target.host)}:${target.port}`;
}

/**
 * Decides on one target. A name that no rule allows is not resolved, because a DNS query can leak data.
 * Throws an `EgressRefusal`.
 */
export async function admit(target: Target, options: AdmissionOptions): Promise<Admission> {
  const rule = options.allow.find(target.host, target.port);
  if (rule === undefined) throw notListed(target, options.allow);
  const addresses = await addressesOf(target, options);
  // One forbidden address refuses all: DNS rebinding mixes public and private addresses.
  for (const address of addresses) {
    const facts = options.classify(address);
    if (facts === undefined || options.allow.findOpening(address, { port: target.port, facts }) !== undefined) continue;
    throw badAddress(target, { address, facts });
  }
  return { rule: rule.text, addresses };
}

async function addressesOf(target: Target, options: AdmissionOptions): Promise<readonly string[]> {
  if (target.host.kind === "address") return [target.host.address];
  const { name } = target.host;
  const addresses = await withDeadline(options.resolve(name), options.resolveTimeoutMs).catch((cause: unknown) => {
    if (cause instanceof EgressRefusal) throw cause;
    throw new EgressRefusal(502, "dns", `egress failed: ${name} could not be resolved (${codeOf(cause)})`);
  });
  if (addresses.length === 0) throw new EgressRefusal(502, "dns", `egress failed: ${name} has no address`);
  return addresses;
}

async function withDeadline<T>(work: Promise<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new EgressRefusal(504, "dns timeout", `egress failed: no DNS answer in ${timeoutMs} ms; try again`));
    }, timeoutMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

function notListed(target: Target, allow: AllowList): EgressRefusal {
  const shown = formatTarget(target);
  return new EgressRefusal(
    403,
    "not in network.allow",
    `egress refused: ${shown} is not in network.allow; allowed: ${allow.describe()} (ports 80 and 443 unless a rule names one). ` +
      `To reach it, ask the operator to add ${shown} to network.allow.`,
  );
}

function badAddress(target: Target, found: { address: string; facts: AddressClass }): EgressRefusal {
  const { address, facts } = found;
  const where =
    target.host.kind === "name" ? `${formatTarget(target)} resolves to ${address}, which` : formatTarget(target);
  const opening = formatTarget({ host: { kind: "address", address }, port: target.port });
  const next =
    facts.openedBy === "nothing"
      ? "Such addresses are never reachable."
      : `If it is meant, ask the operator to add ${opening} to network.allow.`;
  return new EgressRefusal(403, "address", `egress refused: ${where} is ${facts.name}. ${next}`);
}

function codeOf(cause: unknown): string {
  return cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : "error";
}

/** The rules of one sandbox. An empty list allows nothing. */
export class AllowList {
  readonly #rules: readonly { readonly rule: HostRule; readonly covers: (host: Host) => boolean }[];

  constructor(rules: readonly HostRule[]) {
    this.#rules = rules.map((rule) => ({ rule, covers: matcher(rule) }));
  }

  /** The rule that allows this host and port. */
  find(host: Host, port: number): HostRule | undefined {
    return this.#rules.find(({ rule, covers }) => rule.ports.includes(port) && covers(host))?.rule;
  }

  /** The rule that allows an address which is not public. A name never does: its owner decides to which address it resolves. */
  findOpening(address: string, options: { port: number; facts: AddressClass }): HostRule | undefined {
    const { port, facts } = options;
    if (facts.openedBy === "nothing") return undefined;
    return this.#rules.find(({ rule, covers }) => {
      if (rule.kind !== "range" || !rule.ports.includes(port)) return false;
      if (facts.openedBy === "address" && !isSingle(rule)) return false;
      return covers({ kind: "address", address });
    })?.rule;
  }

  /** For the text of a refusal. */
  describe(): string {
    if (this.#rules.length === 0) return "nothing";
    const shown = this.#rules.slice(0, MAX_RULES_SHOWN).map(({ rule }) => rule.text);
    const more = this.#rules.length - shown.length;
    return more > 0 ? `${shown.join(", ")} and ${more} more` : shown.join(", ");
  }
}

function matcher(rule: HostRule): (host: Host) => boolean {
  switch (rule.kind) {
    case "name":
      return (host) => host.kind === "name" && host.name === rule.name;
    case "subdomains":
      return (host) => host.kind === "name" && host.name.endsWith(`.${rule.suffix}`);
    case "range": {
      const family = isIPv4(rule.address) ? "ipv4" : "ipv6";
      const list = new BlockList();
      list.addSubnet(rule.address, rule.prefix, family);
      return (host) =>
        host.kind === "address" && isIPv4(host.address) === (family === "ipv4") && list.check(host.address, family);
    }
  }
}

function isSingle(rule: { readonly address: string; readonly prefix: number }): boolean {
  return rule.prefix === (isIPv4(rule.address) ? 32 : 128);
}
