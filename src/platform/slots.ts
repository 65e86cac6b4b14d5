/**
 * Stores objects of which thousands come and go, with few at a time. A `Set` or `Map` that is used so makes a new table
 * every few entries, and the old table keeps what it held: once it is in the old generation of the heap, everything
 * that was in flight then survives many garbage collections. An emptied slot keeps nothing.
 */
export class Slots<T extends object> {
  readonly #items: (T | undefined)[] = [];
  readonly #free: number[] = [];

  get size(): number {
    return this.#items.length - this.#free.length;
  }

  /** Returns the slot, for `get` and `delete`. */
  add(item: T): number {
    const free = this.#free.pop();
    if (free === undefined) return this.#items.push(item) - 1;
    this.#items[free] = item;
    return free;
  }

  get(slot: number): T | undefined {
    return this.#items[slot];
  }

  delete(slot: number): void {
    if (this.#items[slot] === undefined) return;
    this.#items[slot] = undefined;
    this.#free.push(slot);
  }

  *[Symbol.iterator](): IterableIterator<T> {
    for (const item of this.#items) if (item !== undefined) yield item;
  }
}

/** The same by number. Its map has the same problem, but keeps only numbers. */
export class NumberedSlots<T extends object> {
  readonly #slots = new Slots<T>();
  readonly #slotOf = new Map<number, number>();

  get size(): number {
    return this.#slots.size;
  }

  set(id: number, item: T): void {
    this.delete(id);
    this.#slotOf.set(id, this.#slots.add(item));
  }

  get(id: number): T | undefined {
    const slot = this.#slotOf.get(id);
    return slot === undefined ? undefined : this.#slots.get(slot);
  }

  delete(id: number): T | undefined {
    const slot = this.#slotOf.get(id);
    if (slot === undefined) return undefined;
    const item = this.#slots.get(slot);
    this.#slotOf.delete(id);
    this.#slots.delete(slot);
    return item;
  }

  /** The current items, oldest first, as a copy: the caller may delete items while it iterates. */
  entries(): readonly (readonly [id: number, item: T])[] {
    return [...this.#slotOf.keys()].flatMap((id) => {
      const item = this.get(id);
      return item === undefined ? [] : [[id, item] as const];
    });
  }
}
