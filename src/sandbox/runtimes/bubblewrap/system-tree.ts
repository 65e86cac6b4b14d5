import { lstat, mkdir, readFile, readlink } from "node:fs/promises";
import { join } from "node:path";
import { replaceFile } from "../host-files.ts";

/** The user inside; on the host it has another id. */
export const INSIDE_UID = 1000;
export const INSIDE_GID = 1000;

const SYSTEM_FOLDERS = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/** The parts of the host's `/etc` that programs need to start. None differs by user or has a secret. */
const SHARED_ETC = [
  "/etc/alternatives",
  "/etc/ca-certificates",
  "/etc/fonts",
  "/etc/ld.so.cache",
  "/etc/ld.so.conf",
  "/etc/ld.so.conf.d",
  "/etc/localtime",
  "/etc/magic",
  "/etc/matplotlibrc",
  "/etc/mime.types",
  "/etc/pki/ca-trust/extracted",
  "/etc/pki/tls/certs",
  "/etc/python3",
  "/etc/ssl/certs",
  "/etc/ssl/openssl.cnf",
  "/etc/terminfo",
  "/etc/timezone",
];

/** Files of `/proc` that describe the machine and not the sandbox. */
const MASKED_PROC = [
  "/proc/kcore",
  "/proc/keys",
  "/proc/key-users",
  "/proc/kallsyms",
  "/proc/timer_list",
  "/proc/kmsg",
];

/** Generated, the same for every instance: the user, and a network in which no name resolves. */
const OWN_ETC: Readonly<Record<string, string>> = {
  passwd: `root:x:0:0:root:/nonexistent:/usr/sbin/nologin\nsandbox:x:${INSIDE_UID}:${INSIDE_GID}:sandbox:/workspace:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n`,
  group: `root:x:0:\nsandbox:x:${INSIDE_GID}:\nnogroup:x:65534:\n`,
  hosts: "127.0.0.1 localhost sandbox\n::1 localhost\n",
  hostname: "sandbox\n",
  "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
  "resolv.conf": "",
};

export async function writeOwnEtc(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o755 });
  for (const [name, text] of Object.entries(OWN_ETC)) {
    const file = join(folder, name);
    const isWritten = (await readFile(file, "utf8").catch(() => undefined)) === text;
    if (isWritten) continue;
    // Replaced and not truncated: running instances of another server may have the old file mounted.
    await replaceFile(file, text, 0o644);
  }
}

/** Arguments of bwrap for the read-only system: the host's programs and libraries, and the generated `/etc`. */
export async function systemTreeArguments(ownEtcFolder: string): Promise<string[]> {
  const args: string[] = [];
  for (const path of SYSTEM_FOLDERS) {
    const stats = await lstat(path).catch(() => undefined);
    if (stats === undefined) continue;
    if (stats.isSymbolicLink()) args.push("--symlink", await readlink(path), path);
    else args.push("--ro-bind", path, path);
  }
  for (const path of SHARED_ETC) {
    if ((await lstat(path).catch(() => undefined)) !== undefined) args.push("--ro-bind-try", path, path);
  }
  for (const name of Object.keys(OWN_ETC)) args.push("--ro-bind", join(ownEtcFolder, name), `/etc/${name}`);
  return args;
}

export async function maskedProcArguments(): Promise<string[]> {
  const args: string[] = [];
  for (const path of MASKED_PROC) {
    if ((await lstat(path).catch(() => undefined)) !== undefined) args.push("--ro-bind", "/dev/null", path);
  }
  return args;
}
