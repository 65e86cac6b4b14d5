import { OwlError } from "../errors/owl-error.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { Sandboxes } from "../sandbox/sandboxes.ts";
import { sessionDigest } from "../telemetry/session-digest.ts";
import type { ActivityLog } from "./activity-log.ts";
import type { Operator } from "./operator-sessions.ts";

/** Something an operator does in or with a sandbox, for the ledger. */
export interface SandboxAct {
  readonly by: string;
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly sandbox: string;
}

export interface SandboxDeskOptions {
  readonly sandboxes: Sandboxes;
  readonly activity: ActivityLog;
  /** Rejects when it cannot be written: then nothing is done. */
  readonly record: (act: SandboxAct) => Promise<void>;
}

/** Sandboxes as operators get at them: by the name of their cell, on the record, whoever owns them. */
export class SandboxDesk {
  readonly activity: ActivityLog;
  readonly #options: SandboxDeskOptions;

  constructor(options: SandboxDeskOptions) {
    this.#options = options;
    this.activity = options.activity;
  }

  /** @throws OwlError when there is none of this name. */
  get(instanceId: string): Sandbox {
    const sandbox = this.#options.sandboxes.findByInstance(instanceId);
    if (sandbox !== undefined) return sandbox;
    throw new OwlError("session_not_found", "there is no such sandbox: it has ended, or never was", {
      hint: "go back to the list of sandboxes",
    });
  }

  /** Keeps it from ending for want of use while somebody works with it. */
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

  async record(operator: Operator, instanceId: string, { name, args = {} }: Wish): Promise<Sandbox> {
    const sandbox = this.get(instanceId);
    await this.#options.record({
      by: operator.id,
      name: `operator.${name}`,
      args: { sandbox: instanceId, ...args },
      sandbox: sessionDigest(sandbox.facts.id),
    });
    return sandbox;
  }

  /** On the record, and before the eyes of whoever looks on. */
  async act(operator: Operator, instanceId: string, wish: Wish): Promise<Sandbox> {
    const { name, args = {} } = wish;
    const sandbox = await this.record(operator, instanceId, wish);
    const said = Object.values(args).map(String).join(" ").slice(0, 200);
    this.activity.add(instanceId, { kind: "state", text: `${name} ${said}`.trimEnd(), by: operator.id });
    return sandbox;
  }

  end(instanceId: string, how: "destroyed" | "stopped"): Promise<boolean> {
    return this.#options.sandboxes.endInstance(instanceId, how);
  }
}

interface Wish {
  readonly name: string;
  readonly args?: Readonly<Record<string, unknown>>;
}
