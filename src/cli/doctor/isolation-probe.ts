import { type OwlError, toOwlError } from "../../errors/owl-error.ts";
import type { Config } from "../../config/schema.ts";
import type { ProbeCheck, Runtime } from "../../sandbox/runtimes/runtime.ts";
import { readTemplates } from "../../sandbox/templates.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { RUNTIMES } from "../../sandbox/choose-runtime.ts";
import {
  openRuntime,
  probe,
  type RuntimeName,
  type OpeningRuntime,
  templatesToTry,
} from "../../sandbox/open-runtime.ts";
import { type DoctorCheck, type DoctorProbe, failed, ok, warning } from "./check.ts";
import { join } from "node:path";
import { InstanceStarter } from "../../sandbox/instance-starter.ts";
import type { Templates } from "../../sandbox/templates.ts";
import { existsSync, readFileSync } from "node:fs";

const CHOICE = { category: "isolation", name: "runtime" } as const;

interface Tried {
  readonly name: RuntimeName;
  readonly checks: readonly ProbeCheck[];
  /** Absent when the runtime could not be opened, or did not pass the checks. */
  readonly startMs?: number;
  readonly error?: OwlError;
}

/**
 * Starts sandboxes on every runtime and tries to break out of them, as the server does when it starts. A missing
 * runtime is a failure only when the configuration requires it.
 */
export function isolationProbe(config: Config, logger: Logger): DoctorProbe {
  return {
    async look() {
      const asked = askedFor(config);
      const names = [...RUNTIMES, ...asked].filter((name, index, all) => all.indexOf(name) === index);
      const tried: Tried[] = [];
      const { runtime: wanted, limits } = config.sandbox;
      const take = (): RuntimeName | undefined =>
        tried.find((each) => (wanted === "auto" || each.name === wanted) && isFit(each, limits))?.name;
      for (const name of names) {
        const usual = wanted === "auto" ? (take() ?? name) : wanted;
        tried.push(await tryRuntime({ config, logger, name, usual, isAsked: asked.includes(name) }));
      }
      const taken = take();
      const needed = wanted === "auto" && taken === undefined ? names : askedFor(config, taken);
      const rows = tried.flatMap((each) => rowsOf(each, { isNeeded: needed.includes(each.name), limits }));
      return [...namespaceRows(tried, wanted), ...rows, choice(wanted, taken)];
    },
  };
}

/**
 * The runtimes that the configuration names, for all sandboxes or for one template. Templates with an image run on
 * microsandbox when it is the chosen runtime, and on docker otherwise.
 */
export function askedFor({ sandbox: { runtime, templates } }: Config, taken?: RuntimeName): readonly RuntimeName[] {
  const ofImages = (runtime === "auto" ? taken : runtime) === "microsandbox" ? "microsandbox" : "docker";
  const ofTemplates = Object.values(templates).map(
    (own) => own.runtime ?? (own.image === undefined ? "auto" : ofImages),
  );
  return [runtime, ...ofTemplates].filter((name) => name !== "auto");
}

async function tryRuntime(trial: Omit<OpeningRuntime, "templates">): Promise<Tried> {
  const { name, config, logger } = trial;
  const templates = await readTemplates(config.sandbox, logger);
  const wanted = { ...trial, templates };
  let runtime: Runtime | undefined;
  let checks: readonly ProbeCheck[] = [];
  try {
    runtime = await openRuntime(wanted);
    const report = await probe(runtime, { templates: templatesToTry(wanted) });
    checks = report.checks;
    if (!isFit({ checks }, config.sandbox.limits)) return { name, checks };
    const { template } = report;
    return { name, checks, startMs: await measureStart({ runtime, config, logger, templates, template }) };
  } catch (thrown) {
    return { name, checks, error: toOwlError(thrown, "sandbox_unavailable") };
  } finally {
    await runtime?.close();
  }
}

/**
 * User namespaces matter to bubblewrap only. With `auto` a failure is a warning: the row of the runtime says whether
 * another one works.
 */
function namespaceRows(tried: readonly Tried[], wanted: Config["sandbox"]["runtime"]): DoctorCheck[] {
  const bubblewrap = tried.find(({ name }) => name === "bubblewrap");
  if (bubblewrap === undefined || (wanted !== "auto" && wanted !== "bubblewrap")) return [];
  const check = userNamespaces(stateOf(bubblewrap));
  return [wanted === "auto" && check.status === "failed" ? { ...check, status: "warning" } : check];
}

/** When bubblewrap does not start, the probe tries nothing else, so no check holds. */
function stateOf({ checks }: Tried): Bubblewrap {
  if (checks.length === 0) return "untried";
  return checks.some(({ holds }) => holds) ? "starts" : "fails";
}

type Limits = Config["sandbox"]["limits"];

function isFit({ checks, error }: Pick<Tried, "checks" | "error">, limits: Limits): boolean {
  const isAccepted = ({ holds, severity }: ProbeCheck): boolean =>
    holds || (severity === "limit" && limits === "best-effort");
  return error === undefined && checks.length > 0 && checks.every(isAccepted);
}

function rowsOf(tried: Tried, { isNeeded, limits }: { isNeeded: boolean; limits: Limits }): DoctorCheck[] {
  const { name, checks, startMs, error } = tried;
  const row = { category: "isolation", name: `runtime ${name}` } as const;
  const missing = isNeeded ? failed : warning;
  if (error !== undefined) return [missing(row, error.message, error.hint)];
  const broken = checks.filter(({ holds }) => !holds);
  const start = startMs === undefined ? "" : `; a sandbox starts in ${Math.round(startMs)} ms`;
  const shut = `${checks.length - broken.length} of ${checks.length} ways out that were tried are shut${start}`;
  if (broken.length === 0) return [ok(row, shut)];
  if (isNeeded) {
    // With `sandbox.limits: best-effort`, a missing limit is a warning and not a failure.
    const say = isFit(tried, limits) ? warning : failed;
    return [say(row, shut, "see the lines below"), ...broken.map((each) => brokenCheck(each, limits))];
  }
  // Several checks may fail for the same reason.
  const problems = [...new Set(broken.map(({ problem, detail }) => problem ?? detail))];
  const fixes = [...new Set(broken.map(fixOf))];
  return [warning(row, problems.join("; "), fixes.join(" "))];
}

function brokenCheck(check: ProbeCheck, limits: Limits): DoctorCheck {
  const { name, severity, detail, problem } = check;
  const isAccepted = severity === "limit" && limits === "best-effort";
  const say = isAccepted ? warning : failed;
  return say({ category: "isolation", name }, problem ?? detail, fixOf(check));
}

function fixOf({ severity, fix }: ProbeCheck): string {
  if (fix !== undefined) return fix;
  return severity === "limit" ? "set sandbox.limits to best-effort to do without this limit" : "see docs/sandboxes.md";
}

function choice(wanted: Config["sandbox"]["runtime"], taken: RuntimeName | undefined): DoctorCheck {
  if (taken === undefined) return failed(CHOICE, "no sandbox can run", "repair one of the runtimes above");
  return ok(CHOICE, wanted === "auto" ? `auto takes ${taken}` : `${taken}, as the configuration says`);
}

const START_TIMEOUT_MS = 60_000;

/** Measures the time from the start of a sandbox to the guest's first response, with the image already available. */
export async function measureStart(parts: {
  readonly runtime: Runtime;
  readonly config: Config;
  readonly logger: Logger;
  readonly templates: Templates;
  /** Empty: no particular template. */
  readonly template: string;
}): Promise<number> {
  const { runtime, config, logger, templates } = parts;
  const { root, workspace, flavor } = config.sandbox;
  const starter = new InstanceStarter({
    runtime,
    logger,
    templates,
    workspacePath: workspace,
    maxFrameBytes: config.guest.maxFrameBytes,
    folder: join(root, "sandboxes"),
    openEgress: () => Promise.reject(new Error("this sandbox has no network")),
  });
  const plan = starter.plan({
    template: parts.template || "python",
    flavor,
    env: {},
    volumes: [],
    network: { allow: [] },
  });
  const startedAt = performance.now();
  try {
    const instance = await starter.open(plan, AbortSignal.timeout(START_TIMEOUT_MS));
    const tookMs = performance.now() - startedAt;
    await instance.close();
    return tookMs;
  } finally {
    await starter.discard(plan);
  }
}

const NAMED = { category: "isolation", name: "user namespaces" } as const;

const APPARMOR = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
const CLONE = "/proc/sys/kernel/unprivileged_userns_clone";
const MOST = "/proc/sys/user/max_user_namespaces";

export type ReadSetting = (path: string) => string | undefined;

/** The outcome of the checks on bubblewrap. */
export type Bubblewrap = "starts" | "fails" | "untried";

/** For a configuration that cannot be loaded: no sandbox can be tried. */
export function userNamespacesProbe(): DoctorProbe {
  return { look: async () => [userNamespaces("untried")] };
}

/**
 * Checks for user namespaces, which bubblewrap requires. Distributions restrict them in three ways, for root too: a
 * server that runs as root starts bubblewrap as another user. Whether bubblewrap starts decides: an exception for
 * bubblewrap alone does not show in any setting.
 */
export function userNamespaces(bubblewrap: Bubblewrap, read: ReadSetting = readSetting): DoctorCheck {
  const restriction = restrictionIn(read);
  if (restriction === undefined) return ok(NAMED, "programs may use user namespaces");
  const { problem, fix } = restriction;
  if (bubblewrap === "starts") return ok(NAMED, `${problem}, and bubblewrap may use them all the same`);
  return bubblewrap === "fails" ? failed(NAMED, problem, fix) : warning(NAMED, problem, fix);
}

function restrictionIn(read: ReadSetting): { readonly problem: string; readonly fix: string } | undefined {
  if (read(MOST) === "0")
    return { problem: "the kernel allows no user namespaces", fix: "run: sysctl user.max_user_namespaces=15000" };
  if (read(APPARMOR) === "1")
    return {
      problem: "AppArmor keeps programs from using user namespaces (Ubuntu 23.10 and newer)",
      fix: "add an AppArmor profile for /usr/bin/bwrap with `userns,`, or run: sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    };
  if (read(CLONE) === "0")
    return { problem: "only root may use user namespaces", fix: "run: sysctl kernel.unprivileged_userns_clone=1" };
  return undefined;
}

function readSetting(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, "utf8").trim() : undefined;
}
