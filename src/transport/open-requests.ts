/** Counts requests in progress, for a shutdown that waits until there is none. */
export class OpenRequests {
  #count = 0;
  #isDraining = false;
  #onIdle: () => void = () => undefined;

  get count(): number {
    return this.#count;
  }

  /** The server is stopping: it takes no new requests. */
  get isDraining(): boolean {
    return this.#isDraining;
  }

  drain(): void {
    this.#isDraining = true;
  }

  /** Counts one more request. The function that it returns takes it off again, once. */
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
