import { z } from "zod";
import type { Architecture } from "../seccomp/syscall-numbers.ts";
import { OwlError } from "../../../errors/owl-error.ts";
import type { EngineClient } from "./engine-client.ts";
import type { InstanceSpec } from "../runtime.ts";
import type { DockerHost } from "./docker-host.ts";
import { basename } from "node:path";

const versionSchema = z.object({
  Version: z.string().default(""),
  Arch: z.string().default(""),
  Os: z.string().default(""),
  Components: z.array(z.object({ Name: z.string() })).nullish(),
});
const infoSchema = z.object({
  SecurityOptions: z.array(z.string()).nullish(),
  /** Of Podman, whose security options do not say it. */
  Rootless: z.boolean().nullish(),
  DockerRootDir: z.string().default(""),
  DefaultRuntime: z.string().default(""),
});
const ARCHITECTURES: Readonly<Record<string, Architecture>> = { amd64: "x64", arm64: "arm64" };
/** An engine that does not answer a ping in this time is not waited for longer. */
const PING_TIMEOUT_MS = 10_000;
/** A path means another folder on another machine, and that folder would be mounted. */
const OTHER_MACHINE = "is reached over the network, so it does not have the folders of this machine";

/** What the runtime must know of an engine before it starts anything on it. */
export interface EngineFacts {
  readonly kind: "docker" | "podman";
  readonly version: string;
  readonly architecture: Architecture;
  /** User ids inside are mapped to other ids on the host, and few of them exist. */
  readonly mapsUsers: boolean;
  /** Where the engine stores its data, on its machine. */
  readonly rootFolder: string;
  /** The OCI runtime of containers that name none. */
  readonly ociRuntime: string;
}

/** One time limit for all requests: an engine may answer the first at once and then hang. */
export async function readEngineFacts(engine: EngineClient, contactTimeoutMs: number): Promise<EngineFacts> {
  const deadline = performance.now() + contactTimeoutMs;
  const ask = async (path: string, maxMs = contactTimeoutMs): Promise<unknown> => {
    const timeoutMs = Math.max(1, Math.min(maxMs, Math.round(deadline - performance.now())));
    return (await engine.call({ method: "GET", path, timeoutMs })).json;
  };
  await ask("/_ping", PING_TIMEOUT_MS);
  const [version, info] = await Promise.all([
    ask("/version").then((json) => versionSchema.parse(json)),
    ask("/info").then((json) => infoSchema.parse(json)),
  ]);
  const architecture = ARCHITECTURES[version.Arch];
  if (version.Os !== "linux" || architecture === undefined) {
    const found = `${version.Os} on ${version.Arch}`;
    throw new OwlError("sandbox_unavailable", `the engine at ${engine.name} runs ${found} containers`, {
      hint: "Use an engine for Linux containers on x64 or arm64.",
    });
  }
  const isPodman = (version.Components ?? []).some(({ Name }) => Name.startsWith("Podman"));
  const options = info.SecurityOptions ?? [];
  const mapsUsers = info.Rootless === true || options.some((option) => /name=(userns|rootless)/.test(option));
  return {
    kind: isPodman ? "podman" : "docker",
    version: version.Version,
    architecture,
    mapsUsers,
    rootFolder: info.DockerRootDir,
    ociRuntime: info.DefaultRuntime,
  };
}

export function isRemote({ address }: EngineClient): boolean {
  return address.kind !== "socket";
}

/** Rejects at the start of the server what no sandbox could be started with. */
export function refuseRemoteVolumes(engine: EngineClient): void {
  if (!isRemote(engine)) return;
  throw new OwlError("sandbox_unavailable", `the engine at ${engine.name} ${OTHER_MACHINE}: it cannot show volumes`, {
    facts: { reason: "engine_remote" },
    hint: "Empty sandbox.volumes, and do not run handlers with handlers.isolation: sandbox; or use an engine on the server's own machine by its unix socket.",
  });
}

export function refuseRemotePodman(engine: EngineClient, { kind }: EngineFacts): void {
  if (kind !== "podman" || !isRemote(engine)) return;
  const reason = "Podman reads the filter of system calls from a file of its own machine";
  throw new OwlError("sandbox_unavailable", `the engine at ${engine.name} ${OTHER_MACHINE}: ${reason}`, {
    facts: { reason: "engine_remote" },
    hint: "Use Podman on the server's own machine by its unix socket, or Docker over TLS.",
  });
}

export function refuseRemoteFolders({ engine, templates }: DockerHost, { template, volumes }: InstanceSpec): void {
  if (volumes.length > 0) refuseRemoteVolumes(engine);
  if ((templates[template]?.folders ?? []).length === 0 || !isRemote(engine)) return;
  const message = `the engine at ${engine.name} ${OTHER_MACHINE}: it cannot show the template ${template}, which was built here`;
  throw new OwlError("sandbox_unavailable", message, {
    facts: { reason: "engine_remote" },
    hint: `Put its packages into an image and name that in sandbox.templates.${template}.image, or use an engine on the server's own machine.`,
  });
}

/** Podman ignores the runtime in the request to make a container and reports no error: a sandbox meant for gVisor would run on runc. */
export function refuseIgnoredOciRuntime(wanted: string, { kind, ociRuntime }: EngineFacts): void {
  if (kind !== "podman" || wanted === "" || basename(wanted) === basename(ociRuntime)) return;
  throw new OwlError(
    "sandbox_unavailable",
    `Podman runs containers with ${ociRuntime === "" ? "a runtime that it does not name" : basename(ociRuntime)}, not with ${wanted}`,
    {
      facts: { reason: "oci_runtime" },
      hint: `Start its service with it (\`podman --runtime ${wanted} system service …\`), or leave sandbox.docker.runtime empty.`,
    },
  );
}
