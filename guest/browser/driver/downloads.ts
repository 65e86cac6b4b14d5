import { constants, copyFileSync, rmSync, statSync } from "node:fs";
import { basename, extname } from "node:path";
import type { Download } from "playwright-core";
import { errorCode } from "../../failure.ts";
import type { Workspace } from "../../paths.ts";

const FOLDER = "downloads";
const NAMES_MAX = 1000;
const NAME_CHARS_MAX = 120;

/** Saves downloads of pages in the workspace. */
export class Downloads {
  readonly #workspace: Workspace;
  readonly #note: (event: string) => void;
  readonly #running = new Set<Promise<void>>();
  #saved: string[] = [];

  constructor(workspace: Workspace, note: (event: string) => void) {
    this.#workspace = workspace;
    this.#note = note;
  }

  get isBusy(): boolean {
    return this.#running.size > 0;
  }

  save(download: Download): void {
    const saving = this.#save(download).finally(() => this.#running.delete(saving));
    this.#running.add(saving);
  }

  /** Resolves when no download is in progress. */
  async done(): Promise<void> {
    await Promise.all(this.#running);
  }

  take(): readonly string[] {
    const saved = this.#saved;
    this.#saved = [];
    return saved;
  }

  async #save(download: Download): Promise<void> {
    const name = safeName(download.suggestedFilename());
    try {
      const source = await download.path();
      const path = this.#copy(source, name);
      this.#saved.push(path);
      this.#note(`downloaded ${path} (${statSync(source).size} bytes)`);
      rmSync(source, { force: true });
    } catch (error) {
      this.#note(`the download of ${name} failed: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  /** Never replaces an existing file. */
  #copy(source: string, name: string): string {
    const extension = extname(name);
    const stem = name.slice(0, name.length - extension.length);
    for (let copy = 0; copy < NAMES_MAX; copy += 1) {
      const path = `${FOLDER}/${copy === 0 ? name : `${stem}-${copy}${extension}`}`;
      const place = this.#workspace.openPlace(path);
      try {
        copyFileSync(source, place.path, constants.COPYFILE_EXCL);
        return path;
      } catch (error) {
        if (errorCode(error) !== "EEXIST") throw error;
      } finally {
        place.close();
      }
    }
    throw new Error("there are too many files of that name");
  }
}

/** The name is chosen by the page or its server. */
function safeName(suggested: string): string {
  const plain = basename(suggested.replaceAll("\\", "/"))
    .replaceAll(/[\u0000-\u001f\u007f/]/g, "_")
    .replace(/^\.+/, "");
  const extension = extname(plain).slice(0, 20);
  const stem = plain.slice(0, plain.length - extname(plain).length).slice(0, NAME_CHARS_MAX);
  return stem === "" && extension === "" ? "download" : `${stem}${extension}`;
}
