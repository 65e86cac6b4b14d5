import { randomBytes } from "node:crypto";
import { join } from "node:path";

export type ServedRuntime = "microsandbox" | "bubblewrap";

/** What the keeper of servers is started with: the same in a machine and on this one. */
export interface KeeperOrder {
  readonly canary: string;
  /** The folder with the server, its packages and the keeper itself. */
  readonly job: string;
  /** microsandbox's own folder. */
  readonly msb: string;
  /** Where configurations and data go. */
  readonly place: string;
  /** A folder of the host that every sandbox sees. */
  readonly volume: string;
  /** Where servers listen, on their loopback. */
  readonly ports: Readonly<Record<ServedRuntime, number>>;
  /** Ports that lead to them from outside a machine. */
  readonly doors?: Readonly<Record<ServedRuntime, number>>;
  /** Where the keeper itself listens. */
  readonly keeper: { readonly host: string; readonly port: number };
  /** The world outside, of which sandboxes of one template may reach a part: an address of the loopback. */
  readonly site: string;
  /** The server that is there from the beginning. */
  readonly starts: ServedRuntime;
}

/** What is the same wherever it runs. */
export type GivenOrder = Pick<KeeperOrder, "canary" | "site" | "starts">;

/** Where the world outside has its port, which is always the same: others may run beside this one. */
export function newSite(): string {
  return ["127", ...randomBytes(3).map((each) => 1 + (each % 254))].join(".");
}

/** The file `hosts` of the job: names that the keeper and its servers know, and nobody else does. */
export function hostsOf({ site }: KeeperOrder): string {
  return `127.0.0.1 localhost\n${site} good.test bad.test\n`;
}

/** Started by root. */
export function keeperCommand(order: KeeperOrder): string[] {
  const withHosts = 'mount --bind "$0" /etc/hosts && exec "$@"';
  const [hosts = "", node = "", keeper = ""] = ["hosts", "node", "keeper.mjs"].map((name) => join(order.job, name));
  return ["unshare", "--mount", "sh", "-c", withHosts, hosts, node, keeper, JSON.stringify(order)];
}
