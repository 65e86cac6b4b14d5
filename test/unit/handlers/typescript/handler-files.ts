import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describeTypeScript } from "../../../../src/handlers/typescript/describe-files.ts";
import type { FileDescription } from "../../../../src/handlers/handler-description.ts";

/** A folder with handler files, and a cache of its own. */
export class HandlerFiles {
  readonly folder: string;
  readonly cacheFolder: string;

  private constructor(folder: string) {
    this.folder = join(folder, "handlers");
    this.cacheFolder = join(folder, "cache");
  }

  static async make(files: Readonly<Record<string, string>> = {}): Promise<HandlerFiles> {
    const made = new HandlerFiles(await mkdtemp(join(tmpdir(), "owlclaw-types-")));
    for (const [name, text] of Object.entries(files)) await made.write(name, text);
    return made;
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  async write(name: string, text: string): Promise<string> {
    await mkdir(dirname(this.path(name)), { recursive: true });
    await writeFile(this.path(name), text);
    return this.path(name);
  }

  async describe(...names: string[]): Promise<readonly FileDescription[]> {
    return describeTypeScript({ files: names.map((name) => this.path(name)), cacheFolder: this.cacheFolder });
  }

  async remove(): Promise<void> {
    await rm(dirname(this.folder), { recursive: true, force: true });
  }
}
