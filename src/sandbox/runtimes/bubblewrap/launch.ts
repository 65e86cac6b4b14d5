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

/** Debian's bash reads the user's start files when its input is a socket, as the streams of a child process are. */
const SHELL = ["/bin/bash", "--norc", "--noprofile", "-c"];

/** bwrap sees to this as well, but only once it runs. */
const DIE_WITH_SERVER = ["setpriv", "--pdeathsig", "KILL", "--"];

/**
 * A copy of the host's mounts that no mount made here leaves, and that the host's unmounts reach where its mounts are
 * shared (as under systemd): otherwise a disk of the host would stay in use for as long as the sandbox runs.
 */
const OWN_MOUNTS = ["unshare", "--mount", "--propagation", "slave", "--"];

const DISK = `${STAGE_FOLDER}/disk`;
const STAGED_WORKSPACE = `${DISK}/workspace`;
const STAGED_ETC = `${STAGE_FOLDER}/etc`;
const STAGED_TERMINALS = `${STAGE_FOLDER}/pts`;
/** Of the 3,072 that the kernel has for all sandboxes together by default (`kernel.pty.max` less `kernel.pty.reserve`). */
const MAX_TERMINALS = 48;
/** bwrap makes terminals for each sandbox as well, but without a maximum: only root can mount them with one. */
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

/** Starts the process that becomes bwrap; what it needs to know travels over descriptors. */
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
 * The disk is left when its last process ends, and what was written last goes into the image then. It waits for no real
 * disk (`nobarrier`) and fills no tables in the background (`noinit_itable`), so that even a busy machine lets go of it
 * soon: a workspace does not outlive a crash of the machine anyway.
 */
function diskEntry(image: string): TableEntry {
  return [image, DISK, "ext4", "loop,nosuid,nodev,noatime,discard,nobarrier,noinit_itable,X-mount.mkdir"];
}

/** Private: what the host mounts below it later does not show inside, where it would lack the limits of this mount. */
function bindEntry(hostPath: string, target: string): TableEntry {
  return [hostPath, target, "none", "rbind,rprivate,X-mount.mkdir"];
}

function hasOwnTerminals(host: BubblewrapHost, uid: number | undefined): boolean {
  return uid !== undefined && !host.controlsOff.has("terminal-limit");
}

/** Spaces and the like would end a field, and `#` a line. */
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

/** A started launcher, with everything it says and how it ends. */
export interface LaunchedProcess {
  readonly child: ChildProcess;
  readonly stream: GuestStream;
  readonly diagnostics: Readable;
  /** The first process inside, as the host numbers it; `undefined` when it came to none. */
  readonly initPid: Promise<number | undefined>;
  readonly end: Promise<Pick<InstanceExit, "code" | "signal">>;
}

/** Must be called in the same turn as the start: what nobody listens to when a child ends, Node throws away. */
function followChild(child: ChildProcess, args: Buffer): LaunchedProcess {
  const { stdin, stdout, stderr } = child;
  const argsPipe = child.stdio[ARGUMENTS_FD];
  const infoPipe = child.stdio[INFO_FD];
  const isWhole = stdin !== null && stdout !== null && stderr !== null && isWritable(argsPipe) && isReadable(infoPipe);
  if (!isWhole) throw new OwlError("internal", "the sandbox has no streams");
  // It may fail before it has read them: its exit tells.
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

/** bwrap names it when the namespaces exist, and then closes the pipe. */
async function readInitPid(pipe: Readable): Promise<number | undefined> {
  try {
    const info = await readBounded(pipe, MAX_INFO_CHARS);
    return infoSchema.parse(JSON.parse(info))["child-pid"];
  } catch {
    // It ended before it came so far: its exit and what it said tell why.
    return undefined;
  }
}

async function childEnd(child: ChildProcess): Promise<Pick<InstanceExit, "code" | "signal">> {
  return await new Promise((resolve) => {
    child.once("exit", (code, signal) => resolve({ code, signal }));
    // It could not even be started.
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
