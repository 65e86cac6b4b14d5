import type { LoadedConfig } from "../../config/load.ts";
import type { PlannedVolume } from "../../config/plan-volumes.ts";
import { findSpecialFiles } from "../../sandbox/special-files.ts";
import { type DoctorCheck, type DoctorLook, ok, warning } from "./check.ts";

/** What weakens the protection of mounted folders. A folder that cannot be protected at all is an error of the configuration. */
export function volumeLooks({ config, volumes }: Pick<LoadedConfig, "config" | "volumes">): readonly DoctorLook[] {
  const isOthersEngine = config.sandbox.runtime === "docker" && process.getuid?.() !== 0;
  return volumes.map((volume) => ({
    look: async () => [await checkVolume(volume, isOthersEngine)],
  }));
}

async function checkVolume(volume: PlannedVolume, isOthersEngine: boolean): Promise<DoctorCheck> {
  const { hostPath, protectedPaths, isReadOnly } = volume;
  const named = { category: "isolation", name: `mounted folder ${hostPath}` } as const;
  const { paths } = await findSpecialFiles(hostPath);
  if (paths.length > 0) {
    const fix =
      "remove them, or mount a folder without them: they connect sandboxes with each other and with this machine";
    return warning(named, `it holds sockets or FIFOs, such as ${paths[0]}`, fix);
  }
  if (isOthersEngine && !isReadOnly) {
    const message =
      "the engine mounts it by name, and this user may not look into containers to compare what was mounted";
    return warning(
      named,
      message,
      "let no other program rename folders above it while sandboxes start, or run the server as root",
    );
  }
  const kept = protectedPaths.filter(({ access }) => access !== "pinned").length;
  return ok(named, isReadOnly ? "read-only" : `${kept} paths in it are protected`);
}
