import { randomBytes } from "node:crypto";

const ID_BYTES = 9;

/**
 * The names under which this server holds places. It takes a new one when it cannot know what became of a batch: what
 * that batch may have taken goes with the old name, as soon as the calls that run under it have ended.
 */
export class Holders {
  readonly #open = new Map<string, number>();
  #current = newName();
  #isNew = true;
  #seq = 0;
  #acked = 0;
  /** To be told with the next batch. */
  fence: string[] = [];
  drop: string[] = [];

  get current(): string {
    return this.#current;
  }

  /** Whether the store has never heard of the current one. */
  get isNew(): boolean {
    return this.#isNew;
  }

  /** Old ones under which calls still run. */
  get others(): readonly string[] {
    return [...this.#open.keys()].filter((holder) => holder !== this.#current);
  }

  nextSeq(): number {
    return ++this.#seq;
  }

  /** The last batch of the current one that is known to have been run. */
  get acked(): number {
    return this.#acked;
  }

  known(seq: number): void {
    this.#isNew = false;
    this.#acked = seq;
  }

  take(): void {
    this.#open.set(this.#current, (this.#open.get(this.#current) ?? 0) + 1);
  }

  give(holder: string): void {
    const left = (this.#open.get(holder) ?? 1) - 1;
    if (left > 0) return void this.#open.set(holder, left);
    this.#open.delete(holder);
    if (holder !== this.#current) this.drop.push(holder);
  }

  /** @param isDoubtful Whether a batch of the old one may still be under way. */
  renew({ isDoubtful }: { readonly isDoubtful: boolean }): void {
    const old = this.#current;
    if (isDoubtful) this.fence.push(old);
    if (!this.#open.has(old)) this.drop.push(old);
    this.#current = newName();
    this.#isNew = true;
    this.#seq = 0;
    this.#acked = 0;
  }
}

function newName(): string {
  return randomBytes(ID_BYTES).toString("base64url");
}
