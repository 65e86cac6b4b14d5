import type { LoadedConfig } from "../config/load.ts";
import type { PolicyOrigin, PolicySource } from "../governance/policy/policy-source.ts";
import { FilesInView } from "../watching/look-at-files.ts";

export interface PolicyWatchOptions {
  readonly source: PolicySource;
  /** What the server started with. */
  readonly origin: PolicyOrigin;
  readonly loaded: Pick<LoadedConfig, "file" | "reload"> | undefined;
}

/** Has the policy read again when its file, or the configuration that names it, changes. */
export class PolicyWatch {
  readonly #options: PolicyWatchOptions;
  readonly #files = new FilesInView(() => void this.reload());
  #isOn = false;

  constructor(options: PolicyWatchOptions) {
    this.#options = options;
  }

  start(): void {
    this.#isOn = true;
    this.#lookAt(this.#options.origin);
  }

  stop(): void {
    this.#isOn = false;
    this.#files.stop();
  }

  reload(): Promise<void> {
    const { source, origin, loaded } = this.#options;
    return source.reload(async () => {
      const next = (await loaded?.reload())?.config.governance ?? origin;
      // Also a file that cannot be used yet: it counts as soon as it is repaired.
      if (this.#isOn) this.#lookAt(next);
      return next;
    });
  }

  #lookAt({ policyFile }: PolicyOrigin): void {
    const { loaded } = this.#options;
    this.#files.look([policyFile, loaded?.file ?? ""].filter((file) => file !== ""));
  }
}
