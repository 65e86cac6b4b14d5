import { spawn } from "node:child_process";
import { open, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { InstanceSpec } from "../runtime.ts";
import { ARGUMENTS_FD, bwrapArguments } from "./bwrap-arguments.ts";
import type { BubblewrapHost } from "./bubblewrap-host.ts";
import type { InstanceMount } from "../instance-mounts.ts";
import {
  ROOT_SCRIPT,
  STAGE_FOLDER,
  USER_SCRIPT,
  withInheritedDescriptors,
  withInheritedEnvironment,
  withoutDescriptorLimit,
} from "./launch-script.ts";
import { followChild, type LaunchedProcess } from "./launched-process.ts";
import { limitedCommand } from "./process-limits.ts";
import { TOOL_FOLDERS } from "../run-tool.ts";
import { VOLUME_MAPPER } from "./volume-mapper.ts";

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

/** bwrap makes terminals for each sandbox as well, but without a maximum: only root can mount them with one. */
const TERMINALS: TableEntry = [
  "devpts",
  STAGED_TERMINALS,
  "devpts",
  `newinstance,max=${MAX_TERMINALS},mode=620,ptmxmode=666,nosuid,noexec,X-mount.mkdir`,
];

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
