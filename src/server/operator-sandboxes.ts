import type { SandboxSummary, Sandboxes } from "../sandbox/sandboxes.ts";

/** What the operator sees of a sandbox: never its id, which would open it. */
export type OperatorView = Omit<SandboxSummary, "id" | "cellId"> & { readonly name: string };

/** Everybody's sandboxes, by name. Who may ask is decided by the door in front: the control socket or the admin scope. */
export class OperatorSandboxes {
  readonly #sandboxes: Sandboxes;

  constructor(sandboxes: Sandboxes) {
    this.#sandboxes = sandboxes;
  }

  list(): OperatorView[] {
    return this.#sandboxes.listAll().map(({ id: _id, cellId, ...rest }) => ({ ...rest, name: cellId }));
  }

  /** Says whether there was one. */
  destroy(name: string): Promise<boolean> {
    return this.#sandboxes.destroyCell(name);
  }
}
