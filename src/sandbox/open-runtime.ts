import { randomBytes } from "node:crypto";
import { fileURLToPath } from "node:url";
import type { Config } from "../config/schema.ts";
import { userEnvironment } from "../config/environment.ts";
import { OwlError, toOwlError } from "../errors/owl-error.ts";
import type { ProbeCheck, ProbeReport, Runtime } from "./runtimes/runtime.ts";
import { type Templates, templateTrees } from "./templates.ts";
import type { Logger } from "../telemetry/logger.ts";

const PROBE_TIMEOUT_MS = 60_000;
/** Long, for microVMs in an emulated machine. */
const MACHINE_PROBE_TIMEOUT_MS = 180_000;
/** Podman takes a second to answer, and longer on a busy machine. */
const PASSING_CONTACT_MS = 5000;

/** The guest is beside the compiled server, or in `dist/` when the source runs. */
export const GUEST_FOLDER: string = fileURLToPath(
  new URL(import.meta.url.endsWith(".ts") ? "../../dist/guest" : "../guest", import.meta.url),
);

export interface RuntimeParts {
  readonly config: Config;
  readonly logger: Logger;
  readonly templates: Templates;
}

export type RuntimeName = Exclude<Config["sandbox"]["runtime"], "auto">;

export interface OpeningRuntime extends RuntimeParts {
  readonly name: RuntimeName;
  /** The configuration names it. Otherwise `auto` tries it and must not delay the start. */
  readonly isAsked: boolean;
  /** The runtime of templates that configure none; absent: this one. */
  readonly usual?: RuntimeName;
}

export type OpenRuntime = (options: OpeningRuntime) => Promise<Runtime>;

export const openRuntime: OpenRuntime = async (options) => {
  switch (options.name) {
    case "bubblewrap":
      return await openBubblewrap(options);
    case "docker":
      return await openDocker(options);
    case "microsandbox":
      return await openMicrosandbox(options);
  }
};

async function openBubblewrap({ config: { sandbox }, logger, templates }: RuntimeParts): Promise<Runtime> {
  const { createBubblewrapRuntime } = await import("./runtimes/bubblewrap/bubblewrap-runtime.ts");
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

async function openDocker({ config: { sandbox }, logger, templates, isAsked }: OpeningRuntime): Promise<Runtime> {
  const { createDockerRuntime } = await import("./runtimes/docker/docker-runtime.ts");
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
    hasVolumes: sandbox.volumes.length > 0,
    keepsWorkspaces: sandbox.keepWorkspaces,
    ...(!isAsked && { contactTimeoutMs: PASSING_CONTACT_MS }),
  });
}

async function openMicrosandbox({ config: { sandbox }, logger, templates }: RuntimeParts): Promise<Runtime> {
  const { loadMicrosandbox } = await import("./runtimes/microsandbox/sdk.ts");
  const sdk = await loadMicrosandbox();
  const { createMicrosandboxRuntime } = await import("./runtimes/microsandbox/microsandbox-runtime.ts");
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

/** The runtime of a template, where `usual` is the runtime of templates that configure none. */
export function runtimeOfTemplate(own: TemplateSetting | undefined, usual: RuntimeName): Config["sandbox"]["runtime"] {
  return own?.runtime ?? (own?.image === undefined ? "auto" : usual === "microsandbox" ? usual : "docker");
}

type TemplateSetting = Config["sandbox"]["templates"][string];

/**
 * The templates whose images the probe tries, in this order, until an image exists. The default template's image is required; the
 * other templates of a runtime do not depend on each other's images.
 */
export function templatesToTry({
  config: { sandbox },
  templates,
  name,
  usual = name,
}: TemplatesToTry): readonly string[] {
  const named = [sandbox.template, ...Object.keys(sandbox.templates), ...templates.names];
  const served = named.filter((template) => {
    const asked = runtimeOfTemplate(sandbox.templates[template], usual);
    return (asked === "auto" ? usual : asked) === name;
  });
  if (usual === name && served[0] === sandbox.template) return [sandbox.template];
  return served.length === 0 ? [""] : [...new Set(served)];
}

type TemplatesToTry = Pick<OpeningRuntime, "config" | "templates" | "name" | "usual">;

interface IsolationOptions {
  readonly limits: "required" | "best-effort";
  readonly logger: Logger;
  readonly signal: AbortSignal | undefined;
  readonly templates: readonly string[];
}

/** Runs the probe and rejects when an attack succeeds. */
export async function assertIsolated(runtime: Runtime, options: IsolationOptions): Promise<void> {
  const { limits, logger } = options;
  const { checks } = await probe(runtime, options);
  const broken = checks.filter(({ holds }) => !holds);
  const accepted = limits === "best-effort" ? broken.filter(({ severity }) => severity === "limit") : [];
  for (const { name, detail } of accepted) logger.warning("sandboxes run without a limit", { limit: name, detail });
  const refused = broken.filter((check) => !accepted.includes(check));
  if (refused.length === 0 && checks.length > 0) return;
  for (const { name, detail } of refused) logger.warning("a check of the isolation failed", { check: name, detail });
  throw unavailable(runtime.name, refused);
}

function unavailable(runtime: string, refused: readonly ProbeCheck[]): OwlError {
  // Several checks may have the same cause and the same fix.
  const reasons = [...new Set(refused.map(({ problem, detail }) => problem ?? detail))];
  const fixes = [...new Set(refused.flatMap(({ fix }) => (fix === undefined ? [] : [fix])))];
  return new OwlError(
    "sandbox_unavailable",
    `${runtime} cannot run sandboxes here: ${reasons.join("; ") || "its probe checked nothing"}`,
    { facts: { failed: refused.map(({ name }) => name) }, ...(fixes.length > 0 && { hint: fixes.join(" ") }) },
  );
}

/** Runs the probe with its time limit, with the first template whose image exists. */
export async function probe(
  runtime: Runtime,
  { templates, signal }: { readonly templates: readonly string[]; readonly signal?: AbortSignal | undefined },
): Promise<ProbeReport & { readonly template: string }> {
  const timeout = AbortSignal.timeout(runtime.name === "microsandbox" ? MACHINE_PROBE_TIMEOUT_MS : PROBE_TIMEOUT_MS);
  const limited = signal === undefined ? timeout : AbortSignal.any([signal, timeout]);
  const missing: unknown[] = [];
  for (const template of templates) {
    try {
      return { ...(await runtime.probe(limited, template)), template };
    } catch (error) {
      if (toOwlError(error).facts["reason"] !== "image_missing") throw error;
      missing.push(error);
    }
  }
  throw missing[0];
}
