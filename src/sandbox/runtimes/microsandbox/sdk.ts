import { OwlError } from "../../../errors/owl-error.ts";

const PACKAGE = "microsandbox";
const MIN_NODE = 22;
const INSTALL =
  "Install it beside OwlClaw: `npm install microsandbox` (with --global when OwlClaw is installed so), with the npm of Node 22 or newer, which also installs the package for this kind of machine (docs/runtimes.md).";

/** The part of the npm package `microsandbox` that is used. It is not a dependency: the operator installs it. */
export interface MicrosandboxSdk {
  setDefaultBackend(backend: "local"): void;
  readonly Sandbox: {
    builder(name: string): MachineBuilder;
    get(name: string): Promise<FoundMachine>;
    listWith(configure: (list: MachineList) => MachineList): Promise<MachinePage>;
  };
}

export interface MachineBuilder {
  image(reference: string): this;
  pullPolicy(policy: "never"): this;
  rootDisk(configure: (disk: RootDisk) => RootDisk): this;
  cpus(count: number): this;
  memory(mib: number): this;
  hostname(name: string): this;
  labels(labels: Record<string, string>): this;
  disableNetwork(): this;
  vsock(hostPath: string, port: number): this;
  maxDuration(seconds: number): this;
  quietLogs(): this;
  volume(guestPath: string, configure: (mount: MachineMount) => MachineMount): this;
  create(): Promise<Machine>;
}

export interface RootDisk {
  tmpfs(): this;
  size(mib: number): this;
}

export interface MachineMount {
  bind(hostPath: string): this;
  disk(hostPath: string): this;
  format(format: "raw"): this;
  fstype(type: "ext4"): this;
  readonly(): this;
  nosuid(): this;
  nodev(): this;
  owner(uid: number, gid: number): this;
}

export interface Machine {
  execStreamWith(command: string, configure: (options: ExecOptions) => ExecOptions): Promise<ExecHandle>;
  metrics(): Promise<{ readonly memoryBytes: number; readonly vcpuTimeNs: number }>;
  destroy(options: { readonly force: boolean; readonly timeoutMs?: number }): Promise<void>;
}

export interface ExecOptions {
  args(args: string[]): this;
  user(user: string): this;
  stdinNull(): this;
}

export interface ExecHandle {
  /** null: the machine is gone. */
  recv(): Promise<ExecEvent | null>;
}

export type ExecEvent =
  | { readonly kind: "started"; readonly pid: number }
  | { readonly kind: "stdout" | "stderr"; readonly data: Uint8Array }
  | { readonly kind: "exited"; readonly code: number };

export interface MachineList {
  label(key: string, value: string): this;
  limit(count: number): this;
  cursor(cursor: string): this;
}

export interface MachinePage {
  readonly sandboxes: readonly FoundMachine[];
  readonly nextCursor?: string;
}

export interface FoundMachine {
  readonly name: string;
  /** Contains the labels. */
  config(): Record<string, unknown>;
  destroy(options: { readonly force: boolean; readonly timeoutMs?: number }): Promise<void>;
}

export interface SdkSurroundings {
  readonly nodeVersion: string;
  readonly load: () => Promise<unknown>;
}

/** Loads the operator's package, or says what to install. */
export async function loadMicrosandbox(around: SdkSurroundings = ownSurroundings()): Promise<MicrosandboxSdk> {
  const major = Number(/^v?(\d+)/.exec(around.nodeVersion)?.[1]);
  if (!(major >= MIN_NODE)) {
    throw missing(`microsandbox needs Node ${MIN_NODE} or newer, and this is ${around.nodeVersion}`, {
      hint: `Start OwlClaw with Node ${MIN_NODE} or newer, and install the npm package microsandbox with its npm; or set sandbox.runtime to auto, bubblewrap or docker.`,
    });
  }
  let loaded: unknown;
  try {
    loaded = await around.load();
  } catch (cause) {
    const isAbsent = cause instanceof Error && cause.message.includes(`'${PACKAGE}'`);
    const reason = cause instanceof Error ? cause.message.split("\n", 1)[0] : String(cause);
    const message = isAbsent
      ? "the npm package microsandbox is not installed"
      : `microsandbox cannot be loaded: ${reason}`;
    throw missing(message, { hint: INSTALL, cause });
  }
  if (!isSdk(loaded)) throw missing("the npm package microsandbox has an unknown version", { hint: INSTALL });
  // Otherwise a key in the environment would start machines in the provider's cloud.
  loaded.setDefaultBackend("local");
  return loaded;
}

function ownSurroundings(): SdkSurroundings {
  // Through a variable, so that bundlers and checkers do not treat it as a dependency.
  const name: string = PACKAGE;
  return { nodeVersion: process.version, load: async (): Promise<unknown> => await import(name) };
}

function missing(message: string, { hint, cause }: { readonly hint: string; readonly cause?: unknown }): OwlError {
  return new OwlError("sandbox_unavailable", message, { hint, facts: { reason: "package_missing" }, cause });
}

function isSdk(loaded: unknown): loaded is MicrosandboxSdk {
  if (typeof loaded !== "object" || loaded === null || !("Sandbox" in loaded) || !("setDefaultBackend" in loaded))
    return false;
  const { Sandbox } = loaded;
  return typeof Sandbox === "function" && "builder" in Sandbox && "listWith" in Sandbox;
}
