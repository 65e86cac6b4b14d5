import type { Logger } from "../../../telemetry/logger.ts";
import type { EmptyPaths } from "../instance-mounts.ts";
import type { TemplateTree } from "../runtime.ts";
import type { WorkspaceWatch } from "../workspace-watch.ts";
import type { EngineClient } from "./engine-client.ts";
import type { EngineFacts } from "./engine-facts.ts";
import type { Images } from "./images.ts";
import type { Ownership } from "./ownership.ts";

/** What all containers of one server have in common. */
export interface DockerHost {
  readonly engine: EngineClient;
  readonly facts: EngineFacts;
  readonly images: Images;
  readonly ownership: Ownership;
  readonly logger: Logger;
  readonly dataFolder: string;
  readonly stateFolder: string;
  readonly empty: EmptyPaths;
  /** Such as `runsc`; empty: the engine's default. */
  readonly ociRuntime: string;
  /** The profile itself, or for Podman the path of its file. */
  readonly seccomp: string;
  readonly imageOf: (template: string) => string;
  readonly templates: Readonly<Record<string, TemplateTree>>;
  readonly workspaceWatch: WorkspaceWatch;
  /** Whether this server can read the engine's volumes and measure them. */
  readonly watchesWorkspaces: boolean;
  /** The engine is on another machine and cannot mount files of this one: the egress proxy is reached over a stream. */
  readonly isRemote: boolean;
  /** Workspaces whose owner has been set. */
  readonly prepared: Set<string>;
  /** Ids of this server's containers. */
  readonly own: Set<string>;
  /** Create requests in flight: the ids of their containers are not known yet. */
  readonly making: Set<Promise<unknown>>;
  /** Whether the answer of a create request was lost: there may be a container of this server that is not in `own`. */
  readonly doubt: { isThere: boolean };
  /** Containers whose removal has failed. */
  readonly leftovers: Set<string>;
  /** Workspaces whose removal has failed. */
  readonly leftVolumes: Set<string>;
}
