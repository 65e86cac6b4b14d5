import { hash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzip } from "node:zlib";

const compress = promisify(gzip);

/** The folder of the page: beside the compiled server, or in `dist/` when the TypeScript source runs. */
const PAGE_FOLDER: string = fileURLToPath(
  new URL(import.meta.url.endsWith(".ts") ? "../../dist/dashboard" : "../dashboard", import.meta.url),
);

export interface PageFile {
  readonly type: string;
  readonly bytes: Buffer;
  /** The compressed bytes. */
  readonly gzip: Buffer;
  readonly etag: string;
}

const TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  png: "image/png",
  woff2: "font/woff2",
  json: "application/json",
};

/**
 * The files of the page, by name. Requested names are looked up in this map, so that no name can reach another folder.
 */
export class PageFiles {
  readonly #folder: string;
  #files: Promise<ReadonlyMap<string, PageFile>> | undefined;

  constructor(folder: string = PAGE_FOLDER) {
    this.#folder = folder;
  }

  /** `index.html`, or `assets/NAME`. */
  async get(name: string): Promise<PageFile | undefined> {
    this.#files ??= this.#read();
    try {
      return (await this.#files).get(name);
    } catch (error) {
      this.#files = undefined;
      throw error;
    }
  }

  async #read(): Promise<ReadonlyMap<string, PageFile>> {
    const files = new Map<string, PageFile>();
    const index = await this.#file("index.html");
    if (index !== undefined) files.set("index.html", index);
    const names = await readdir(join(this.#folder, "assets")).catch(() => []);
    for (const name of names) {
      const file = await this.#file(join("assets", name));
      if (file !== undefined) files.set(`assets/${name}`, file);
    }
    return files;
  }

  async #file(name: string): Promise<PageFile | undefined> {
    const type = TYPES[name.slice(name.lastIndexOf(".") + 1)];
    if (type === undefined) return undefined;
    const bytes = await readFile(join(this.#folder, name)).catch(() => undefined);
    return (
      bytes && {
        type,
        bytes,
        gzip: await compress(bytes, { level: 9 }),
        etag: `"${hash("sha256", bytes, "base64url").slice(0, 27)}"`,
      }
    );
  }
}
