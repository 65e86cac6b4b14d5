export interface ShelfChange {
  readonly isChanged: boolean;
  /** Names that were another's already. */
  readonly refused: readonly string[];
}

/** Things by name, each of which remembers who brought it. */
export class Shelf<T> {
  readonly #kind: string;
  readonly #nameOf: (item: T) => string;
  #items = new Map<string, { readonly item: T; readonly source: string | undefined }>();

  constructor(kind: string, nameOf: (item: T) => string) {
    this.#kind = kind;
    this.#nameOf = nameOf;
  }

  add(item: T): void {
    const name = this.#nameOf(item);
    if (this.#items.has(name)) throw new Error(`there is already a ${this.#kind} named "${name}"`);
    this.#items.set(name, { item, source: undefined });
  }

  get(name: string): T | undefined {
    return this.#items.get(name)?.item;
  }

  /** Everything that `source` brought before goes; readers never see a half of it. */
  replace(source: string, items: readonly T[]): ShelfChange {
    const before = this.#items;
    const after = new Map([...before].filter(([, entry]) => entry.source !== source));
    const refused: string[] = [];
    for (const item of items) {
      const name = this.#nameOf(item);
      if (after.has(name)) refused.push(name);
      else after.set(name, { item, source });
    }
    this.#items = after;
    const isSame =
      after.size === before.size && [...after].every(([name, { item }]) => before.get(name)?.item === item);
    return { isChanged: !isSame, refused };
  }

  /** What one source brought, by name. */
  from(source: string): readonly T[] {
    return this.sorted().filter((item) => this.#items.get(this.#nameOf(item))?.source === source);
  }

  sorted(): readonly T[] {
    return [...this.#items].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, { item }]) => item);
  }
}
