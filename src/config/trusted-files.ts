import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, isAbsolute, join } from "node:path";
import { defaultDataFolder } from "./resolve-paths.ts";
import type { Environment } from "./text-layers.ts";

/**
 * The configuration files of working directories that this user has trusted, with their whole content.
 * They are kept in the user's own data folder: a configuration file cannot say where.
 */
export class TrustedFiles {
  readonly folder: string;

  constructor(env: Environment) {
    // A relative path means a folder of the working directory, which could bring its own records.
    const named = [env["MCP_SERVER_SANDBOX_ROOT"], env["SANDBOX_ROOT"]].find(
      (path) => path !== undefined && isAbsolute(path),
    );
    this.folder = join(named ?? defaultDataFolder(env), "trusted");
  }

  /**
   * Where the content is kept that was trusted at this path. A link counts as itself: paths in the file are relative to where it
   * was found, and not to where it leads.
   */
  recordOf(file: string): string {
    const path = join(realpathSync(dirname(file)), basename(file));
    return join(this.folder, `${createHash("sha256").update(path).digest("hex")}.yaml`);
  }

  /** The content that was trusted last; `undefined` when this path was never trusted. */
  read(file: string): string | undefined {
    try {
      return readFileSync(this.recordOf(file), "utf8");
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
      throw error;
    }
  }

  /** Says whether there was a record. */
  remove(file: string): boolean {
    const record = this.recordOf(file);
    const isThere = existsSync(record);
    rmSync(record, { force: true });
    return isThere;
  }

  trust(file: string, text: string): void {
    const record = this.recordOf(file);
    mkdirSync(dirname(record), { recursive: true, mode: 0o700 });
    const fresh = `${record}.${process.pid}`;
    writeFileSync(fresh, text, { mode: 0o600, flush: true });
    renameSync(fresh, record);
  }
}
