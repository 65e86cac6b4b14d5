import type { PresetName } from "../../config/hosts/allow-rule.ts";
import { readNpmIndex } from "./npm-index.ts";
import type { PackageIndex, ToolSources } from "./package-index.ts";
import { readPipIndex } from "./pip-index.ts";

/** What a preset stands for on this machine. No host is built in: they come from the tools' configuration or the tools themselves. */
export async function readPreset(preset: PresetName, sources: ToolSources): Promise<PackageIndex> {
  switch (preset) {
    case "pip":
      return await readPipIndex(sources);
    case "npm":
      return await readNpmIndex(sources);
  }
}

/** The rules alone, as `network.allow` would list them. */
export async function presetHosts(preset: PresetName, sources: ToolSources): Promise<readonly string[]> {
  return (await readPreset(preset, sources)).rules;
}
