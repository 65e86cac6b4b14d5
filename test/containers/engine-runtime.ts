import { readFileSync } from "node:fs";
import { join } from "node:path";
import { allProcesses, below } from "../escape/sandbox-lab.ts";
import type { TestRuntime } from "../escape/test-runtime.ts";
import type { ContainerEngine } from "../services/container-engine.ts";

/** Sandboxes in containers of an engine of the test's own. */
export function containers(engine: () => ContainerEngine): TestRuntime {
  return {
    limits: { memory: "sandbox", workspace: "watch" },
    // The guest decides it, which is the same in every runtime: here it is enough to see that it does.
    races: 30,
    account: () => undefined,
    settings: () => settingsFor(engine()),
    processes: () => {
      const { folder } = engine();
      const all = allProcesses();
      // Each container has one process of the engine above it, which names the engine's folder.
      const keepers = all.filter(({ pid, command }) => command.includes(folder) && isKeeper(pid));
      return below(all, new Set(keepers.map(({ pid }) => pid)));
    },
    workspaces: async ({ dataFolder }) => {
      const { cli } = engine();
      const label = `label=owlclaw.data=${readFileSync(join(dataFolder, "docker", "id"), "utf8")}`;
      const names = (await cli("volume", "ls", "-q", "--filter", label)).split("\n").filter((name) => name !== "");
      return (await cli("volume", "inspect", "--format", "{{.Mountpoint}}", ...names)).split("\n");
    },
  };
}

export function settingsFor({ host, image }: ContainerEngine): Record<string, unknown> {
  // Volumes of these engines are folders: no file system limits their size.
  return { runtime: "docker", image, docker: { host }, limits: "best-effort" };
}

function isKeeper(pid: number): boolean {
  try {
    return /^(conmon|containerd-shim)/.test(readFileSync(`/proc/${pid}/comm`, "utf8"));
  } catch {
    // It ended meanwhile.
    return false;
  }
}
