import { Resolver } from "node:dns/promises";
import { readFile, stat } from "node:fs/promises";
import { isIP } from "node:net";

const HOSTS_FILE = "/etc/hosts";
const MAX_HOSTS_BYTES = 1024 * 1024;

export type ResolveName = (name: string) => Promise<readonly string[]>;

/**
 * Asks the hosts file, then DNS for both families. Node's own `lookup` is not used: it blocks one of four threads that all file work
 * shares, so a sandbox with a slow name server could stop the whole server.
 */
export function createResolver(options: { timeoutMs: number; servers?: readonly string[] }): ResolveName {
  const dns = new Resolver({ timeout: options.timeoutMs, tries: 2 });
  if (options.servers !== undefined) dns.setServers(options.servers);
  return async (name) => {
    const listed = await fromHostsFile(name);
    if (listed.length > 0) return listed;
    const [v4, v6] = await Promise.allSettled([dns.resolve4(name), dns.resolve6(name)]);
    const addresses = [v4, v6].flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
    if (addresses.length === 0 && v4.status === "rejected") throw v4.reason;
    return addresses;
  };
}

async function fromHostsFile(name: string): Promise<readonly string[]> {
  try {
    if ((await stat(HOSTS_FILE)).size > MAX_HOSTS_BYTES) return [];
    return parseHostsFile(await readFile(HOSTS_FILE, "utf8"), name);
  } catch {
    // Without the file, DNS alone answers.
    return [];
  }
}

export function parseHostsFile(text: string, name: string): readonly string[] {
  const addresses = new Set<string>();
  for (const line of text.split("\n")) {
    const [address = "", ...names] = (line.split("#", 1)[0] ?? "").trim().split(/\s+/);
    if (isIP(address) !== 0 && names.some((entry) => entry.toLowerCase() === name)) addresses.add(address);
  }
  return [...addresses];
}
