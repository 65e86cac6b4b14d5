/** Counts requests that are under way, for whoever must wait until none is. */
export class OpenRequests {
  #count = 0;
  #onIdle: () => void = () => undefined;

  get count(): number {
    return this.#count;
  }

  /** Counts one more; the function that comes back takes it off again, once. */
  open(): () => void {
    let isOpen = true;
    this.#count += 1;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      if (--this.#count === 0) this.#onIdle();
    };
  }

  /** Says whether all were done before the deadline. */
  whenIdle(deadlineMs: number): Promise<boolean> {
    if (this.#count === 0) return Promise.resolve(true);
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), deadlineMs);
      this.#onIdle = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
  }
}
