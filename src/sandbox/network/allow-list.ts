import { BlockList, isIPv4 } from "node:net";
import type { AddressClass } from "../../config/hosts/address-class.ts";
import type { HostRule } from "../../config/hosts/allow-rule.ts";
import type { Host } from "../../config/hosts/host.ts";

const MAX_RULES_SHOWN = 20;

/** The rules of one sandbox, ready to be asked. An empty list allows nothing. */
export class AllowList {
  readonly #rules: readonly { readonly rule: HostRule; readonly covers: (host: Host) => boolean }[];

  constructor(rules: readonly HostRule[]) {
    this.#rules = rules.map((rule) => ({ rule, covers: matcher(rule) }));
  }

  /** The rule that allows this host and port. */
  find(host: Host, port: number): HostRule | undefined {
    return this.#rules.find(({ rule, covers }) => rule.ports.includes(port) && covers(host))?.rule;
  }

  /** The rule that opens an address which is not public. A name never does: who owns it decides where it points. */
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
