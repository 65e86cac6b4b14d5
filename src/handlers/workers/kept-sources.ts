import fs from "node:fs";

/** Texts of files that are broken on the disk, as they were when they worked. */
export class KeptSources {
  readonly #texts = new Map<string, string>();

  has(file: string): boolean {
    return this.#texts.has(file);
  }

  add(texts: Readonly<Record<string, string>>): void {
    if (this.#texts.size === 0) this.#standIn();
    for (const [path, text] of Object.entries(texts)) this.#texts.set(path, text);
  }

  /** The compiler of handlers reads files in this one way, those that a file imports included; nothing else is touched. */
  #standIn(): void {
    fs.readFileSync = new Proxy(fs.readFileSync, {
      apply: (read, self, [path, ...options]: unknown[]): unknown => {
        const kept = typeof path === "string" && options[0] === "utf8" ? this.#texts.get(path) : undefined;
        return kept ?? Reflect.apply(read, self, [path, ...options]);
      },
    });
  }
}
