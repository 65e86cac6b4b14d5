import type { Press } from "../page-report.ts";
import { FrameWalk } from "./frame-walk.ts";
import { Refs, spellingOf } from "./refs.ts";

const PRESSES = ["pointerdown", "mousedown", "pointerup", "mouseup", "click", "auxclick", "dblclick", "contextmenu"];

/** As Playwright wants it. It runs in a world of its own: the page's scripts cannot see or change it. */
interface SelectorEngine {
  query(root: Node, command: string): Element | undefined;
  queryAll(root: Node, command: string): Element[];
}

/**
 * Understands `ref:7`, the element with that ref, and commands whose answer is the JSON in an element outside the page:
 * `snapshot:7` reports this frame, new refs starting at 7; `look:7` says what the element of a ref is now; `guard:7` does so and keeps
 * presses from it when it changes; `unguard:` ends that and says what was pressed.
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
    // What only looks other under the pointer is used as it looks then, and reported so.
    return { ...seen, isRefused: seen.was !== seen.is && spelling !== spellingOf(element) };
  });
}

function carry(value: unknown): Element {
  const carrier = document.createElement("pre");
  carrier.textContent = JSON.stringify(value ?? null);
  return carrier;
}

/**
 * The pointer comes to an element some time after the driver has looked at it, and a page can change it meanwhile. So it is looked at
 * once more when it is pressed, and the press is kept from the page when it is another thing by then.
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

  /** What was pressed, if anything was. */
  disarm(): Press | undefined {
    this.#removeListeners();
    const press = this.#press;
    this.#press = undefined;
    return press;
  }
}
