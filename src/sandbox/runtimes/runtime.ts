import type { Duplex, Readable } from "node:stream";
import type { OwlError } from "../../errors/owl-error.ts";

/** What one sandbox may use. */
export interface Resources {
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly maxPids: number;
  /** For the workspace and `/tmp`, each. */
  readonly diskBytes: number;
}

/** Which file or folder it is, whatever its name. */
export interface FileIdentity {
  readonly dev: bigint;
  readonly ino: bigint;
}

/** A file or folder that the server holds open. */
export interface OpenedPath extends FileIdentity {
  /** Leads to what was opened, whatever has its name now; for this process. */
  readonly procPath: string;
}

/** A path in a volume that is mounted over itself, and so cannot be renamed or removed from inside. */
interface ProtectedMount {
  readonly relativePath: string;
  readonly kind: "file" | "folder";
  /** `pinned`: a writable folder above a protected path. */
  readonly access: "read-only" | "hidden" | "pinned";
  readonly opened: OpenedPath;
}

/** A folder of the host that is visible inside, as the operator configured it. */
export interface Volume {
  readonly hostPath: string;
  readonly guestPath: string;
  readonly isReadOnly: boolean;
  /** Absent: the folder is found by its name each time. */
  readonly opened?: OpenedPath;
  /** Outermost first. Reading it throws where the volume cannot be protected at the moment. */
  readonly protectedPaths?: readonly ProtectedMount[];
  /** A folder of the server's own data that it made for this cell; no configuration can say so. */
  readonly isOwn?: boolean;
}

/** What a template adds to what is inside anyway; always read-only. */
export interface TemplateTree {
  readonly folders: ReadonlyArray<{ readonly hostPath: string; readonly guestPath: string }>;
  /** Folders inside that come first on the PATH. */
  readonly path: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** What a runtime must know to start one isolated place. Nothing in it comes unchecked from a caller. */
export interface InstanceSpec {
  /** Unique among all cells of all servers on the machine; letters, digits, `-` and `_`. */
  readonly id: string;
  readonly template: string;
  readonly resources: Resources;
  /** Folder of the host below the data folder that holds the cell's workspace; the runtime may put an image or a mount there. */
  readonly folder: string;
  /** Where the workspace is inside, as in `/workspace`. */
  readonly workspacePath: string;
  readonly volumes: readonly Volume[];
  /** The whole environment inside: nothing of the server's own passes. */
  readonly env: Readonly<Record<string, string>>;
  /** What runs inside on the stream in place of the guest, as seen from inside. */
  readonly program?: readonly string[];
  /** Unix socket of the egress proxy on the host, mounted or reached by `egressStream`; absent: no network at all. */
  readonly egressSocket?: string;
}

export interface InstanceExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** `memory`: the kernel ended something in it for using too much. `disk`: it wrote more than it may, where no disk limit could be set. */
  readonly reason?: "memory" | "disk" | "stopped";
}

export interface InstanceUsage {
  readonly memoryBytes: number;
  readonly cpuMs: number;
  readonly pids: number;
}

/** One running isolated place with the guest in it. */
export interface Instance {
  readonly id: string;
  /** The engine's own id of it, where it is a container. */
  readonly containerId?: string | undefined;
  /** The byte stream to the guest: JSON-RPC frames both ways. */
  readonly stream: Duplex;
  /** To the relay inside, where the egress proxy's socket could not be mounted: frames of `network/relay`. */
  readonly egressStream?: Duplex | undefined;
  /** What the guest says about itself, for the log; never trusted, bounded by the reader. */
  readonly diagnostics: Readable;
  /** When it ends by itself, whoever is in it; absent: never. */
  readonly endsAtMs?: number | undefined;
  /** How it ended. A guest that ended before it was stopped keeps the reason it had. */
  readonly exited: Promise<InstanceExit>;
  usage(): Promise<InstanceUsage>;
  /** Throws when a volume inside is not the folder that was opened. To be called before anything of a caller runs inside. */
  checkMounts?(): Promise<void>;
  /** Ends everything in it and removes what the runtime made beside the workspace: processes, cgroup, mounts. May be called twice. */
  stop(): Promise<void>;
}

/** One property of the isolation, and whether trying to break it failed as it must. */
export interface ProbeCheck {
  readonly name: string;
  readonly holds: boolean;
  /** `limit`: not enforceable for this kind of user; allowed only with `sandbox.limits: best-effort`. */
  readonly severity: "isolation" | "limit";
  readonly detail: string;
  /** In one short line, what is wrong when it does not hold; checks with the same cause say the same. */
  readonly problem?: string;
  readonly fix?: string;
}

export interface ProbeReport {
  readonly runtime: string;
  readonly checks: readonly ProbeCheck[];
}

/** What keeps places from starting at the moment, where that can pass by itself. */
export interface RuntimeTrouble {
  readonly error: OwlError;
  /** Where it was met; absent: everywhere. */
  readonly template?: string;
  /** Most templates have what this one lacks in common with it. */
  readonly isCommon?: boolean;
}

/** Starts isolated places. Runtimes differ in nothing else. */
export interface Runtime {
  readonly name: "bubblewrap" | "docker" | "microsandbox";
  /** How long a place may wait for somebody and still be there for as long as he may have it; absent: for ever. */
  readonly maxWaitMs?: number | undefined;
  /** Starts a place and tries to break out of it. Where places start from images, from that of the template. */
  probe(signal: AbortSignal, template?: string): Promise<ProbeReport>;
  /** A place that fails in the last steps of its start may still be returned: it then ends at once, and its diagnostics say why. */
  start(spec: InstanceSpec, signal: AbortSignal): Promise<Instance>;
  /** Removes the workspace and everything else of a cell that is stopped. Returns whether it is gone; what is not is tried again. */
  discard(folder: string): Promise<boolean>;
  /** Workspaces that could not be removed so far. */
  left?(): number;
  /** Removes what servers that are dead left behind; touches nothing that is not ours. */
  reap(): Promise<{ readonly removed: readonly string[] }>;
  trouble?(): RuntimeTrouble | undefined;
  close(): Promise<void>;
}
