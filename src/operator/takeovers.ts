import { OwlError } from "../errors/owl-error.ts";
import type { TerminalSize } from "../sandbox/guest-methods.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { ActivityLog } from "./activity-log.ts";
import type { Operator } from "./operator-sessions.ts";
import { OperatorTerminal, type TerminalHost } from "./operator-terminal.ts";
import type { SandboxDesk } from "./sandbox-desk.ts";

/** What is wanted of the desk here. */
export interface TakeoverDesk {
  readonly activity: Pick<ActivityLog, "add">;
  get(cellId: string): TerminalHost & Pick<Sandbox, "takenOverBy" | "takeOver" | "giveBack">;
  record(...asked: Parameters<SandboxDesk["record"]>): Promise<unknown>;
  act(...asked: Parameters<SandboxDesk["act"]>): Promise<unknown>;
}

/** An operator who went away must not keep an agent waiting for ever. */
const FORGOTTEN_MS = 1_800_000;
/** Longer than people pause between two keys. */
const REST_MS = 2000;
const USUAL_SIZE: TerminalSize = { cols: 80, rows: 24 };

interface Takeover {
  readonly operator: Operator;
  terminal: OperatorTerminal | undefined;
  timer: NodeJS.Timeout | undefined;
  restTimer: NodeJS.Timeout | undefined;
}

/** Which operator works in which sandbox, and the shells that they have there. */
export class Takeovers {
  readonly #desk: TakeoverDesk;
  readonly #taken = new Map<string, Takeover>();

  constructor(desk: TakeoverDesk) {
    this.#desk = desk;
  }

  /** From now on its owner's calls are refused. @throws OwlError when another operator has it. */
  async take(operator: Operator, cellId: string): Promise<void> {
    const sandbox = this.#desk.get(cellId);
    const { takenOverBy } = sandbox;
    if (takenOverBy === operator.id) return this.#touch(cellId);
    if (takenOverBy !== undefined)
      throw new OwlError("sandbox_taken_over", `${takenOverBy} works in it already`, {
        hint: "wait until it is given back",
      });
    // Before the first wait, so that two at once cannot both have it.
    sandbox.takeOver(operator.id);
    const takeover: Takeover = { operator, terminal: undefined, timer: undefined, restTimer: undefined };
    this.#taken.set(cellId, takeover);
    this.#touch(cellId);
    try {
      await this.#desk.act(operator, cellId, { name: "takeover" });
    } catch (error) {
      if (this.#taken.get(cellId) === takeover) {
        this.#forget(cellId);
        sandbox.giveBack();
      }
      throw error;
    }
  }

  /** Any operator may: who took it may be gone. */
  async giveBack(operator: Operator, cellId: string): Promise<void> {
    const sandbox = this.#desk.get(cellId);
    if (sandbox.takenOverBy === undefined) return;
    const takeover = this.#taken.get(cellId);
    if (takeover !== undefined) await this.#recordRest(cellId, takeover);
    await this.#desk.act(operator, cellId, { name: "giveback" });
    // Somebody else may have given it back meanwhile, and a third have taken it.
    if (this.#taken.get(cellId) !== takeover) return;
    this.#forget(cellId);
    sandbox.giveBack();
  }

  /** What was typed. A line is on the record before the shell gets it. */
  async type(operator: Operator, cellId: string, input: string): Promise<void> {
    const terminal = await this.#terminalOf(operator, cellId, USUAL_SIZE);
    for (const line of terminal.linesWith(input))
      await this.#desk.record(operator, cellId, { name: "terminal", args: { line } });
    await terminal.type(input);
    this.#recordRestLater(cellId);
  }

  /** A program can act on a single character: what no line end has put on the record gets there after a pause. */
  #recordRestLater(cellId: string): void {
    const takeover = this.#taken.get(cellId);
    if (takeover === undefined) return;
    clearTimeout(takeover.restTimer);
    takeover.restTimer = setTimeout(() => {
      this.#recordRest(cellId, takeover).catch(() => this.#recordRestLater(cellId));
    }, REST_MS);
    takeover.restTimer.unref();
  }

  async #recordRest(cellId: string, { operator, terminal, restTimer }: Takeover): Promise<void> {
    clearTimeout(restTimer);
    const line = terminal?.takeRest() ?? "";
    if (line === "") return;
    try {
      await this.#desk.record(operator, cellId, { name: "terminal", args: { line } });
    } catch (error) {
      terminal?.putBack(line);
      throw error;
    }
  }

  async resize(operator: Operator, cellId: string, size: TerminalSize): Promise<void> {
    const terminal = await this.#terminalOf(operator, cellId, size);
    await terminal.resize(size);
  }

  /** Whoever works in it keeps it. @throws OwlError for everybody else. */
  renew(operator: Operator, cellId: string): void {
    this.#renewed(operator, cellId);
  }

  #renewed(operator: Operator, cellId: string): Takeover {
    const takeover = this.#taken.get(cellId);
    if (this.#desk.get(cellId).takenOverBy !== operator.id || takeover === undefined)
      throw new OwlError("forbidden", "only who has taken the sandbox over works in it", {
        hint: "take it over first",
      });
    this.#touch(cellId);
    return takeover;
  }

  async #terminalOf(operator: Operator, cellId: string, size: TerminalSize): Promise<OperatorTerminal> {
    const takeover = this.#renewed(operator, cellId);
    const sandbox = this.#desk.get(cellId);
    if (takeover.terminal?.isOpen !== true) {
      await this.#recordRest(cellId, takeover);
      const { activity } = this.#desk;
      const show = (text: string): void =>
        activity.add(cellId, { kind: "terminal", stream: "stdout", text, by: operator.id });
      takeover.terminal = new OperatorTerminal({ sandbox, size, show });
    }
    await takeover.terminal.ready;
    return takeover.terminal;
  }

  #touch(cellId: string): void {
    const takeover = this.#taken.get(cellId);
    if (takeover === undefined) return;
    clearTimeout(takeover.timer);
    const giveBack = (): void => void this.giveBack(takeover.operator, cellId).catch(() => this.#tryLater(cellId));
    takeover.timer = setTimeout(giveBack, FORGOTTEN_MS);
    takeover.timer.unref();
  }

  /** What could not be recorded is not done, and tried again. */
  #tryLater(cellId: string): void {
    try {
      this.#desk.get(cellId);
      this.#touch(cellId);
    } catch {
      // The sandbox has ended meanwhile: there is nothing to give back.
      this.#forget(cellId);
    }
  }

  #forget(cellId: string): void {
    const takeover = this.#taken.get(cellId);
    clearTimeout(takeover?.timer);
    clearTimeout(takeover?.restTimer);
    takeover?.terminal?.close();
    this.#taken.delete(cellId);
  }
}
