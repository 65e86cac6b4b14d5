import type { DeepReadonly } from "../../config/deep-freeze.ts";
import type { PolicyConfig } from "../../config/governance-schema.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { Policy } from "./policy.ts";
import { PolicyError } from "./terms.ts";
import { checked, readPolicyFile, policyWarnings } from "./read-policy-file.ts";
import { fileState, type FileStates } from "../../config/file-state.ts";
import type { LoadedConfig } from "../../config/load.ts";
import { PolledFiles } from "../../platform/polled-files.ts";

/** The keys of the configuration that hold the policy, and the file that may hold them instead. */
export type PolicyOrigin = DeepReadonly<PolicyConfig> & { readonly policyFile: string };

export interface PolicySourceOptions {
  readonly origin: PolicyOrigin;
  readonly logger: Logger;
}

/** The time of a reload, and what was wrong with the policy. */
export interface Reload {
  readonly atMs: number;
  readonly problems: readonly string[];
}

/** The policy in force. A reload replaces it as a whole or not at all. */
export class PolicySource {
  readonly #logger: Logger;
  readonly #listeners = new Set<(replaced: string) => void>();
  #current: Policy;
  #reloading: Promise<void> = Promise.resolve();
  #lastReload: Reload | undefined;

  private constructor(current: Policy, logger: Logger) {
    this.#current = current;
    this.#logger = logger;
    this.#warn();
  }

  /** @throws PolicyError: a server does not start with a policy that it cannot enforce. */
  static async open({ origin, logger }: PolicySourceOptions): Promise<PolicySource> {
    return new PolicySource(await readPolicy(origin), logger);
  }

  get current(): Policy {
    return this.#current;
  }

  /** The result of the last reload. */
  get lastReload(): Reload | undefined {
    return this.#lastReload;
  }

  /** The listener receives the revision that was replaced. */
  onChange(listener: (replaced: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Reloads run one after another, so that an older read never replaces a newer one. */
  reload(readOrigin: () => Promise<PolicyOrigin>): Promise<void> {
    this.#reloading = this.#reloading.then(() => this.#reload(readOrigin));
    return this.#reloading;
  }

  async #reload(readOrigin: () => Promise<PolicyOrigin>): Promise<void> {
    const { revision } = this.#current;
    try {
      const next = await readPolicy(await readOrigin());
      this.#lastReload = { atMs: Date.now(), problems: [] };
      if (next.revision === revision) return;
      this.#current = next;
      this.#logger.info("policy changed", { revision: next.revision, replaced: revision });
      this.#warn();
      for (const listener of this.#listeners) listener(revision);
    } catch (error) {
      const problems = error instanceof PolicyError ? error.problems : [error instanceof Error ? error.message : error];
      this.#lastReload = { atMs: Date.now(), problems: problems.slice(0, 20).map(String) };
      this.#logger.error("policy refused, the old one stays in force", { revision, problems: problems.slice(0, 20) });
    }
  }

  #warn(): void {
    for (const warning of policyWarnings(this.#current)) this.#logger.warning("policy warning", { warning });
  }
}

export async function readPolicy({ policyFile, ...rest }: PolicyOrigin): Promise<Policy> {
  const base = checked(policyKeys(rest));
  return new Policy(policyFile === "" ? base : await readPolicyFile(policyFile, base));
}

/** The configuration's section has more keys than a policy. */
function policyKeys(origin: DeepReadonly<PolicyConfig>): DeepReadonly<PolicyConfig> {
  const { timeZone, groupsClaim, defaults, clients, groups, labels, tools, rules } = origin;
  return { timeZone, groupsClaim, defaults, clients, groups, labels, tools, rules };
}

export interface PolicyWatchOptions extends PolicySourceOptions {
  /** The configuration that `origin` is part of. */
  readonly loaded: Pick<LoadedConfig, "read" | "reload"> | undefined;
}

/** Reloads the policy when its file, or the configuration that names it, changes. */
export class PolicyWatch {
  readonly source: PolicySource;
  readonly #options: PolicyWatchOptions;
  /** The state of the files at start, so that no change between this read and the first poll is missed. */
  readonly #read: FileStates;
  readonly #files = new PolledFiles(() => void this.reload());
  #isOn = false;

  private constructor(source: PolicySource, read: FileStates, options: PolicyWatchOptions) {
    this.source = source;
    this.#read = read;
    this.#options = options;
  }

  static async open(options: PolicyWatchOptions): Promise<PolicyWatch> {
    const read = await filesOf(options.origin, options.loaded?.read);
    const source = await PolicySource.open(options).catch((error: unknown) => {
      throw error instanceof PolicyError ? new Error(`the policy cannot be used:\n${error.message}`) : error;
    });
    return new PolicyWatch(source, read, options);
  }

  start(): void {
    this.#isOn = true;
    this.#files.look(this.#read);
  }

  stop(): void {
    this.#isOn = false;
    this.#files.stop();
  }

  reload(): Promise<void> {
    const { origin, loaded } = this.#options;
    return this.source.reload(async () => {
      const again = await loaded?.reload();
      const next = again?.config.governance ?? origin;
      const read = await filesOf(next, again?.read);
      // A file that cannot be used is watched too, so that it is loaded as soon as it is repaired.
      if (this.#isOn) this.#files.look(read);
      return next;
    });
  }
}

/** Taken before the policy's file is read. */
async function filesOf({ policyFile }: PolicyOrigin, ofConfig: FileStates = new Map()): Promise<FileStates> {
  return policyFile === "" ? ofConfig : new Map([...ofConfig, [policyFile, await fileState(policyFile)]]);
}
