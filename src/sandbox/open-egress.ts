import { join } from "node:path";
import type { Config } from "../config/schema.ts";
import { userEnvironment } from "../config/environment.ts";
import type { EgressDecision } from "./network/decision-log.ts";
import type { EgressAccess } from "./instance-starter.ts";
import type { Logger } from "../telemetry/logger.ts";

/** Makes Node's `fetch` inside use the proxy. */
const NODE_PRELOAD = "/opt/owlclaw/proxy-preload.cjs";

interface OpenEgress {
  open(instanceId: string, allow: readonly string[]): Promise<EgressAccess>;
  close(): Promise<void>;
}

interface OpenEgressOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly onDecision?: (decision: EgressDecision) => void;
}

/** Opens the egress proxy. When the configuration allows no host, the proxy is not loaded. */
export async function openEgress({ config: { sandbox }, logger, onDecision }: OpenEgressOptions): Promise<OpenEgress> {
  const folder = join(sandbox.root, "egress");
  const { removeDeadListeners } = await import("./network/listener-socket.ts");
  await removeDeadListeners(folder);
  const allowed = [sandbox.network.allow, ...Object.values(sandbox.network.templates)].flat();
  if (allowed.length === 0) {
    return { open: () => Promise.reject(new Error("no network is configured")), close: () => Promise.resolve() };
  }
  const [{ createEgress, egressEnv }, { parseAllowRule }, { readPreset }] = await Promise.all([
    import("./network/egress.ts"),
    import("../config/hosts/allow-rule.ts"),
    import("./network/presets.ts"),
  ]);
  const sources = userEnvironment();
  const rules = allowed.map(parseAllowRule);
  const presets = await Promise.all(
    rules.flatMap((rule) => (rule.kind === "preset" ? [readPreset(rule.preset, sources)] : [])),
  );
  const env: Record<string, string> = egressEnv({ nodePreload: NODE_PRELOAD });
  for (const preset of presets) Object.assign(env, preset.env);
  const egress = createEgress({
    logger,
    folder,
    presetHosts: async (preset) => (await readPreset(preset, sources)).rules,
  });
  return {
    open: async (instanceId, allow) => {
      const listener = await egress.open({ sandboxId: instanceId, allow, ...(onDecision && { onDecision }) });
      return { listener, env };
    },
    close: () => egress.close(),
  };
}
