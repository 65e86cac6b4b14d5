import { basename } from "node:path";
import { OwlError } from "../../../errors/owl-error.ts";
import type { EngineFacts } from "./engine-facts.ts";

/** Podman takes no word on it from those who start containers, and does not say so: whoever wants gVisor would get runc. */
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
