import { isOwlError } from "../errors/owl-error.ts";

/** The result of one check of a dependency. */
export interface Finding {
  readonly status: "ok" | "degraded" | "down" | "starting";
  /**
   * What is wrong and what to do, or what works. It is public, so it contains no paths, addresses or error messages.
   */
  readonly message: string;
  /** The message with all details, for operators only. */
  readonly detail?: string;
}

export interface HealthCheck {
  readonly name: string;
  /** The server is unavailable to callers without it. */
  readonly isVital: boolean;
  /** The message when the check itself fails. */
  readonly failure?: string;
  look(): Finding | Promise<Finding>;
}

export interface CheckReport extends Finding {
  readonly latency_ms: number;
}

export interface HealthReport {
  readonly status: "ok" | "degraded" | "unavailable";
  readonly checks: Readonly<Record<string, CheckReport>>;
}

const LOOK_TIMEOUT_MS = 3000;
/** The endpoint is public, so reports are cached for this time. */
const FRESH_MS = 900;

/** Checks all dependencies of the server. */
export class Health {
  readonly #checks: readonly HealthCheck[];
  #latest: { readonly report: Promise<HealthReport>; readonly atMs: number } | undefined;

  constructor(checks: readonly HealthCheck[]) {
    this.#checks = checks;
  }

  /** The public report, without details. */
  async report(): Promise<HealthReport> {
    const { status, checks } = await this.wholeReport();
    const open = Object.entries(checks).map(([name, check]) => [name, withoutDetail(check)] as const);
    return { status, checks: Object.fromEntries(open) };
  }

  /** The report for operators: details may contain paths and addresses. */
  wholeReport(): Promise<HealthReport> {
    const atMs = performance.now();
    if (this.#latest === undefined || atMs - this.#latest.atMs > FRESH_MS)
      this.#latest = { report: this.#lookAtAll(), atMs };
    return this.#latest.report;
  }

  async #lookAtAll(): Promise<HealthReport> {
    const found = await Promise.all(this.#checks.map(async (check) => ({ check, report: await lookAt(check) })));
    const isDown = found.some(
      ({ check, report }) => check.isVital && (report.status === "down" || report.status === "starting"),
    );
    const isFine = found.every(({ report }) => report.status === "ok");
    const report: HealthReport = {
      status: isDown ? "unavailable" : isFine ? "ok" : "degraded",
      checks: Object.fromEntries(found.map(({ check, report: each }) => [check.name, each])),
    };
    return report;
  }
}

function withoutDetail({ status, message, latency_ms }: CheckReport): CheckReport {
  return { status, message, latency_ms };
}

async function lookAt(check: HealthCheck): Promise<CheckReport> {
  const startMs = performance.now();
  const finding = await bounded(check).catch((error: unknown) => failed(check, error));
  return { ...finding, latency_ms: Math.round((performance.now() - startMs) * 100) / 100 };
}

/** Messages of OwlError are written for operators. Of a system error only the code is reported. */
function failed({ failure = "it could not be looked at" }: HealthCheck, error: unknown): Finding {
  if (isOwlError(error)) return { status: "down", message: `${failure} (${error.kind})`, detail: error.message };
  const code = error instanceof Error && "code" in error ? String(error.code) : "unknown";
  return { status: "down", message: `${failure} (${code})` };
}

async function bounded(check: HealthCheck): Promise<Finding> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Finding>((resolve) => {
    const message = `it did not answer within ${LOOK_TIMEOUT_MS / 1000} seconds`;
    timer = setTimeout(() => resolve({ status: "down", message }), LOOK_TIMEOUT_MS);
  });
  try {
    return await Promise.race([check.look(), late]);
  } finally {
    clearTimeout(timer);
  }
}
