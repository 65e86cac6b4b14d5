import { OwlError } from "../errors/owl-error.ts";
import type { TerminalSize } from "../sandbox/guest-methods.ts";
import type { Operator } from "./operator-sessions.ts";
import { OperatorTerminal } from "./operator-terminal.ts";
import type { SandboxDesk } from "./sandbox-desk.ts";

/** An operator who went away must not keep an agent waiting for ever. */
const FORGOTTEN_MS = 1_800_000;
const USUAL_SIZE: TerminalSize = { cols: 80, rows: 24 };

interface Takeover {
  readonly operator: Operator;
  terminal: OperatorTerminal | undefined;
  timer: NodeJS.Timeout | undefined;
}

/** Which operator works in which sandbox, and the shells that they have there. */
export class Takeovers {
  readonly #desk: SandboxDesk;
  readonly #taken = new Map<string, Takeover>();

  constructor(desk: SandboxDesk) {
    this.#desk = desk;
  }

  /** From now on its owner's calls are refused. @throws OwlError when another operator has it. */
  async take(operator: Operator, cellId: string): Promise<void> {
    const { takenOverBy } = this.#desk.get(cellId);
    if (takenOverBy === operator.id) return this.#touch(cellId);
    if (takenOverBy !== undefined)
      throw new OwlError("sandbox_taken_over", `${takenOverBy} works in it already`, {
        hint: "wait until it is given back",
      });
    const sandbox = await this.#desk.act(operator, cellId, { name: "takeover" });
    sandbox.takeOver(operator.id);
    this.#taken.set(cellId, { operator, terminal: undefined, timer: undefined });
    this.#touch(cellId);
  }

  /** Any operator may: who took it may be gone. */
  async giveBack(operator: Operator, cellId: string): Promise<void> {
    const sandbox = this.#desk.get(cellId);
    if (sandbox.takenOverBy === undefined) return;
    await this.#desk.act(operator, cellId, { name: "giveback" });
    this.#forget(cellId);
    sandbox.giveBack();
  }

  /** What was typed. A line is on the record before the shell gets it. */
  async type(operator: Operator, cellId: string, input: string): Promise<void> {
    const terminal = await this.#terminalOf(operator, cellId, USUAL_SIZE);
    for (const line of terminal.linesWith(input))
      await this.#desk.record(operator, cellId, { name: "terminal", args: { line } });
    await terminal.type(input);
  }

  async resize(operator: Operator, cellId: string, size: TerminalSize): Promise<void> {
    const terminal = await this.#terminalOf(operator, cellId, size);
    await terminal.resize(size);
  }

  async #terminalOf(operator: Operator, cellId: string, size: TerminalSize): Promise<OperatorTerminal> {
    const sandbox = this.#desk.get(cellId);
    const takeover = this.#taken.get(cellId);
    if (sandbox.takenOverBy !== operator.id || takeover === undefined)
      throw new OwlError("forbidden", "only who has taken the sandbox over has a shell in it", {
        hint: "take it over first",
      });
    this.#touch(cellId);
    if (takeover.terminal?.isOpen !== true) {
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
    // The sandbox may have ended meanwhile: then there is nothing to give back.
    const giveBack = (): void => void this.giveBack(takeover.operator, cellId).catch(() => this.#forget(cellId));
    takeover.timer = setTimeout(giveBack, FORGOTTEN_MS);
    takeover.timer.unref();
  }

  #forget(cellId: string): void {
    const takeover = this.#taken.get(cellId);
    clearTimeout(takeover?.timer);
    takeover?.terminal?.close();
    this.#taken.delete(cellId);
  }
}
