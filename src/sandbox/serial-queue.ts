/** Runs one task after the other. A task whose caller is gone before its turn leaves the queue. */
export class SerialQueue {
  #tail: Promise<unknown> = Promise.resolve();

  run<T>(task: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    const turn = this.#tail.then(() => {
      signal?.throwIfAborted();
      return task();
    });
    // The next task does not care how this one ended.
    this.#tail = turn.catch(() => undefined);
    return turn;
  }
}
