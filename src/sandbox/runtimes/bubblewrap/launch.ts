import { spawn, type ChildProcess } from "node:child_process";
import { open, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { InstanceSpec, InstanceExit } from "../runtime.ts";
import { ARGUMENTS_FD, bwrapArguments, INFO_FD, limitedCommand } from "./bwrap-arguments.ts";
import type { BubblewrapHost } from "./bubblewrap-host.ts";
import type { InstanceMount } from "../instance-mounts.ts";
import {
  ROOT_SCRIPT,
  STAGE_FOLDER,
  USER_SCRIPT,
  withInheritedDescriptors,
  withInheritedEnvironment,
  withoutDescriptorLimit,
  VOLUME_MAPPER,
} from "./launch-script.ts";
import { TOOL_FOLDERS } from "../run-tool.ts";
import { PassThrough, type Readable } from "node:stream";
import { z } from "zod";
import { OwlError } from "../../../errors/owl-error.ts";
import { GuestStream } from "../guest-stream.ts";

/** Without these options Debian's bash reads start files of the user when its input is a socket, as it is here. */
const SHELL = ["/bin/bash", "--norc", "--noprofile", "-c"];

/** bwrap does the same, but only once it runs. */
const DIE_WITH_SERVER = ["setpriv", "--pdeathsig", "KILL", "--"];

/**
 * A mount namespace whose mounts do not propagate to the host. Unmounts of the host propagate into it where the host's mounts
 * are shared, as under systemd: otherwise a disk of the host would stay in use while the sandbox runs.
 */
const OWN_MOUNTS = ["unshare", "--mount", "--propagation", "slave", "--"];

const DISK = `${STAGE_FOLDER}/disk`;
const STAGED_WORKSPACE = `${DISK}/workspace`;
const STAGED_ETC = `${STAGE_FOLDER}/etc`;
const STAGED_TERMINALS = `${STAGE_FOLDER}/pts`;
/** The kernel has 3,072 for all sandboxes by default (`kernel.pty.max` less `kernel.pty.reserve`). */
const MAX_TERMINALS = 48;
/** bwrap mounts a devpts without a maximum: only root can mount it with one. */
const TERMINALS: TableEntry = [
  "devpts",
  STAGED_TERMINALS,
  "devpts",
  `newinstance,max=${MAX_TERMINALS},mode=620,ptmxmode=666,nosuid,noexec,X-mount.mkdir`,
];
const MAX_INFO_CHARS = 4096;

export interface Launch {
  readonly spec: InstanceSpec;
  readonly mounts: readonly InstanceMount[];
  readonly joinFiles: readonly string[];
  /** Set when the server is root. */
  readonly uid: number | undefined;
  /** A disk for the workspace, or a plain folder. */
  readonly workspace: { readonly image: string } | { readonly folder: string };
  readonly command: readonly string[];
}

/** Starts the process that executes bwrap. */
export async function launch(host: BubblewrapHost, request: Launch): Promise<LaunchedProcess> {
  const { spec, uid, mounts } = request;
  const etcFolder = join(host.stateFolder, "etc");
  const isStaged = uid !== undefined;
  const args = await bwrapArguments(host, {
    spec,
    workspaceSource: isStaged ? STAGED_WORKSPACE : workspaceFolder(request),
    etcSource: isStaged ? STAGED_ETC : etcFolder,
    terminalsSource: hasOwnTerminals(host, uid) ? STAGED_TERMINALS : undefined,
    mounts: mounts.map((mount, index) => ({
      ...mount,
      source: isStaged ? `${STAGE_FOLDER}/${index}` : mount.hostPath,
    })),
  });
  const bwrap = [host.bwrap, "--args", String(ARGUMENTS_FD), "--", ...limitedCommand(host, spec, request.command)];
  const [program = "", ...programArgs] = isStaged
    ? await privilegedCommand({ host, request, etcFolder, uid, bwrap })
    : [...DIE_WITH_SERVER, ...SHELL, script(host, USER_SCRIPT), "bash", ...request.joinFiles, "--", ...bwrap];
  const seccomp = await open(host.seccompFile, "r");
  try {
    const child = spawn(program, programArgs, {
      cwd: "/",
      ...(host.controlsOff.has("environment") ? {} : { env: { PATH: TOOL_FOLDERS.join(":") } }),
      stdio: ["pipe", "pipe", "pipe", "pipe", "pipe", seccomp.fd],
    });
    return followChild(child, args);
  } finally {
    await seccomp.close();
  }
}

async function privilegedCommand(options: {
  host: BubblewrapHost;
  request: Launch;
  etcFolder: string;
  uid: number;
  bwrap: readonly string[];
}): Promise<string[]> {
  const { host, request, etcFolder, uid, bwrap } = options;
  const staged = request.mounts.map((mount, index) => {
    const owner = host.controlsOff.has("own-uid") ? undefined : mount.owner;
    return { ...mount, owner, target: `${STAGE_FOLDER}/${index}` };
  });
  const isMapped = ({ owner }: (typeof staged)[number]): boolean => owner !== undefined;
  const plain = staged.filter((mount) => !isMapped(mount));
  const disk =
    "image" in request.workspace ? diskEntry(request.workspace.image) : bindEntry(request.workspace.folder, DISK);
  const table = [
    ["owlclaw", STAGE_FOLDER, "tmpfs", "size=1m,mode=755,nosuid,nodev"],
    disk,
    bindEntry(etcFolder, STAGED_ETC),
    ...(hasOwnTerminals(host, uid) ? [TERMINALS] : []),
    ...plain.filter(({ kind }) => kind === "folder").map(({ hostPath, target }) => bindEntry(hostPath, target)),
  ];
  const files = plain.filter(({ kind }) => kind === "file").flatMap(({ hostPath, target }) => [hostPath, target]);
  const mapped = staged.filter(isMapped).flatMap(({ kind, hostPath, opened, target, owner }) => {
    const identity = opened === undefined ? ["", ""] : [String(opened.dev), String(opened.ino)];
    return [kind, hostPath, target, String(owner?.uid), String(owner?.gid), ...identity];
  });
  const tableFile = join(request.spec.folder, "mounts");
  await writeFile(tableFile, table.map((entry) => `${entry.map(escapeField).join(" ")}\n`).join(""), { mode: 0o600 });
  const stageArguments = [tableFile, STAGED_WORKSPACE, String(uid), host.python?.executable ?? "", VOLUME_MAPPER];
  return [
    ...DIE_WITH_SERVER,
    ...OWN_MOUNTS,
    ...SHELL,
    script(host, ROOT_SCRIPT),
    "bash",
    ...request.joinFiles,
    "--",
    ...stageArguments,
    ...files,
    "--",
    ...mapped,
    "--",
    ...bwrap,
  ];
}

/** Source, target, type and options, as in fstab. */
type TableEntry = readonly string[];

/**
 * The kernel flushes the disk into its image when the last process exits. `nobarrier` and `noinit_itable` make that fast on a
 * busy machine: they cost safety only at a crash of the machine, which a workspace does not survive.
 */
function diskEntry(image: string): TableEntry {
  return [image, DISK, "ext4", "loop,nosuid,nodev,noatime,discard,nobarrier,noinit_itable,X-mount.mkdir"];
}

/** Private: later mounts of the host below it do not appear inside, where they would lack the limits of this mount. */
function bindEntry(hostPath: string, target: string): TableEntry {
  return [hostPath, target, "none", "rbind,rprivate,X-mount.mkdir"];
}

function hasOwnTerminals(host: BubblewrapHost, uid: number | undefined): boolean {
  return uid !== undefined && !host.controlsOff.has("terminal-limit");
}

/** White space ends a field, and `#` a line. */
function escapeField(text: string): string {
  return text.replaceAll(/[ \t\n\\#]/g, (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, "0")}`);
}

function script(host: BubblewrapHost, text: string): string {
  const closing = host.controlsOff.has("inherited-descriptors") ? withInheritedDescriptors(text) : text;
  const limited = host.controlsOff.has("descriptor-limit") ? withoutDescriptorLimit(closing) : closing;
  return host.controlsOff.has("environment") ? withInheritedEnvironment(limited) : limited;
}

function workspaceFolder(request: Launch): string {
  return "folder" in request.workspace ? join(request.workspace.folder, "workspace") : "";
}

const infoSchema = z.object({ "child-pid": z.number().int().positive() });

/** The launcher process, its streams and its end. */
export interface LaunchedProcess {
  readonly child: ChildProcess;
  readonly stream: GuestStream;
  readonly diagnostics: Readable;
  /** The host's id of the first process inside; `undefined` when none was started. */
  readonly initPid: Promise<number | undefined>;
  readonly end: Promise<Pick<InstanceExit, "code" | "signal">>;
}

/** Must be called in the same turn as the start: Node discards events of a child process that have no listener. */
function followChild(child: ChildProcess, args: Buffer): LaunchedProcess {
  const { stdin, stdout, stderr } = child;
  const argsPipe = child.stdio[ARGUMENTS_FD];
  const infoPipe = child.stdio[INFO_FD];
  const isWhole = stdin !== null && stdout !== null && stderr !== null && isWritable(argsPipe) && isReadable(infoPipe);
  if (!isWhole) throw new OwlError("internal", "the sandbox has no streams");
  // The launcher may exit before it has read them; its exit is handled below.
  argsPipe.on("error", () => undefined);
  argsPipe.end(args);
  return {
    child,
    stream: new GuestStream(stdin, stdout),
    diagnostics: stderr.pipe(new PassThrough()),
    initPid: readInitPid(infoPipe),
    end: childEnd(child),
  };
}

export async function readBounded(stream: Readable, maxChars: number): Promise<string> {
  let text = "";
  for await (const chunk of stream) {
    text += String(chunk);
    if (text.length > maxChars) break;
  }
  return text.slice(0, maxChars);
}

/** bwrap writes it when the namespaces exist, and then closes the pipe. */
async function readInitPid(pipe: Readable): Promise<number | undefined> {
  try {
    const info = await readBounded(pipe, MAX_INFO_CHARS);
    return infoSchema.parse(JSON.parse(info))["child-pid"];
  } catch {
    // bwrap ended before; its exit code and messages are reported.
    return undefined;
  }
}

async function childEnd(child: ChildProcess): Promise<Pick<InstanceExit, "code" | "signal">> {
  return await new Promise((resolve) => {
    child.once("exit", (code, signal) => resolve({ code, signal }));
    // It could not be started.
    child.once("error", () => {
      if (child.pid === undefined) resolve({ code: null, signal: null });
    });
  });
}

type Pipe = ChildProcess["stdio"][number];

function isWritable(pipe: Pipe): pipe is Extract<Pipe, NodeJS.WritableStream> {
  return pipe !== null && pipe !== undefined && "write" in pipe;
}

function isReadable(pipe: Pipe): pipe is Readable {
  return pipe !== null && pipe !== undefined && "read" in pipe;
}
