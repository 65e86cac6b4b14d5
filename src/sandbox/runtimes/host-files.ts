import { readdir, rename, rm, writeFile, access, chmod, rmdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import { identifyProcess } from "../../platform/process-identity.ts";
import { randomBytes } from "node:crypto";

const DRAFT = /\.draft-(\d+)-(\d+)$/;

/** A name beside the file with the identity of the writing process. */
export function draftName(file: string): string {
  return `${file}.draft-${process.pid}-${identifyProcess(process.pid)?.startTicks ?? 0}`;
}

/** Atomic: readers see the old content or the new one. */
export async function replaceFile(file: string, data: string | Buffer, mode: number): Promise<void> {
  const draft = draftName(file);
  await writeFile(draft, data, { mode });
  await rename(draft, file);
}

/** Removes the drafts of dead processes. */
export async function sweepDrafts(folder: string): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    const [, pid, startTicks] = DRAFT.exec(name) ?? [];
    if (pid === undefined || identifyProcess(Number(pid))?.startTicks === startTicks) continue;
    await rm(join(folder, name), { force: true });
  }
}

export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && "code" in error && typeof error.code === "string" && codes.includes(error.code);
}

export async function isThere(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}

/**
 * Removes a folder that programs of a sandbox have written to, after they have ended. Removes as much as possible and rejects
 * when anything is left.
 */
export async function removeTree(folder: string): Promise<void> {
  try {
    await rm(folder, { recursive: true, force: true, maxRetries: 3 });
  } catch {
    await new FlatRemoval(folder).run();
  }
}

/**
 * For folders without permissions, and for paths that are longer than the system accepts: each folder gets its permissions back
 * and is moved to the top, so that every path has at most two names.
 */
class FlatRemoval {
  readonly #top: string;
  readonly #prefix = randomBytes(8).toString("hex");
  readonly #waiting: Buffer[] = [];
  readonly #errors: Error[] = [];
  #raised = 0;

  constructor(top: string) {
    this.#top = top;
  }

  async run(): Promise<void> {
    this.#waiting.push(Buffer.from(this.#top));
    const found: Buffer[] = [];
    for (let folder = this.#waiting.pop(); folder !== undefined; folder = this.#waiting.pop()) {
      await this.#empty(folder);
      found.push(folder);
    }
    // The top folder was found first and is removed last.
    for (const folder of found.toReversed()) await this.#try(() => rmdir(folder));
    const [first] = this.#errors;
    if (first !== undefined) throw first;
  }

  async #empty(folder: Buffer): Promise<void> {
    await chmod(folder, 0o700).catch(() => undefined);
    await this.#try(async () => {
      // As bytes: a name may not be valid UTF-8.
      for (const entry of await readdir(folder, { encoding: "buffer", withFileTypes: true })) {
        const path = Buffer.concat([folder, Buffer.from("/"), entry.name]);
        await this.#try(() => (entry.isDirectory() ? this.#raise(path) : unlink(path)));
      }
    });
  }

  /** A folder must be writable to be moved. */
  async #raise(folder: Buffer): Promise<void> {
    await chmod(folder, 0o700).catch(() => undefined);
    this.#raised += 1;
    const raised = Buffer.from(join(this.#top, `${this.#prefix}-${this.#raised}`));
    await rename(folder, raised);
    this.#waiting.push(raised);
  }

  async #try(act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      this.#errors.push(error instanceof Error ? error : new Error(String(error)));
    }
  }
}
