import type { Press } from "../page-report.ts";

const PRESSES = ["pointerdown", "mousedown", "pointerup", "mouseup", "click", "auxclick", "dblclick", "contextmenu"];

/**
 * The pointer comes to an element some time after the driver has looked at it, and a page can change it meanwhile. So it is looked at
 * once more when it is pressed, and the press is kept from the page when it is another thing by then.
 */
export class PressGuard {
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
