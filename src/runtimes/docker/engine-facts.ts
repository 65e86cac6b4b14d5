import { z } from "zod";
import type { Architecture } from "../seccomp/syscall-numbers.ts";
import { OwlError } from "../../errors/owl-error.ts";
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
}

const ARCHITECTURES: Readonly<Record<string, Architecture>> = { amd64: "x64", arm64: "arm64" };

export async function readEngineFacts(engine: EngineClient, contactTimeoutMs: number): Promise<EngineFacts> {
  await engine.call({ method: "GET", path: "/_ping", timeoutMs: contactTimeoutMs });
  const [version, info] = await Promise.all([
    engine.call({ method: "GET", path: "/version" }).then(({ json }) => versionSchema.parse(json)),
    engine.call({ method: "GET", path: "/info" }).then(({ json }) => infoSchema.parse(json)),
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
  };
}
