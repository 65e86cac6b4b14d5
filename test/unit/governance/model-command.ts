import type fc from "fast-check";

/** One step that a model and the real thing take together; always possible. */
export class ModelCommand<Model extends object, Real> implements fc.AsyncCommand<Model, Real> {
  readonly #name: string;
  readonly #step: (model: Model, real: Real) => Promise<void>;

  constructor(name: string, step: (model: Model, real: Real) => Promise<void>) {
    this.#name = name;
    this.#step = step;
  }

  check(): boolean {
    return true;
  }

  run(model: Model, real: Real): Promise<void> {
    return this.#step(model, real);
  }

  toString(): string {
    return this.#name;
  }
}
