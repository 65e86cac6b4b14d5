import type { Press } from "../page-report.ts";
import { FrameWalk } from "./frame-walk.ts";
import { Refs, spellingOf } from "./refs.ts";

const PRESSES = ["pointerdown", "mousedown", "pointerup", "mouseup", "click", "auxclick", "dblclick", "contextmenu"];

/** A selector engine of Playwright. It runs in an isolated world: scripts of the page cannot see or change it. */
interface SelectorEngine {
  query(root: Node, command: string): Element | undefined;
  queryAll(root: Node, command: string): Element[];
}

/**
 * Accepts `ref:7`, the element with that ref, and commands, whose answer is JSON in an element outside the page:
 * `snapshot:7` reports this frame with new refs from 7; `look:7` returns the current description of a ref's element; `guard:7` also
 * blocks presses when the element changes; `unguard:` ends that and returns what was pressed.
 */
export function createEngine(): SelectorEngine {
  const refs = new Refs();
  const guard = new PressGuard();
  const commands: Readonly<Record<string, (number: number) => unknown>> = {
    snapshot: (number) => report(refs, number),
    look: (number) => refs.lookAt(number),
    guard: (number) => {
      guardPress(refs, guard, number);
      return refs.lookAt(number);
    },
    unguard: () => guard.disarm(),
  };
  const answer = (text: string): Element[] => {
    const [verb = "", argument = ""] = text.split(":");
    const command = commands[verb];
    if (command !== undefined) return [carry(command(Number(argument)))];
    const element = refs.find(Number(argument));
    return element === undefined ? [] : [element];
  };
  return { query: (_root, command) => answer(command)[0], queryAll: (_root, command) => answer(command) };
}

function report(refs: Refs, nextRef: number): object {
  refs.startAt(nextRef);
  return new FrameWalk(refs).report();
}

function guardPress(refs: Refs, guard: PressGuard, number: number): void {
  const element = refs.find(number);
  if (element === undefined) return;
  const spelling = spellingOf(element);
  guard.arm((): Press => {
    const seen = refs.lookAt(number) ?? { was: "there", is: "gone", label: "" };
    // An element that changes its style under the pointer is used and reported in that state.
    return { ...seen, isRefused: seen.was !== seen.is && spelling !== spellingOf(element) };
  });
}

function carry(value: unknown): Element {
  const carrier = document.createElement("pre");
  carrier.textContent = JSON.stringify(value ?? null);
  return carrier;
}

/**
 * Between the check by the driver and the press, the page can change the element. So it is checked again when it is pressed,
 * and the press is blocked when it has changed.
 */
class PressGuard {
  #press: Press | undefined;
  #removeListeners = (): void => {};

  arm(look: () => Press): void {
    this.disarm();
    const onPress = (event: Event): void => {
      if (!event.isTrusted) return;
      this.#press ??= look();
      if (!this.#press.isRefused) return;
      event.preventDefault();
      event.stopImmediatePropagation();
    };
    for (const type of PRESSES) addEventListener(type, onPress, { capture: true });
    this.#removeListeners = () => {
      for (const type of PRESSES) removeEventListener(type, onPress, { capture: true });
    };
  }

  /** What was pressed, if anything. */
  disarm(): Press | undefined {
    this.#removeListeners();
    const press = this.#press;
    this.#press = undefined;
    return press;
  }
}
