import type { Logger } from "../../../telemetry/logger.ts";
import type { EmptyPaths } from "../instance-mounts.ts";
import type { TemplateTree } from "../runtime.ts";
import type { WorkspaceWatch } from "../workspace-watch.ts";
import type { EngineClient } from "./engine-client.ts";
import type { EngineFacts } from "./engine-facts.ts";
import type { Images } from "./images.ts";
import type { Ownership } from "./ownership.ts";

/** Everything that containers of one server have in common. */
export interface DockerHost {
  readonly engine: EngineClient;
  readonly facts: EngineFacts;
  readonly images: Images;
  readonly ownership: Ownership;
  readonly logger: Logger;
  readonly dataFolder: string;
  readonly stateFolder: string;
  readonly empty: EmptyPaths;
  /** `runsc` and the like; empty: the engine's own default. */
  readonly ociRuntime: string;
  /** As engines take it: the profile itself, or for Podman the file that holds it. */
  readonly seccomp: string;
  readonly imageOf: (template: string) => string;
  readonly templates: Readonly<Record<string, TemplateTree>>;
  readonly workspaceWatch: WorkspaceWatch;
  /** Whether this server can read the engine's volumes, and so see how large they are. */
  readonly watchesWorkspaces: boolean;
  /** Its machine does not see this one's files: the egress proxy is reached over a stream. */
  readonly isRemote: boolean;
  /** Workspaces that have been given to their user. */
  readonly prepared: Set<string>;
  /** Containers of this server that it knows of. */
  readonly own: Set<string>;
  /** Containers whose making the engine has not answered yet: nobody knows their ids. */
  readonly making: Set<Promise<unknown>>;
  /** Whether such an answer was lost, so that there may be a container of this server that it does not know of. */
  readonly doubt: { isThere: boolean };
  /** Containers that could not be removed: the engine was away, or refused. */
  readonly leftovers: Set<string>;
  /** Workspaces of the same kind. */
  readonly leftVolumes: Set<string>;
}
