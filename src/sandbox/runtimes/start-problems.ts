import { OwlError } from "../../errors/owl-error.ts";
import type { RuntimeProblem } from "./runtime.ts";

/** Failures of every start until the operator frees space or loads the image. */
const LASTING_REASONS: ReadonlySet<unknown> = new Set(["disk_full", "image_missing"]);
const TEST_START_TIMEOUT_MS = 30_000;

export interface TestStart {
  readonly template: string;
  readonly signal: AbortSignal;
}

interface StartProblemsOptions {
  readonly imageOf: (template: string) => string;
  /** Starts an instance from the template's image and removes it. */
  readonly tryStart: (trial: TestStart) => Promise<void>;
}

/**
 * Why instances cannot be started at the moment. It also tries to start one regularly: a load balancer that reads the health
 * status may send no more calls.
 */
export class StartProblems {
  readonly #options: StartProblemsOptions;
  /** By template: each may have an image of its own. */
  readonly #failed = new Map<string, OwlError>();
  readonly #end = new AbortController();

  constructor(options: StartProblemsOptions) {
    this.#options = options;
  }

  get problem(): RuntimeProblem | undefined {
    const failed = [...this.#failed].map(([template, error]) => ({
      error,
      template,
      isCommon: this.#isCommon(template),
    }));
    return failed.find(({ isCommon }) => isCommon) ?? failed[0];
  }

  onStarted(template: string): void {
    this.#failed.delete(template);
  }

  onFailed(template: string, error: unknown): void {
    if (error instanceof OwlError && LASTING_REASONS.has(error.facts["reason"])) this.#failed.set(template, error);
  }

  async tryAgain(): Promise<void> {
    for (const template of this.#failed.keys()) {
      const signal = AbortSignal.any([this.#end.signal, AbortSignal.timeout(TEST_START_TIMEOUT_MS)]);
      await this.#options.tryStart({ template, signal }).then(
        () => this.onStarted(template),
        (error: unknown) => this.onFailed(template, error),
      );
    }
  }

  close(): void {
    this.#end.abort();
  }

  /** Whether the template has the default image, which most templates share. */
  #isCommon(template: string): boolean {
    const { imageOf } = this.#options;
    return imageOf(template) === imageOf("");
  }
}
