import { saysEscaped } from "./marks.ts";
import { squeeze } from "./names.ts";

interface Words {
  isSeen: boolean;
  readonly hidden: string[];
}

/** Enough of a text to find it again in a name. */
const START_CHARS = 40;
const TEXTS_MAX = 20;

/** The texts inside of what can be used: a name made of what nobody sees is said to be so. */
export class WidgetWords {
  readonly #open: Words[] = [];

  open(): void {
    this.#open.push({ isSeen: false, hidden: [] });
  }

  addSeen(): void {
    const innermost = this.#open.at(-1);
    if (innermost !== undefined) innermost.isSeen = true;
  }

  addHidden(text: string): void {
    const hidden = this.#open.at(-1)?.hidden;
    if (hidden !== undefined && hidden.length < TEXTS_MAX)
      hidden.push(squeeze(text.slice(0, 1000)).slice(0, START_CHARS));
  }

  /** Whether anything in it is seen, and whether what is said of it has something that is not. */
  close(said: string): { readonly isSeen: boolean; readonly hidden: boolean } {
    const words = this.#open.pop() ?? { isSeen: false, hidden: [] };
    const outer = this.#open.at(-1);
    if (outer !== undefined) {
      outer.isSeen ||= words.isSeen;
      outer.hidden.push(...words.hidden.slice(0, TEXTS_MAX - outer.hidden.length));
    }
    return { isSeen: words.isSeen, hidden: words.hidden.some((text) => saysEscaped(said, text)) };
  }
}
