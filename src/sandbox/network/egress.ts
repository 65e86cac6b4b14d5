import { OwlError } from "../../errors/owl-error.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { AllowList } from "./admission.ts";
import { type HostRule, parseAllowRule, type PresetName } from "../../config/hosts/allow-rule.ts";
import { ALL_CONTROLS, type EgressControls, DEFAULT_LIMITS, type EgressLimits } from "./controls.ts";
import { DecisionLog, type EgressDecision } from "./decision-log.ts";
import { EgressListener } from "./egress-listener.ts";
import { createResolver, type ResolveName } from "./dial.ts";

const NO_PROXY = "localhost,127.0.0.1,::1";

export interface EgressOptions {
  readonly logger: Logger;
  /** For the sockets. Its mode is 0700, and 0711 when a socket belongs to another user. */
  readonly folder: string;
  /** Resolves the presets `pip` and `npm`. Without it, a list with a preset is refused. */
  readonly presetHosts?: (preset: PresetName) => Promise<readonly string[]>;
  readonly resolve?: ResolveName;
  readonly clock?: () => number;
  readonly limits?: Partial<EgressLimits>;
  readonly controls?: Partial<EgressControls>;
}

export interface EgressListenerOptions {
  readonly sandboxId: string;
  /** Entries of `network.allow`. None: every request is refused. */
  readonly allow: readonly string[];
  /** The user of the sandbox. Default: the server's user. */
  readonly ownerUid?: number;
  readonly onDecision?: (decision: EgressDecision) => void;
}

export interface Egress {
  open(options: EgressListenerOptions): Promise<EgressListener>;
  /** Closes every listener. */
  close(): Promise<void>;
}

/** The egress proxy: one listener for each sandbox, which connects only to targets that the sandbox's list allows. */
export function createEgress(options: EgressOptions): Egress {
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const controls = { ...ALL_CONTROLS, ...options.controls };
  const resolve = options.resolve ?? createResolver({ timeoutMs: limits.resolveTimeoutMs });
  const clock = options.clock ?? Date.now;
  const listeners = new Set<EgressListener>();
  let taken = 0;
  const takeSlot = (): (() => void) | undefined => {
    if (taken >= limits.maxConnectionsTotal) return undefined;
    taken += 1;
    return () => {
      taken -= 1;
    };
  };
  return {
    open: async ({ sandboxId, allow, ownerUid, onDecision }) => {
      const rules = await readRules(allow, options.presetHosts);
      const { maxDecisions, resolveTimeoutMs } = limits;
      const logger = options.logger.child({ sandbox: sandboxId });
      const decisions = new DecisionLog({ sandboxId, maxDecisions, clock, logger, onDecision });
      const admission = { allow: new AllowList(rules), resolve, resolveTimeoutMs, classify: controls.classify };
      const listener = await EgressListener.open({
        folder: options.folder,
        ownerUid,
        limits,
        decisions,
        scope: { admission, controls, limits, decisions, takeSlot },
        onClosed: (closed) => listeners.delete(closed),
      });
      listeners.add(listener);
      return listener;
    },
    close: async () => {
      await Promise.all([...listeners].map(async (listener) => await listener.close()));
    },
  };
}

async function readRules(
  texts: readonly string[],
  presetHosts: EgressOptions["presetHosts"],
): Promise<readonly HostRule[]> {
  const rules: HostRule[] = [];
  for (const rule of texts.map(parseAllowRule)) {
    if (rule.kind !== "preset") {
      rules.push(rule);
      continue;
    }
    if (presetHosts === undefined) throw new OwlError("internal", `the preset ${rule.preset} has no resolver`);
    const entries = (await presetHosts(rule.preset)).map(parseAllowRule);
    rules.push(...entries.filter((entry) => entry.kind !== "preset"));
  }
  return rules;
}

export interface EgressEnvOptions {
  /** The port of the forwarder inside. */
  readonly port?: number;
  /** Path inside of the preload for Node; absent: `fetch` has no network on versions of Node without proxy variables. */
  readonly nodePreload?: string;
}

/** The environment that makes programs inside a sandbox use the proxy. It is not a control: without the proxy they have no network. */
export function egressEnv(options: EgressEnvOptions = {}): Record<string, string> {
  const { port = 3128, nodePreload } = options;
  const proxy = `http://127.0.0.1:${port}`;
  return {
    HTTP_PROXY: proxy,
    HTTPS_PROXY: proxy,
    ALL_PROXY: proxy,
    NO_PROXY,
    http_proxy: proxy,
    https_proxy: proxy,
    all_proxy: proxy,
    no_proxy: NO_PROXY,
    PIP_PROXY: proxy,
    npm_config_proxy: proxy,
    npm_config_https_proxy: proxy,
    npm_config_noproxy: NO_PROXY,
    // Newer versions of Node can read the variables above, but do not report why the proxy refused a request. The preload does.
    ...(nodePreload === undefined ? { NODE_USE_ENV_PROXY: "1" } : { NODE_OPTIONS: `--require ${nodePreload}` }),
  };
}
