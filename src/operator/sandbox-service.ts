import { OwlError } from "../errors/owl-error.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { Sandboxes } from "../sandbox/sandboxes.ts";
import { sessionDigest } from "../telemetry/redact.ts";
import type { ActivityLog } from "./activity-log.ts";
import type { Operator } from "./operator-sessions.ts";
import type { OperatorAct } from "../call/operator-acts.ts";
import type { SandboxHealth } from "../sandbox/sandbox-runtime.ts";

/** An act of an operator on a sandbox, for the ledger. */
export interface SandboxAct {
  readonly by: string;
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly sandbox: string;
}

export interface OperatorSandboxServiceOptions {
  readonly sandboxes: Sandboxes;
  readonly activity: ActivityLog;
  /** Rejects when the act cannot be recorded. The act is then not done. */
  readonly record: (act: SandboxAct) => Promise<void>;
}

/** Gives operators access to the sandboxes of all owners, by instance name. Acts are recorded. */
export class OperatorSandboxService {
  readonly activity: ActivityLog;
  readonly #options: OperatorSandboxServiceOptions;

  constructor(options: OperatorSandboxServiceOptions) {
    this.#options = options;
    this.activity = options.activity;
  }

  /** @throws OwlError when no sandbox has this name. */
  get(instanceId: string): Sandbox {
    const sandbox = this.#options.sandboxes.findByInstance(instanceId);
    if (sandbox !== undefined) return sandbox;
    throw new OwlError("session_not_found", "there is no such sandbox: it has ended, or never was", {
      hint: "go back to the list of sandboxes",
    });
  }

  /** Keeps the sandbox from being stopped as idle while `work` runs. */
  async use<T>(instanceId: string, work: (sandbox: Sandbox) => Promise<T>): Promise<T> {
    const sandbox = this.get(instanceId);
    sandbox.acquire();
    try {
      await sandbox.ready();
      return await work(sandbox);
    } finally {
      sandbox.release();
    }
  }

  async record(operator: Operator, instanceId: string, { name, args = {} }: RecordedAct): Promise<Sandbox> {
    const sandbox = this.get(instanceId);
    await this.#options.record({
      by: operator.id,
      name: `operator.${name}`,
      args: { sandbox: instanceId, ...args },
      sandbox: sessionDigest(sandbox.facts.id),
    });
    return sandbox;
  }

  /** Records the act, and shows it to operators who watch the sandbox. */
  async act(operator: Operator, instanceId: string, act: RecordedAct): Promise<Sandbox> {
    const { name, args = {} } = act;
    const sandbox = await this.record(operator, instanceId, act);
    const said = Object.values(args).map(String).join(" ").slice(0, 200);
    this.activity.add(instanceId, { kind: "state", text: `${name} ${said}`.trimEnd(), by: operator.id });
    return sandbox;
  }

  end(instanceId: string, how: "destroyed" | "stopped"): Promise<boolean> {
    return this.#options.sandboxes.endInstance(instanceId, how);
  }
}

interface RecordedAct {
  readonly name: string;
  readonly args?: Readonly<Record<string, unknown>>;
}

/**
 * A sandbox as operators see it, over HTTP and on the command line. It does not contain the session id, which would
 * give access to it.
 */
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

export interface OperatorSandboxesOptions {
  readonly sandboxes: Sandboxes;
  /** Whether sandboxes can run at all. */
  readonly health: () => SandboxHealth;
  /** Rejects when the act cannot be recorded. Absent without a ledger. */
  readonly record: ((act: OperatorAct) => Promise<void>) | undefined;
}

/** The sandboxes of all clients, by name. The control socket and the admin scope decide who may ask. */
export class OperatorSandboxes {
  readonly health: () => SandboxHealth;
  readonly #options: OperatorSandboxesOptions;

  constructor(options: OperatorSandboxesOptions) {
    this.#options = options;
    this.health = options.health;
  }

  list(): OperatorView[] {
    return this.#options.sandboxes.listAll().map((each) => ({
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

  /** Returns whether the sandbox existed. The act is recorded before the sandbox ends. */
  async destroy(name: string, by: Pick<OperatorAct, "by" | "transport" | "traceId">): Promise<boolean> {
    const sandbox = this.#options.sandboxes.findByInstance(name);
    if (sandbox === undefined) return false;
    const act = { ...by, name: "operator.destroy", args: { sandbox: name }, sandbox: sessionDigest(sandbox.facts.id) };
    await this.#options.record?.(act);
    return this.#options.sandboxes.endInstance(name, "destroyed");
  }
}
