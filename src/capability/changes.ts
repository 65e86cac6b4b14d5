import type { ListKind } from "./registry.ts";

export type Change =
  | { readonly kind: "list"; readonly list: ListKind }
  | { readonly kind: "resource"; readonly uri: string };

/** Carries what changed from whoever noticed to every open connection. */
export class Changes {
  #listeners = new Set<(change: Change) => void>();

  listChanged(list: ListKind): void {
    this.#publish({ kind: "list", list });
  }

  resourceUpdated(uri: string): void {
    this.#publish({ kind: "resource", uri });
  }

  subscribe(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #publish(change: Change): void {
    for (const listener of this.#listeners) listener(change);
  }
}
