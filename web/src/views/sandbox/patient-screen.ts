import { signal } from "@preact/signals";
import type { ScreenHandle } from "./terminal-screen.tsx";

const MOST_CHARS = 200_000;

/** Stores what was written, for a screen that is opened later or again. */
export class PatientScreen {
  readonly text = signal("");
  #screen: ScreenHandle | undefined;

  write(piece: string): void {
    this.text.value = (this.text.peek() + piece).slice(-MOST_CHARS);
    this.#screen?.write(piece);
  }

  show(screen: ScreenHandle | undefined): void {
    this.#screen = screen;
    screen?.write(this.text.peek());
  }
}
