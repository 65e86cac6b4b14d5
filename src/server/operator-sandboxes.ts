import type { OperatorAct } from "../call/operator-acts.ts";
import type { Sandboxes } from "../sandbox/sandboxes.ts";
import type { SandboxHealth } from "./sandbox-health.ts";

/** What the operator sees of a sandbox, over HTTP and on the command line: never its id, which would open it. */
export interface OperatorView {
  readonly name: string;
  readonly owner: string;
  readonly state: string;
  readonly template: string;
  readonly flavor: string;
  readonly runtime: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly created_at: string;
  readonly last_used_at: string;
  readonly ends_at: string;
}

/** Everybody's sandboxes, by name. Who may ask is decided by the door in front: the control socket or the admin scope. */
export class OperatorSandboxes {
  readonly #sandboxes: Sandboxes;
  /** Whether sandboxes can run at all. */
  readonly health: () => SandboxHealth;
  /** Rejects when it cannot be written. Set once there is a ledger. */
  record: ((act: OperatorAct) => Promise<void>) | undefined;

  constructor(sandboxes: Sandboxes, health: () => SandboxHealth) {
    this.#sandboxes = sandboxes;
    this.health = health;
  }

  list(): OperatorView[] {
    return this.#sandboxes.listAll().map((each) => ({
      name: each.instanceId,
      owner: each.ownerId,
      state: each.state,
      template: each.template,
      flavor: each.flavor,
      runtime: each.runtime,
      labels: each.labels,
      created_at: new Date(each.createdAtMs).toISOString(),
      last_used_at: new Date(each.lastUsedAtMs).toISOString(),
      ends_at: new Date(each.endsAtMs).toISOString(),
    }));
  }

  /** Says whether there was one. It is on record before it is done. */
  async destroy(name: string, by: Pick<OperatorAct, "by" | "transport" | "traceId">): Promise<boolean> {
    if (!this.#sandboxes.listAll().some(({ instanceId }) => instanceId === name)) return false;
    await this.record?.({ ...by, name: "operator.destroy", args: { sandbox: name }, sandbox: name });
    return this.#sandboxes.endInstance(name, "destroyed");
  }
}
