import type { PlannedVolume } from "../config/plan-volumes.ts";
import type { Config } from "../config/schema.ts";
import { OwlError } from "../errors/owl-error.ts";
import type { Volume } from "./runtimes/runtime.ts";
import { OpenedVolumes } from "./opened-volumes.ts";
import type { Logger } from "../telemetry/logger.ts";

export interface LateVolumesOptions {
  readonly config: Config;
  /** `sandbox.volumes`, with what is protected in them. */
  readonly volumes: readonly PlannedVolume[];
  readonly logger: Logger;
}

/** The mounted folders, opened when the first sandbox, or the pool, needs them: commands that only look change nothing in them. */
export class LateVolumes {
  readonly #options: LateVolumesOptions;
  readonly #onReplaced: (path: string) => void;
  #opened: OpenedVolumes | undefined;

  constructor(options: LateVolumesOptions, onReplaced: (path: string) => void) {
    if (options.volumes.length !== options.config.sandbox.volumes.length)
      throw new OwlError("internal", "sandbox.volumes were not checked");
    this.#options = options;
    this.#onReplaced = onReplaced;
  }

  get volumes(): readonly Volume[] {
    const { volumes: planned, logger } = this.#options;
    this.#opened ??= new OpenedVolumes({ planned, logger, onReplaced: this.#onReplaced });
    return this.#opened.volumes;
  }

  close(): void {
    this.#opened?.close();
  }
}
