import { toOwlError } from "../../errors/owl-error.ts";
import type { Config } from "../../config/schema.ts";
import type { ProbeCheck } from "../../runtimes/runtime.ts";
import { Templates } from "../../sandbox/templates.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { openRuntime } from "../open-runtime.ts";
import { type DoctorCheck, type DoctorLook, failed, ok } from "./check.ts";

const PROBE_TIMEOUT_MS = 60_000;
const RUN = { category: "isolation", name: "runtime" } as const;

/** Starts a sandbox and tries to break out of it, as the server does at its start: limits by cgroups included. */
export function isolationLook(config: Config, logger: Logger): DoctorLook {
  return {
    async look() {
      try {
        const { runtime: wish } = config.sandbox;
        const name = wish === "auto" ? "bubblewrap" : wish;
        const runtime = await openRuntime({ config, logger, templates: new Templates(), name, isAsked: true });
        try {
          const { checks } = await runtime.probe(AbortSignal.timeout(PROBE_TIMEOUT_MS));
          const broken = checks.filter(({ holds }) => !holds);
          if (broken.length > 0) return broken.map((check) => brokenCheck(check, config.sandbox.limits));
          return [ok(RUN, `${runtime.name}: ${checks.length} ways out were tried, and all are shut`)];
        } finally {
          await runtime.close();
        }
      } catch (thrown) {
        const { message, hint } = toOwlError(thrown, "sandbox_unavailable");
        return [failed(RUN, message, hint)];
      }
    },
  };
}

function brokenCheck(
  { name, severity, detail, problem, fix }: ProbeCheck,
  limits: "required" | "best-effort",
): DoctorCheck {
  const isAccepted = severity === "limit" && limits === "best-effort";
  return {
    category: "isolation",
    name,
    status: isAccepted ? "warning" : "failed",
    message: problem ?? detail,
    fix:
      fix ??
      (severity === "limit" ? "set sandbox.limits to best-effort to do without this limit" : "see docs/sandboxes.md"),
  };
}
