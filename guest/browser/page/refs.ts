/** Elements and their numbers. An element keeps its number for as long as its page lives. */
export class Refs {
  readonly #elements = new Map<number, WeakRef<Element>>();
  readonly #numbers = new WeakMap<Element, number>();
  #next = 1;

  /** Numbers below were given in other frames of the page, or to pages before it. */
  startAt(next: number): void {
    this.#next = Math.max(this.#next, next);
  }

  get next(): number {
    return this.#next;
  }

  numberOf(element: Element): number {
    const known = this.#numbers.get(element);
    if (known !== undefined) return known;
    const number = this.#next;
    this.#next += 1;
    this.#numbers.set(element, number);
    this.#elements.set(number, new WeakRef(element));
    return number;
  }

  /** Nothing when it is no longer part of the page. */
  find(number: number): Element | undefined {
    const element = this.#elements.get(number)?.deref();
    return element?.isConnected === true ? element : undefined;
  }
}
