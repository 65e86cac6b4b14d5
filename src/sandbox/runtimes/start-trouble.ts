import { OwlError } from "../../errors/owl-error.ts";
import type { RuntimeTrouble } from "./runtime.ts";

/** What passes when somebody makes room or fetches the image, and hits every start until then. */
const LASTING_REASONS: ReadonlySet<unknown> = new Set(["disk_full", "image_missing"]);
const TEST_START_TIMEOUT_MS = 30_000;

export interface TestStart {
  readonly template: string;
  readonly signal: AbortSignal;
}

interface StartTroubleOptions {
  readonly imageOf: (template: string) => string;
  /** Starts a place from the template's image, and leaves nothing of it. */
  readonly tryStart: (trial: TestStart) => Promise<void>;
}

/**
 * What kept places from starting, until one starts again. Nobody may ask for one any more when health has told of it:
 * so it is tried from here as well.
 */
export class StartTrouble {
  readonly #options: StartTroubleOptions;
  /** By template: each may have an image of its own. */
  readonly #failed = new Map<string, OwlError>();
  readonly #end = new AbortController();

  constructor(options: StartTroubleOptions) {
    this.#options = options;
  }

  get trouble(): RuntimeTrouble | undefined {
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

  /** Whoever has the image of most others is not alone. */
  #isCommon(template: string): boolean {
    const { imageOf } = this.#options;
    return imageOf(template) === imageOf("");
  }
}
