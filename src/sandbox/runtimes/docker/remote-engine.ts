import { OwlError } from "../../../errors/owl-error.ts";
import type { InstanceSpec } from "../runtime.ts";
import type { DockerHost } from "./docker-host.ts";
import type { EngineClient } from "./engine-client.ts";
import type { EngineFacts } from "./engine-facts.ts";

/** A path means another folder on another machine, and whatever lies there would be shown in its place. */
const OTHER_MACHINE = "is reached over the network, so it does not have the folders of this machine";

export function isRemote({ address }: EngineClient): boolean {
  return address.kind !== "socket";
}

/** What no sandbox could be started with is said before the first one. */
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
