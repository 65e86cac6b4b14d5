/** Counts requests in flight, so that shutdown can wait for them. */
export class OpenRequests {
  #count = 0;
  #onIdle: () => void = () => undefined;

  get count(): number {
    return this.#count;
  }

  /** Counts a request. The returned function ends it; further calls of it do nothing. */
  open(): () => void {
    let isOpen = true;
    this.#count += 1;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      if (--this.#count === 0) this.#onIdle();
    };
  }

  /** Resolves with true when all requests have ended before the deadline. */
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
