import { fileState, type FileStates } from "../../config/file-state.ts";
import type { LoadedConfig } from "../../config/load.ts";
import { PolicyError } from "./policy-error.ts";
import { type PolicyOrigin, PolicySource, type PolicySourceOptions } from "./policy-source.ts";
import { PolledFiles } from "../../platform/polled-files.ts";

export interface PolicyWatchOptions extends PolicySourceOptions {
  /** The configuration that `origin` is part of. */
  readonly loaded: Pick<LoadedConfig, "read" | "reload"> | undefined;
}

/** Has the policy read again when its file, or the configuration that names it, changes. */
export class PolicyWatch {
  readonly source: PolicySource;
  readonly #options: PolicyWatchOptions;
  /** What the server started with, so that no change between its reading and the first look is missed. */
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
      // Also a file that cannot be used yet: it counts as soon as it is repaired.
      if (this.#isOn) this.#files.look(read);
      return next;
    });
  }
}

/** Before the policy's file is read. */
async function filesOf({ policyFile }: PolicyOrigin, ofConfig: FileStates = new Map()): Promise<FileStates> {
  return policyFile === "" ? ofConfig : new Map([...ofConfig, [policyFile, await fileState(policyFile)]]);
}
