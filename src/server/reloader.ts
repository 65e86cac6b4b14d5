import { ConfigError } from "../config/config-error.ts";
import { CONFIG_KEYS } from "../config/keys.ts";
import type { LoadedConfig } from "../config/load.ts";
import type { Config } from "../config/schema.ts";
import { PolicyError } from "../governance/policy/terms.ts";
import { readPolicy, type Reload } from "../governance/policy/policy-source.ts";
import type { Logger, LoggerLevel } from "../telemetry/logger.ts";
import { PolledFiles } from "../platform/polled-files.ts";

const MAX_PROBLEMS = 20;

/** What counts without a restart. */
const RELOADED = /^(?:logging\.level$|governance\.(?!failOpen$|approvalTimeoutSeconds$))/;

export interface ReloaderOptions {
  readonly loaded: Pick<LoadedConfig, "config" | "read" | "reload">;
  readonly logger: Logger;
  readonly setLevel: (level: LoggerLevel) => void;
  /** Has policy, skills, handlers and the certificate looked at again. */
  readonly refresh: () => Promise<void>;
}

/** Reads the configuration again, on a signal or when its file changed. What is wrong anywhere changes nothing at all. */
export class Reloader {
  readonly #options: ReloaderOptions;
  readonly #files = new PolledFiles(() => void this.#apply());
  #turn: Promise<void> = Promise.resolve();
  #last: Reload | undefined;

  constructor(options: ReloaderOptions) {
    this.#options = options;
    this.#files.look(options.loaded.read);
  }

  /** What came of the last read. */
  get last(): Reload | undefined {
    return this.#last;
  }

  /** Everything, whether a file changed or not. */
  async reload(reason: string): Promise<void> {
    const { logger, refresh } = this.#options;
    logger.info("reloading", { reason });
    if (!(await this.#apply())) return;
    await refresh();
    logger.info("reloaded");
  }

  close(): void {
    this.#files.stop();
  }

  /** One after the other, so that an older read never replaces a newer one. Says whether the configuration was good. */
  #apply(): Promise<boolean> {
    const applied = this.#turn.then(() => this.#read());
    this.#turn = applied.then(() => undefined);
    return applied;
  }

  async #read(): Promise<boolean> {
    const { loaded, logger, setLevel } = this.#options;
    try {
      const { config } = await loaded.reload();
      await readPolicy(config.governance);
      setLevel(config.logging.level);
      const keys = changedKeys(loaded.config, config);
      this.#last = { atMs: Date.now(), problems: [] };
      if (keys.length > 0) logger.warning("these settings count after a restart", { keys });
      return true;
    } catch (error) {
      const problems = problemsOf(error);
      this.#last = { atMs: Date.now(), problems: problems.map(String) };
      logger.error("configuration refused, the old one stays in force", { problems });
      return false;
    }
  }
}

function changedKeys(before: Config, after: Config): string[] {
  return CONFIG_KEYS.map(({ path }) => path).filter(
    (path) => !RELOADED.test(path) && JSON.stringify(valueAt(before, path)) !== JSON.stringify(valueAt(after, path)),
  );
}

function valueAt(config: Config, path: string): unknown {
  return path
    .split(".")
    .reduce<unknown>(
      (value, name) => (typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined),
      config,
    );
}

function problemsOf(error: unknown): readonly unknown[] {
  if (error instanceof PolicyError) return error.problems.slice(0, MAX_PROBLEMS);
  if (!(error instanceof ConfigError)) return [error instanceof Error ? error.message : String(error)];
  return error.issues.slice(0, MAX_PROBLEMS).map(({ path, reason, fix }) => `${path}: ${reason}; ${fix}`);
}
