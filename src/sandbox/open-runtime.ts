import { randomBytes } from "node:crypto";
import { fileURLToPath } from "node:url";
import type { Config } from "../config/schema.ts";
import { userEnvironment } from "../config/environment.ts";
import { OwlError, toOwlError } from "../errors/owl-error.ts";
import type { ProbeCheck, ProbeReport, Runtime } from "./runtimes/runtime.ts";
import { type Templates, templateTrees } from "./templates.ts";
import type { Logger } from "../telemetry/logger.ts";

const PROBE_TIMEOUT_MS = 60_000;
/** A microVM in a virtual machine that is emulated itself takes most of it. */
const MACHINE_PROBE_TIMEOUT_MS = 180_000;
/** Podman takes a second to tell of itself, and more where much goes on. */
const PASSING_CONTACT_MS = 5000;

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
  /** That of templates that name none of their own; absent: this one. */
  readonly usual?: RuntimeName;
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

async function openDocker({ config: { sandbox }, logger, templates, isAsked }: RuntimeWish): Promise<Runtime> {
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

/** What a template asks for, where `usual` is what the others have. */
export function runtimeOfTemplate(own: TemplateSetting | undefined, usual: RuntimeName): Config["sandbox"]["runtime"] {
  return own?.runtime ?? (own?.image === undefined ? "auto" : usual === "microsandbox" ? usual : "docker");
}

type TemplateSetting = Config["sandbox"]["templates"][string];

/**
 * Whose images the probe starts from, until one is there. What everybody gets who names no template has to be; but no template
 * of its own waits for the image of another.
 */
export function templatesToTry({ config: { sandbox }, templates, name, usual = name }: TryWish): readonly string[] {
  const named = [sandbox.template, ...Object.keys(sandbox.templates), ...templates.names];
  const served = named.filter((template) => {
    const asked = runtimeOfTemplate(sandbox.templates[template], usual);
    return (asked === "auto" ? usual : asked) === name;
  });
  if (usual === name && served[0] === sandbox.template) return [sandbox.template];
  return served.length === 0 ? [""] : [...new Set(served)];
}

type TryWish = Pick<RuntimeWish, "config" | "templates" | "name" | "usual">;

export interface IsolationWish {
  readonly limits: "required" | "best-effort";
  readonly logger: Logger;
  readonly signal: AbortSignal | undefined;
  readonly templates: readonly string[];
}

/** Tries to break out, and refuses when one try succeeds: a sandbox that may leak is worse than none. */
export async function assertIsolated(runtime: Runtime, wish: IsolationWish): Promise<void> {
  const { limits, logger } = wish;
  const { checks } = await probe(runtime, wish);
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

/** Tries to break out, for as long as that may take there; from the image of the first template that has one there. */
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
