import { randomBytes } from "node:crypto";
import { fileURLToPath } from "node:url";
import type { Config } from "../config/schema.ts";
import { userEnvironment } from "../config/user-environment.ts";
import { OwlError } from "../errors/owl-error.ts";
import type { ProbeCheck, Runtime } from "../runtimes/runtime.ts";
import { templateTrees } from "../sandbox/template-trees.ts";
import type { Templates } from "../sandbox/templates.ts";
import type { Logger } from "../telemetry/logger.ts";

const PROBE_TIMEOUT_MS = 60_000;
/** A microVM in a virtual machine that is emulated itself takes most of it. */
const MACHINE_PROBE_TIMEOUT_MS = 180_000;
const PASSING_CONTACT_MS = 2000;

/** Where the guest lies: beside the compiled server, or in `dist/` when the source itself runs. */
export const GUEST_FOLDER: string = fileURLToPath(
  new URL(import.meta.url.endsWith(".ts") ? "../../dist/guest" : "../guest", import.meta.url),
);

export interface RuntimeParts {
  readonly config: Config;
  readonly logger: Logger;
  readonly templates: Templates;
}

export type RuntimeName = Exclude<Config["sandbox"]["runtime"], "auto">;

export interface RuntimeWish extends RuntimeParts {
  readonly name: RuntimeName;
  /** The operator named it; otherwise it is tried in passing, and must not keep the start waiting. */
  readonly isAsked: boolean;
}

export type OpenRuntime = (wish: RuntimeWish) => Promise<Runtime>;

export const openRuntime: OpenRuntime = async (wish) => {
  switch (wish.name) {
    case "bubblewrap":
      return await openBubblewrap(wish);
    case "docker":
      return await openDocker(wish);
    case "microsandbox":
      return await openMicrosandbox(wish);
  }
};

async function openBubblewrap({ config: { sandbox }, logger, templates }: RuntimeParts): Promise<Runtime> {
  const { createBubblewrapRuntime } = await import("../runtimes/bubblewrap/bubblewrap-runtime.ts");
  return await createBubblewrapRuntime({
    dataFolder: sandbox.root,
    logger,
    guestFolder: GUEST_FOLDER,
    limits: sandbox.limits,
    templates: templateTrees(templates),
    serverId: randomBytes(8).toString("hex"),
    searchPath: userEnvironment().searchPath,
    keepsWorkspaces: sandbox.keepWorkspaces,
    browser: sandbox.browser.executable,
  });
}

async function openDocker({ config: { sandbox }, logger, templates, isAsked }: RuntimeWish): Promise<Runtime> {
  const { createDockerRuntime } = await import("../runtimes/docker/docker-runtime.ts");
  return await createDockerRuntime({
    dataFolder: sandbox.root,
    logger,
    guestFolder: GUEST_FOLDER,
    serverId: randomBytes(8).toString("hex"),
    host: sandbox.docker.host,
    certFolder: sandbox.docker.certFolder,
    ociRuntime: sandbox.docker.runtime,
    imageOf: (template) => sandbox.templates[template]?.image ?? sandbox.image,
    templates: templateTrees(templates),
    keepsWorkspaces: sandbox.keepWorkspaces,
    ...(!isAsked && { contactTimeoutMs: PASSING_CONTACT_MS }),
  });
}

async function openMicrosandbox({ config: { sandbox }, logger, templates }: RuntimeParts): Promise<Runtime> {
  const { loadMicrosandbox } = await import("../runtimes/microsandbox/sdk.ts");
  const sdk = await loadMicrosandbox();
  const { createMicrosandboxRuntime } = await import("../runtimes/microsandbox/microsandbox-runtime.ts");
  return await createMicrosandboxRuntime({
    sdk,
    dataFolder: sandbox.root,
    logger,
    guestFolder: GUEST_FOLDER,
    serverId: randomBytes(8).toString("hex"),
    imageOf: (template) => sandbox.templates[template]?.image ?? sandbox.image,
    templates: templateTrees(templates),
    keepsWorkspaces: sandbox.keepWorkspaces,
    maxAgeSeconds: sandbox.maxAgeSeconds,
  });
}

/** Tries to break out, and refuses when one try succeeds: a sandbox that may leak is worse than none. */
export async function assertIsolated(
  runtime: Runtime,
  limits: "required" | "best-effort",
  logger: Logger,
): Promise<void> {
  const timeoutMs = runtime.name === "microsandbox" ? MACHINE_PROBE_TIMEOUT_MS : PROBE_TIMEOUT_MS;
  const { checks } = await runtime.probe(AbortSignal.timeout(timeoutMs));
  const broken = checks.filter(({ holds }) => !holds);
  const accepted = limits === "best-effort" ? broken.filter(({ severity }) => severity === "limit") : [];
  for (const { name, detail } of accepted) logger.warning("sandboxes run without a limit", { limit: name, detail });
  const refused = broken.filter((check) => !accepted.includes(check));
  if (refused.length === 0 && checks.length > 0) return;
  for (const { name, detail } of refused) logger.warning("a check of the isolation failed", { check: name, detail });
  throw unavailable(runtime.name, refused);
}

function unavailable(runtime: string, refused: readonly ProbeCheck[]): OwlError {
  // Several checks may fail for the same cause, and need the same repair.
  const reasons = [...new Set(refused.map(({ problem, detail }) => problem ?? detail))];
  const fixes = [...new Set(refused.flatMap(({ fix }) => (fix === undefined ? [] : [fix])))];
  return new OwlError(
    "sandbox_unavailable",
    `${runtime} cannot run sandboxes here: ${reasons.join("; ") || "its probe checked nothing"}`,
    { facts: { failed: refused.map(({ name }) => name) }, ...(fixes.length > 0 && { hint: fixes.join(" ") }) },
  );
}
