/** Parts that were opened one after another, and are closed in reverse. */
export class CloseStack {
  readonly #closers: (() => unknown)[] = [];
  #closing: Promise<void> | undefined;

  /** When `open` fails, what it has added is closed. */
  static async opening<T>(open: (stack: CloseStack) => Promise<T>): Promise<T> {
    const stack = new CloseStack();
    try {
      return await open(stack);
    } catch (error) {
      await stack.close();
      throw error;
    }
  }

  add<T extends { close(): unknown }>(part: T): T {
    this.defer(() => part.close());
    return part;
  }

  defer(close: () => unknown): void {
    this.#closers.push(close);
  }

  /** Closes every part, also when one fails to close. @throws the first failure. */
  close(): Promise<void> {
    this.#closing ??= this.#closeAll();
    return this.#closing;
  }

  async #closeAll(): Promise<void> {
    const failures: unknown[] = [];
    for (let close = this.#closers.pop(); close !== undefined; close = this.#closers.pop()) {
      try {
        await close();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}
