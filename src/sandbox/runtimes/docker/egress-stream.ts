import { EGRESS_RELAY } from "../instance-mounts.ts";
import type { GuestStream } from "../guest-stream.ts";
import { splitAttached } from "./attached-stream.ts";
import { createdSchema } from "./engine-answers.ts";
import type { DockerHost } from "./docker-host.ts";

/** Starts the relay beside the guest; its input and output carry the sandbox's connections. */
export async function openEgressStream(
  { engine }: DockerHost,
  { containerId, node, signal }: { readonly containerId: string; readonly node: string; readonly signal: AbortSignal },
): Promise<GuestStream> {
  const json = {
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    Tty: false,
    // What programs inside are told about the proxy is not for the relay itself.
    Env: ["NODE_OPTIONS="],
    Cmd: [node, ...EGRESS_RELAY],
  };
  const made = await engine.call({ method: "POST", path: `/containers/${containerId}/exec`, json });
  const path = `/exec/${createdSchema.parse(made.json).Id}/start`;
  const { stream, diagnostics } = splitAttached(
    await engine.hijack({ path, json: { Detach: false, Tty: false }, signal }),
  );
  diagnostics.resume();
  return stream;
}
