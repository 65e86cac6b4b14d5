import { realpathSync } from "node:fs";
import { env } from "node:process";

const OWN_PREFIX = "OWLCLAW_";
const EGRESS_PORT = 3128;

/** The settings in the guest's environment variables. */
interface Settings {
  /** As callers write it. */
  readonly workspacePath: string;
  /** With symbolic links resolved. */
  readonly workspaceRealPath: string;
  readonly egressSocket: string | undefined;
  /** A relay program beside the guest leads to the egress proxy. */
  readonly hasEgressRelay: boolean;
  readonly egressPort: number;
  /** The browser in the configuration. */
  readonly chromium: string | undefined;
  /** What one program may allocate, when the guest may allocate more. */
  readonly dataBytes: number | undefined;
  /** The environment of programs: without the guest's own variables. */
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
