import { isOwlError } from "../errors/owl-error.ts";

/** How one thing is that the server depends on. */
export interface Finding {
  readonly status: "ok" | "degraded" | "down" | "starting";
  /** For an operator: what is wrong and what to do, or what is right. No paths, no addresses: everybody may read it. */
  readonly message: string;
}

export interface HealthCheck {
  readonly name: string;
  /** Without it the server is of no use to its callers. */
  readonly isVital: boolean;
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
/** Anybody may ask: asking often must cost nothing. */
const FRESH_MS = 1000;

/** Looks at everything that the server depends on. */
export class Health {
  readonly #checks: readonly HealthCheck[];
  #latest: { readonly report: Promise<HealthReport>; readonly atMs: number } | undefined;

  constructor(checks: readonly HealthCheck[]) {
    this.#checks = checks;
  }

  report(): Promise<HealthReport> {
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

async function lookAt(check: HealthCheck): Promise<CheckReport> {
  const startMs = performance.now();
  const finding = await bounded(check).catch((error: unknown): Finding => {
    return { status: "down", message: reasonOf(error) };
  });
  return { ...finding, latency_ms: Math.round((performance.now() - startMs) * 100) / 100 };
}

/** Our own errors are written for readers; those of the system name paths and addresses. */
function reasonOf(error: unknown): string {
  if (isOwlError(error)) return error.message;
  const code = error instanceof Error && "code" in error ? String(error.code) : "unknown";
  return `it could not be looked at (${code})`;
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
