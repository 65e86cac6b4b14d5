import { realpathSync } from "node:fs";
import { env } from "node:process";

const OWN_PREFIX = "OWLCLAW_";
const EGRESS_PORT = 3128;

/** What the guest is told by the environment it is started with. */
interface Settings {
  /** As callers write it. */
  readonly workspacePath: string;
  /** With symbolic links resolved. */
  readonly workspaceRealPath: string;
  readonly egressSocket: string | undefined;
  /** A program beside this one leads to the proxy. */
  readonly hasEgressRelay: boolean;
  readonly egressPort: number;
  /** The browser that the configuration names. */
  readonly chromium: string | undefined;
  /** What one program may allocate, where the guest itself may allocate more. */
  readonly dataBytes: number | undefined;
  /** For the processes started inside: everything but what is meant for the guest alone. */
  readonly environment: Readonly<Record<string, string>>;
}

export function readSettings(): Settings {
  const workspacePath = env["OWLCLAW_WORKSPACE"] ?? process.cwd();
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && !name.startsWith(OWN_PREFIX)) environment[name] = value;
  }
  return {
    workspacePath,
    workspaceRealPath: realpathSync(workspacePath),
    egressSocket: env["OWLCLAW_EGRESS"],
    hasEgressRelay: env["OWLCLAW_EGRESS_RELAY"] !== undefined,
    egressPort: Number(env["OWLCLAW_EGRESS_PORT"] ?? EGRESS_PORT),
    chromium: env["OWLCLAW_CHROMIUM"],
    dataBytes: env["OWLCLAW_DATA_BYTES"] === undefined ? undefined : Number(env["OWLCLAW_DATA_BYTES"]),
    environment,
  };
}
