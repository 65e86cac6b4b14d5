import { BlockList, isIP, isIPv4 } from "node:net";
import { networkInterfaces } from "node:os";

/** The class of an address that is not on the public internet. */
export interface AddressClass {
  readonly name: string;
  /**
   * Which allow rule can permit the address: none, a rule with exactly this address, or also a rule with a range around
   * it.
   */
  readonly openedBy: "nothing" | "address" | "range";
}

type Range = readonly [address: string, prefix: number];

const CLASSES: readonly (AddressClass & { readonly ranges: readonly Range[] })[] = [
  {
    name: "a cloud metadata address",
    openedBy: "address",
    ranges: [
      ["169.254.169.254", 32],
      ["169.254.170.2", 32],
      ["168.63.129.16", 32],
      ["100.100.100.200", 32],
      ["192.0.0.192", 32],
      ["fd00:ec2::254", 128],
      ["fd20:ce::254", 128],
    ],
  },
  { name: "an IPv4-mapped IPv6 address", openedBy: "nothing", ranges: [["::ffff:0:0", 96]] },
  {
    name: "an unspecified address",
    openedBy: "nothing",
    ranges: [
      ["0.0.0.0", 8],
      ["::", 128],
    ],
  },
  {
    name: "a multicast address",
    openedBy: "nothing",
    ranges: [
      ["224.0.0.0", 4],
      ["ff00::", 8],
    ],
  },
  { name: "the broadcast address", openedBy: "nothing", ranges: [["255.255.255.255", 32]] },
  {
    name: "a loopback address",
    openedBy: "range",
    ranges: [
      ["127.0.0.0", 8],
      ["::1", 128],
    ],
  },
  {
    name: "a link-local address",
    openedBy: "range",
    ranges: [
      ["169.254.0.0", 16],
      ["fe80::", 10],
    ],
  },
  {
    name: "a private address",
    openedBy: "range",
    ranges: [
      ["10.0.0.0", 8],
      ["172.16.0.0", 12],
      ["192.168.0.0", 16],
      ["fec0::", 10],
    ],
  },
  { name: "a unique-local address", openedBy: "range", ranges: [["fc00::", 7]] },
  { name: "a carrier-grade NAT address", openedBy: "range", ranges: [["100.64.0.0", 10]] },
  {
    name: "an IPv6 address that carries an IPv4 address",
    openedBy: "range",
    ranges: [
      ["64:ff9b::", 96],
      ["64:ff9b:1::", 48],
      ["2002::", 16],
      ["2001::", 32],
      ["::", 96],
    ],
  },
  {
    name: "a reserved address",
    openedBy: "range",
    ranges: [
      ["192.0.0.0", 24],
      ["192.0.2.0", 24],
      ["192.88.99.0", 24],
      ["198.18.0.0", 15],
      ["198.51.100.0", 24],
      ["203.0.113.0", 24],
      ["240.0.0.0", 4],
      ["2001::", 23],
      ["2001:db8::", 32],
      ["3fff::", 20],
    ],
  },
];

const OWN: AddressClass = { name: "an address of the server's own machine", openedBy: "range" };
const NOT_GLOBAL: AddressClass = { name: "a reserved address", openedBy: "range" };
const UNREADABLE: AddressClass = { name: "not a plain IP address", openedBy: "nothing" };

const LISTS = CLASSES.map(({ name, openedBy, ranges }) => ({
  facts: { name, openedBy },
  v4: toBlockList(ranges, "ipv4"),
  v6: toBlockList(ranges, "ipv6"),
}));
const GLOBAL_IPV6 = toBlockList([["2000::", 3]], "ipv6");

/** Undefined for a public address that does not belong to this machine. */
export function classifyAddress(address: string): AddressClass | undefined {
  if (isIP(address) === 0 || address.includes("%")) return UNREADABLE;
  const family = isIPv4(address) ? "ipv4" : "ipv6";
  // IPv4 and IPv6 lists are separate: Node matches a mapped IPv6 address against IPv4 ranges, which would return the
  // wrong class.
  const found = LISTS.find((list) => (family === "ipv4" ? list.v4 : list.v6).check(address, family));
  if (found !== undefined) return found.facts;
  if (family === "ipv6" && !GLOBAL_IPV6.check(address, family)) return NOT_GLOBAL;
  return isOwnAddress(address, family) ? OWN : undefined;
}

/** The machine can reach services on its own public addresses even when a firewall blocks them for others. */
function isOwnAddress(address: string, family: "ipv4" | "ipv6"): boolean {
  const own = new BlockList();
  for (const entry of Object.values(networkInterfaces()).flat()) {
    if (entry?.family.toLowerCase() === family) own.addAddress(entry.address, family);
  }
  return own.check(address, family);
}

function toBlockList(ranges: readonly Range[], family: "ipv4" | "ipv6"): BlockList {
  const list = new BlockList();
  for (const [address, prefix] of ranges) {
    if (isIPv4(address) === (family === "ipv4")) list.addSubnet(address, prefix, family);
  }
  return list;
}
