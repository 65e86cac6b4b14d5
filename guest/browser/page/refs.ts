import type { Sighting } from "../page-report.ts";
import { describeElement } from "./describe.ts";
import { GeneratedText } from "./generated-text.ts";
import { identityOf, roleOf, type Titled, titled } from "./identity.ts";

interface Known {
  readonly element: WeakRef<Element>;
  /** Role and name in the last snapshot that showed it, and how they were found. */
  identity: string;
  generated: GeneratedText;
}

/** Elements and their numbers. An element keeps its number for as long as its page lives. */
export class Refs {
  readonly #known = new Map<number, Known>();
  readonly #numbers = new WeakMap<Element, number>();
  #next = 1;

  /** Numbers below were given in other frames of the page, or to pages before it. */
  startAt(next: number): void {
    this.#next = Math.max(this.#next, next);
  }

  get next(): number {
    return this.#next;
  }

  numberOf(element: Element, titled: Titled, { isAnywhere }: GeneratedText): number {
    const number = this.#numbers.get(element) ?? this.#next;
    if (number === this.#next) this.#next += 1;
    this.#numbers.set(element, number);
    const generated = isAnywhere ? GENERATED : NOT_GENERATED;
    this.#known.set(number, {
      element: this.#known.get(number)?.element ?? new WeakRef(element),
      identity: identityOf(element, titled, generated),
      generated,
    });
    return number;
  }

  /** Nothing when it is no longer part of the page. */
  find(number: number): Element | undefined {
    const element = this.#known.get(number)?.element.deref();
    return element?.isConnected === true ? element : undefined;
  }

  /** What has become of it since the last snapshot. */
  lookAt(number: number): Sighting | undefined {
    const element = this.find(number);
    const known = this.#known.get(number);
    if (element === undefined || known === undefined) return undefined;
    const now = titled(element, roleOf(element), known.generated);
    const is = identityOf(element, now, known.generated);
    return { was: known.identity, is, label: describeElement(element, now.title) };
  }
}

const GENERATED = new GeneratedText(true);
const NOT_GENERATED = new GeneratedText(false);
