import { OwlError } from "../../errors/owl-error.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { AllowList } from "./admission.ts";
import { type HostRule, parseAllowRule, type PresetName } from "../../config/hosts/allow-rule.ts";
import { ALL_CONTROLS, type EgressControls, DEFAULT_LIMITS, type EgressLimits } from "./controls.ts";
import { DecisionLog, type EgressDecision } from "./decision-log.ts";
import { type EgressListener, openListener } from "./egress-listener.ts";
import { createResolver, type ResolveName } from "./dial.ts";

const NO_PROXY = "localhost,127.0.0.1,::1";

export interface EgressOptions {
  readonly logger: Logger;
  /** For the sockets. Made with mode 0700; 0711 once a socket is given to another user. */
  readonly folder: string;
  /** The rules behind `pip` and `npm` in a list. Without it, lists with a preset are refused. */
  readonly presetHosts?: (preset: PresetName) => Promise<readonly string[]>;
  readonly resolve?: ResolveName;
  /** Milliseconds since the epoch, for records. */
  readonly clock?: () => number;
  readonly limits?: Partial<EgressLimits>;
  readonly controls?: Partial<EgressControls>;
}

export interface EgressListenerOptions {
  readonly sandboxId: string;
  /** Entries of `network.allow`. None: the door refuses everything. */
  readonly allow: readonly string[];
  /** The user that runs the sandbox. Default: the server's own. */
  readonly ownerUid?: number;
  readonly onDecision?: (decision: EgressDecision) => void;
}

export interface Egress {
  open(options: EgressListenerOptions): Promise<EgressListener>;
  /** Closes every door. */
  close(): Promise<void>;
}

/** The proxy outside the sandboxes: one door for each, and nothing passes that its list does not allow. */
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
      const listener = await openListener({
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
    if (presetHosts === undefined) throw new OwlError("internal", `the preset ${rule.preset} is not wired up`);
    const entries = (await presetHosts(rule.preset)).map(parseAllowRule);
    rules.push(...entries.filter((entry) => entry.kind !== "preset"));
  }
  return rules;
}

export interface EgressEnvOptions {
  /** Where the forwarder inside listens. */
  readonly port?: number;
  /** Where the preload for Node lies inside; absent: `fetch` of a Node that knows no proxy variables stays without network. */
  readonly nodePreload?: string;
}

/** The environment that leads programs inside a sandbox to the proxy. It is a courtesy, not a control: there is no other way out. */
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
    // Newer Nodes read the variables above when they are told to, but keep to themselves why the proxy refused.
    ...(nodePreload === undefined ? { NODE_USE_ENV_PROXY: "1" } : { NODE_OPTIONS: `--require ${nodePreload}` }),
  };
}
