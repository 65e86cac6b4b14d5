import { join } from "node:path";
import type { Account } from "../e2e/sandbox-account.ts";
import type { Place, Server } from "../e2e/sandbox-client.ts";
import { instanceIds, type HostProcess, processesBelow } from "./sandbox-lab.ts";

/** What the sandboxes of a suite run on: the same attacks for all. */
export interface TestRuntime {
  /** How far its limits go: docs/security.md, docs/runtimes.md. */
  readonly limits: { readonly memory: "sandbox" | "process"; readonly workspace: "disk" | "watch" };
  /** How often a race is tried. */
  readonly races: number;
  /** The ordinary user that runs the server, if one does. */
  account(): Account | undefined;
  /** The part of `sandbox` in the configuration that chooses it. */
  settings(): Readonly<Record<string, unknown>>;
  /** Every process of the server's sandboxes, as the host sees it. */
  processes(server: Server): HostProcess[];
  /** Where the host keeps what sandboxes of this data folder write: files and folders. */
  workspaces(place: Place): Promise<string[]>;
}

export function bubblewrap(identity: "root" | "user", account: () => Account | undefined): TestRuntime {
  return {
    limits: identity === "root" ? { memory: "sandbox", workspace: "disk" } : { memory: "process", workspace: "watch" },
    races: process.env["OWLCLAW_TEST_LONG"] === "1" ? 60 : 20,
    account,
    settings: () => ({ limits: "best-effort" }),
    processes: (server) => processesBelow(server.child.pid),
    workspaces: async (place) => {
      const folders = instanceIds(place).map((cell) => join(place.dataFolder, "sandboxes", cell));
      return await Promise.resolve(
        folders.flatMap((each) => [join(each, "workspace.img"), join(each, "files/workspace")]),
      );
    },
  };
}
