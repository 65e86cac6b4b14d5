import type { Sandboxes } from "../sandbox/sandboxes.ts";
import type { Templates } from "../sandbox/templates.ts";
import type { SandboxObserver } from "../sandbox/sandbox-observer.ts";
import type { VolumeSetting } from "../config/volume.ts";
import type { Logger } from "../telemetry/logger.ts";

/** What tools say about themselves and hold themselves to, from the configuration. */
export interface ToolLimits {
  readonly maxResultChars: number;
  /** Time for code and commands when the call says nothing. */
  readonly defaultTimeoutSeconds: number;
  /** Below the tool's own time-out, so that the inner one ends first. */
  readonly maxTimeoutSeconds: number;
  readonly idleTimeoutSeconds: number;
  readonly maxAgeSeconds: number;
  readonly workspacePath: string;
  /** Hosts that a sandbox of the usual template can reach. */
  readonly network: readonly string[];
  /** The same for templates that have hosts of their own. */
  readonly networkOfTemplates: Readonly<Record<string, readonly string[]>>;
}

export interface ToolServices {
  readonly sandboxes: Sandboxes;
  readonly templates: Templates;
  readonly limits: ToolLimits;
  readonly volumes: readonly VolumeSetting[];
  readonly logger: Logger;
  /** For people who look on. */
  readonly sandboxObserver?: SandboxObserver | undefined;
}
