import type { Duplex, Readable } from "node:stream";
import type { OwlError } from "../../errors/owl-error.ts";

/** The limits of one sandbox. */
export interface Resources {
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly maxPids: number;
  /** For the workspace and for `/tmp`, each. */
  readonly diskBytes: number;
}

/** Identifies a file or folder independent of its name. */
export interface FileIdentity {
  readonly dev: bigint;
  readonly ino: bigint;
}

/** A file or folder that the server holds open. */
export interface OpenedPath extends FileIdentity {
  /** Leads to the opened file, also when another file has its name; only in this process. */
  readonly procPath: string;
}

/** A path in a volume that is mounted over itself: it cannot be renamed or removed from inside. */
interface ProtectedMount {
  readonly relativePath: string;
  readonly kind: "file" | "folder";
  /** `pinned`: a writable folder above a protected path. */
  readonly access: "read-only" | "hidden" | "pinned";
  readonly opened: OpenedPath;
}

/** A folder of the host that the configuration mounts inside. */
export interface Volume {
  readonly hostPath: string;
  readonly guestPath: string;
  readonly isReadOnly: boolean;
  /** Absent: the folder is opened by its name at each start. */
  readonly opened?: OpenedPath;
  /** Outermost first. The getter throws while the volume cannot be protected. */
  readonly protectedPaths?: readonly ProtectedMount[];
  /** A folder in the data folder that the server made for this instance. No configuration can set this. */
  readonly isOwn?: boolean;
}

/** What a template adds to the system tree; read-only. */
export interface TemplateTree {
  readonly folders: ReadonlyArray<{ readonly hostPath: string; readonly guestPath: string }>;
  /** The first folders on the PATH inside. */
  readonly path: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** What a runtime needs to start one instance. Callers' values in it have been checked. */
export interface InstanceSpec {
  /** Unique among all instances of all servers on the machine; letters, digits, `-` and `_`. */
  readonly id: string;
  readonly template: string;
  readonly resources: Resources;
  /** Folder below the data folder for the workspace; the runtime may put an image or a mount there. */
  readonly folder: string;
  /** Path of the workspace inside, such as `/workspace`. */
  readonly workspacePath: string;
  readonly volumes: readonly Volume[];
  /** Environment variables inside. */
  readonly env: Readonly<Record<string, string>>;
  /** Runs instead of the guest, with the stream as its stdin and stdout. Paths are those inside. */
  readonly program?: readonly string[];
  /** Unix socket of the egress proxy on the host, mounted or reached by `egressStream`; absent: no network. */
  readonly egressSocket?: string;
}

export interface InstanceExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** `memory`: the kernel killed a process in it. `disk`: its workspace was too large where the kernel does not limit it. */
  readonly reason?: "memory" | "disk" | "stopped";
}

export interface InstanceUsage {
  readonly memoryBytes: number;
  readonly cpuMs: number;
  readonly pids: number;
}

/** One running bwrap, container or microVM with the guest in it. */
export interface Instance {
  readonly id: string;
  /** The engine's id of the container. */
  readonly containerId?: string | undefined;
  /** The byte stream to the guest: frames of `contract/json-rpc.ts` both ways. */
  readonly stream: Duplex;
  /** To the relay inside, where the egress socket cannot be mounted: frames of `network/relay`. */
  readonly egressStream?: Duplex | undefined;
  /** The stderr of the guest, for the log. The reader must bound it. */
  readonly diagnostics: Readable;
  /** When the runtime ends it; absent: never. */
  readonly endsAtMs?: number | undefined;
  /** A guest that exited before it was stopped keeps its own reason. */
  readonly exited: Promise<InstanceExit>;
  usage(): Promise<InstanceUsage>;
  /** Rejects when a volume inside is not the folder that the server opened. Must be called before code of a caller runs inside. */
  checkMounts?(): Promise<void>;
  /** Ends every process and removes everything but the workspace, such as the control group and mounts. May be called twice. */
  stop(): Promise<void>;
}

/** One property of the isolation, and whether the attack on it failed. */
export interface ProbeCheck {
  readonly name: string;
  readonly holds: boolean;
  /** A broken `limit` is accepted with `sandbox.limits: best-effort`. */
  readonly severity: "isolation" | "limit";
  readonly detail: string;
  /** In one short line; checks with the same cause have the same text. */
  readonly problem?: string;
  readonly fix?: string;
}

export interface ProbeReport {
  readonly runtime: string;
  readonly checks: readonly ProbeCheck[];
}

/** Why no instance can be started at the moment. It may pass without a restart of the server. */
export interface RuntimeProblem {
  readonly error: OwlError;
  /** Absent: it affects all templates. */
  readonly template?: string;
  /** The template uses the default image, which most templates share. */
  readonly isCommon?: boolean;
}

/** Starts isolated instances. */
export interface Runtime {
  readonly name: "bubblewrap" | "docker" | "microsandbox";
  /** How long an instance may wait in the warm pool; absent: without limit. */
  readonly maxWaitMs?: number | undefined;
  /** Starts instances and tries to break out of them. Runtimes with images use the image of the template. */
  probe(signal: AbortSignal, template?: string): Promise<ProbeReport>;
  /** An instance whose start fails in its last steps may be returned: it ends at once, and its diagnostics say why. */
  start(spec: InstanceSpec, signal: AbortSignal): Promise<Instance>;
  /** Removes everything of a stopped instance, including its workspace. Returns whether it is gone; a failed removal is retried. */
  discard(folder: string): Promise<boolean>;
  /** Number of workspaces whose removal has failed. */
  left?(): number;
  /** Removes what dead servers left behind. */
  reap(): Promise<{ readonly removed: readonly string[] }>;
  problem?(): RuntimeProblem | undefined;
  close(): Promise<void>;
}
