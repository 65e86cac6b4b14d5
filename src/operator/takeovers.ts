import type { TerminalSize } from "../../contract/guest.ts";
import { OwlError } from "../errors/owl-error.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { ActivityLog } from "./activity-log.ts";
import type { Operator } from "./operator-sessions.ts";
import { OperatorTerminal, type TerminalHost } from "./operator-terminal.ts";
import type { OperatorSandboxService } from "./sandbox-service.ts";

/** The part of the service that takeovers use. */
export interface TakeoverService {
  readonly activity: Pick<ActivityLog, "add">;
  get(instanceId: string): TerminalHost & Pick<Sandbox, "takenOverBy" | "takeOver" | "giveBack">;
  record(...asked: Parameters<OperatorSandboxService["record"]>): Promise<unknown>;
  act(...asked: Parameters<OperatorSandboxService["act"]>): Promise<unknown>;
}

/** A takeover ends after this time without input, so that an operator who left does not block the agent. */
const FORGOTTEN_MS = 1_800_000;
/** Longer than the usual pause between two keys. */
const REST_MS = 2000;
const USUAL_SIZE: TerminalSize = { cols: 80, rows: 24 };

interface Takeover {
  readonly operator: Operator;
  terminal: OperatorTerminal | undefined;
  timer: NodeJS.Timeout | undefined;
  restTimer: NodeJS.Timeout | undefined;
}

/** The operator who has taken over each sandbox, and their shells. */
export class Takeovers {
  readonly #service: TakeoverService;
  readonly #taken = new Map<string, Takeover>();

  constructor(service: TakeoverService) {
    this.#service = service;
  }

  /**
   * From now on calls of the owner are refused.
   * @throws OwlError when another operator has taken it over.
   */
  async take(operator: Operator, instanceId: string): Promise<void> {
    const sandbox = this.#service.get(instanceId);
    const { takenOverBy } = sandbox;
    if (takenOverBy === operator.id) return this.#touch(instanceId);
    if (takenOverBy !== undefined)
      throw new OwlError("sandbox_taken_over", `${takenOverBy} works in it already`, {
        hint: "wait until it is given back",
      });
    // Before the first await, so that two operators cannot both take it over.
    sandbox.takeOver(operator.id);
    const takeover: Takeover = { operator, terminal: undefined, timer: undefined, restTimer: undefined };
    this.#taken.set(instanceId, takeover);
    this.#touch(instanceId);
    try {
      await this.#service.act(operator, instanceId, { name: "takeover" });
    } catch (error) {
      if (this.#taken.get(instanceId) === takeover) {
        this.#forget(instanceId);
        sandbox.giveBack();
      }
      throw error;
    }
  }

  /** Any operator may give it back, because the one who took it over may have left. */
  async giveBack(operator: Operator, instanceId: string): Promise<void> {
    const sandbox = this.#service.get(instanceId);
    if (sandbox.takenOverBy === undefined) return;
    const takeover = this.#taken.get(instanceId);
    if (takeover !== undefined) await this.#recordRest(instanceId, takeover);
    await this.#service.act(operator, instanceId, { name: "giveback" });
    // During the await another operator may have given it back, and a third may have taken it over.
    if (this.#taken.get(instanceId) !== takeover) return;
    this.#forget(instanceId);
    sandbox.giveBack();
  }

  /** Sends input to the shell. Each line is recorded before the shell receives it. */
  async type(operator: Operator, instanceId: string, input: string): Promise<void> {
    const terminal = await this.#terminalOf(operator, instanceId, USUAL_SIZE);
    for (const line of terminal.linesWith(input))
      await this.#service.record(operator, instanceId, { name: "terminal", args: { line } });
    await terminal.type(input);
    this.#recordRestLater(instanceId);
  }

  /** A program can act on a single character, so characters without a line end are recorded after a pause. */
  #recordRestLater(instanceId: string): void {
    const takeover = this.#taken.get(instanceId);
    if (takeover === undefined) return;
    clearTimeout(takeover.restTimer);
    takeover.restTimer = setTimeout(() => {
      this.#recordRest(instanceId, takeover).catch(() => this.#recordRestLater(instanceId));
    }, REST_MS);
    takeover.restTimer.unref();
  }

  async #recordRest(instanceId: string, { operator, terminal, restTimer }: Takeover): Promise<void> {
    clearTimeout(restTimer);
    const line = terminal?.takeRest() ?? "";
    if (line === "") return;
    try {
      await this.#service.record(operator, instanceId, { name: "terminal", args: { line } });
    } catch (error) {
      terminal?.putBack(line);
      throw error;
    }
  }

  async resize(operator: Operator, instanceId: string, size: TerminalSize): Promise<void> {
    const terminal = await this.#terminalOf(operator, instanceId, size);
    await terminal.resize(size);
  }

  /**
   * Extends the takeover of this operator.
   * @throws OwlError for other operators.
   */
  renew(operator: Operator, instanceId: string): void {
    this.#renewed(operator, instanceId);
  }

  #renewed(operator: Operator, instanceId: string): Takeover {
    const takeover = this.#taken.get(instanceId);
    if (this.#service.get(instanceId).takenOverBy !== operator.id || takeover === undefined)
      throw new OwlError("forbidden", "only who has taken the sandbox over works in it", {
        hint: "take it over first",
      });
    this.#touch(instanceId);
    return takeover;
  }

  async #terminalOf(operator: Operator, instanceId: string, size: TerminalSize): Promise<OperatorTerminal> {
    const takeover = this.#renewed(operator, instanceId);
    const sandbox = this.#service.get(instanceId);
    if (takeover.terminal?.isOpen !== true) {
      await this.#recordRest(instanceId, takeover);
      const { activity } = this.#service;
      const show = (text: string): void =>
        activity.add(instanceId, { kind: "terminal", stream: "stdout", text, by: operator.id });
      takeover.terminal = new OperatorTerminal({ sandbox, size, show });
    }
    await takeover.terminal.ready;
    return takeover.terminal;
  }

  #touch(instanceId: string): void {
    const takeover = this.#taken.get(instanceId);
    if (takeover === undefined) return;
    clearTimeout(takeover.timer);
    const giveBack = (): void =>
      void this.giveBack(takeover.operator, instanceId).catch(() => this.#tryLater(instanceId));
    takeover.timer = setTimeout(giveBack, FORGOTTEN_MS);
    takeover.timer.unref();
  }

  /** When giving it back could not be recorded, the takeover stays and is tried again later. */
  #tryLater(instanceId: string): void {
    try {
      this.#service.get(instanceId);
      this.#touch(instanceId);
    } catch {
      // The sandbox has ended meanwhile, so there is nothing to give back.
      this.#forget(instanceId);
    }
  }

  #forget(instanceId: string): void {
    const takeover = this.#taken.get(instanceId);
    clearTimeout(takeover?.timer);
    clearTimeout(takeover?.restTimer);
    takeover?.terminal?.close();
    this.#taken.delete(instanceId);
  }
}
