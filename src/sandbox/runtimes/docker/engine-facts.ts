import { z } from "zod";
import type { Architecture } from "../seccomp/syscall-numbers.ts";
import { OwlError } from "../../../errors/owl-error.ts";
import type { EngineClient } from "./engine-client.ts";

const versionSchema = z.object({
  Version: z.string().default(""),
  Arch: z.string().default(""),
  Os: z.string().default(""),
  Components: z.array(z.object({ Name: z.string() })).nullish(),
});
const infoSchema = z.object({
  SecurityOptions: z.array(z.string()).nullish(),
  DockerRootDir: z.string().default(""),
  DefaultRuntime: z.string().default(""),
});

/** What must be known of an engine before anything is started on it. */
export interface EngineFacts {
  readonly kind: "docker" | "podman";
  readonly version: string;
  readonly architecture: Architecture;
  /** Numbers of users inside are not those of the host: few of them exist. */
  readonly mapsUsers: boolean;
  /** Where the engine keeps its volumes and everything else, on its own machine. */
  readonly rootFolder: string;
  /** The OCI runtime of containers that name none. */
  readonly ociRuntime: string;
}

const ARCHITECTURES: Readonly<Record<string, Architecture>> = { amd64: "x64", arm64: "arm64" };

/** An engine that does not even say that it is there is not waited for longer. */
const PING_TIMEOUT_MS = 10_000;

/** All that is asked has to be answered within the one time: an engine may greet at once and then hang. */
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
  const mapsUsers = (info.SecurityOptions ?? []).some((option) => /name=(userns|rootless)/.test(option));
  return {
    kind: isPodman ? "podman" : "docker",
    version: version.Version,
    architecture,
    mapsUsers,
    rootFolder: info.DockerRootDir,
    ociRuntime: info.DefaultRuntime,
  };
}
