import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { cp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";
import { cachedFolder } from "./cached-folder.ts";

const run = promisify(execFile);
const PROJECT = resolve(import.meta.dirname, "../..");
const MIB = 1024 * 1024;
const JOB_SIZE = "1500M";
const CPU = ["-cpu", "max", "-smp", "2", "-m", "3072"];

/** systemd for root and for a user of its own, and what sandboxes need. */
const PACKAGES = [
  "systemd-sysv",
  "dbus-user-session",
  "libpam-systemd",
  "kmod",
  "mount",
  "procps",
  "util-linux",
  "e2fsprogs",
  "bubblewrap",
  "python3",
  "git",
  "libstdc++6",
  "linux-image-cloud-amd64",
];

const SERVICE = `[Unit]
After=systemd-logind.service user@1000.service
Wants=user@1000.service
[Service]
Type=oneshot
ExecStart=/bin/sh /job/run.sh
`;

/** As the last step of the tree: a user whose systemd starts with the machine, and the job in the place of a login. */
const CUSTOMIZE = `set -e
cd "$1"
echo 'ada:x:1000:1000::/home/ada:/bin/bash' >> etc/passwd
echo 'ada:x:1000:' >> etc/group
echo 'ada:*:19000:0:99999:7:::' >> etc/shadow
mkdir -p home/ada job var/lib/systemd/linger etc/systemd/system/multi-user.target.wants
chown 1000:1000 home/ada
touch var/lib/systemd/linger/ada
printf '/dev/vda / ext4 rw 0 1\\n/dev/vdb /job ext4 ro 0 2\\n' > etc/fstab
: > etc/machine-id
cat > etc/systemd/system/job.service << 'END'
${SERVICE}END
ln -s ../job.service etc/systemd/system/multi-user.target.wants/job.service
`;

export interface Machine {
  readonly folder: string;
}

/** Why there can be no machine here; nothing when there can. */
export async function whyNoMachine(): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return "the machine's tree is made by root";
  if (process.arch !== "x64") return "the machine is made for x64";
  for (const tool of ["qemu-system-x86_64", "mmdebstrap", "mke2fs"]) {
    const isThere = await run("sh", ["-c", `command -v ${tool}`]).then(
      () => true,
      () => false,
    );
    if (!isThere) return `${tool} is not installed`;
  }
  return undefined;
}

/** The machine's disk, kernel and first file system. */
export async function makeMachine(): Promise<Machine> {
  const digest = createHash("sha256")
    .update(JSON.stringify([PACKAGES, CUSTOMIZE]))
    .digest("hex")
    .slice(0, 16);
  const folder = await cachedFolder(`vm-${digest}`, async (draft) => {
    const tree = join(draft, "tree");
    mkdirSync(tree);
    const hook = join(draft, "customize.sh");
    await writeFile(hook, CUSTOMIZE);
    chmodSync(hook, 0o755);
    const include = `--include=${PACKAGES.join(",")}`;
    const words = ["--quiet", "--variant=essential", include, `--customize-hook=sh ${hook} "$1"`, "bookworm", tree];
    await run("mmdebstrap", words, { maxBuffer: 64 * MIB });
    for (const [from, to] of [
      ["vmlinuz-", "kernel"],
      ["initrd.img-", "initrd"],
    ] as const) {
      const found = readdirSync(join(tree, "boot")).find((name) => name.startsWith(from)) ?? "";
      copyFileSync(join(tree, "boot", found), join(draft, to));
    }
    await run("mke2fs", ["-q", "-t", "ext4", "-d", tree, join(draft, "root.img"), "3G"]);
    rmSync(tree, { recursive: true });
  });
  return { folder };
}

export interface Job {
  /** Bundled, and started by `run`. */
  readonly script: string;
  /** The shell script that the machine runs; it must switch the machine off. */
  readonly run: string;
  readonly node?: string;
  /** More files for /job, by name. */
  readonly more?: Readonly<Record<string, string>>;
  /** Further words for the machine's command line. */
  readonly words?: readonly string[];
}

export interface RunningMachine {
  /** What the machine wrote: its own console, results and log. */
  readonly serial: { readonly console: string; readonly results: string; readonly log: string };
  readonly exited: Promise<void>;
  /** Ends it at once, and removes what was made for it. */
  stop(): Promise<void>;
}

/** Switches a machine on with a job and the built server beside it. */
export async function startMachine({ folder }: Machine, job: Job): Promise<RunningMachine> {
  const place = mkdtempSync(join(tmpdir(), "owlclaw-vm-"));
  try {
    const image = join(place, "job.img");
    await makeJob(join(place, "job"), job);
    await run("mke2fs", ["-q", "-t", "ext4", "-d", join(place, "job"), image, JOB_SIZE]);
    rmSync(join(place, "job"), { recursive: true });
    const serial = { console: join(place, "console"), results: join(place, "results"), log: join(place, "log") };
    const words = [...machineArguments({ folder, image, serial: Object.values(serial) }), ...(job.words ?? CPU)];
    const machine = spawn("qemu-system-x86_64", words, { stdio: ["ignore", "ignore", "pipe"] });
    machine.stderr.resume();
    const exited = once(machine, "exit").then(() => undefined);
    return {
      serial,
      exited,
      stop: async () => {
        machine.kill("SIGKILL");
        await exited;
        rmSync(place, { recursive: true, force: true });
      },
    };
  } catch (error) {
    rmSync(place, { recursive: true, force: true });
    throw error;
  }
}

/** Runs a job to its end; gives the lines it printed. */
export async function runInMachine(machine: Machine, job: Job): Promise<{ lines: string[]; log: string }> {
  const running = await startMachine(machine, job);
  try {
    await running.exited;
    const { console, results, log } = running.serial;
    const lines = readFileSync(results, "utf8")
      .split(/\r?\n/)
      .filter((line) => line !== "");
    return { lines, log: `${readFileSync(log, "utf8")}\n${readFileSync(console, "utf8").slice(-2000)}` };
  } finally {
    await running.stop();
  }
}

async function makeJob(
  folder: string,
  { script, run: command, node = process.execPath, more = {} }: Job,
): Promise<void> {
  const { packages } = JSON.parse(readFileSync(join(PROJECT, "package-lock.json"), "utf8")) as {
    packages: Record<string, { dev?: boolean; link?: boolean }>;
  };
  const needed = Object.entries(packages).flatMap(([path, { dev, link }]) =>
    path.startsWith("node_modules/") && dev !== true && link !== true ? [path] : [],
  );
  for (const path of ["package.json", "dist", ...needed])
    if (existsSync(join(PROJECT, path))) await cp(join(PROJECT, path), join(folder, path), { recursive: true });
  for (const [name, path] of Object.entries(more))
    await cp(path, join(folder, name), { recursive: true, verbatimSymlinks: true });
  copyFileSync(node, join(folder, "node"));
  await writeFile(join(folder, "run.sh"), command);
  await build({
    entryPoints: [script],
    outfile: join(folder, "job.mjs"),
    bundle: true,
    platform: "node",
    format: "esm",
    banner: { js: 'import{createRequire as __make}from"node:module";const require=__make(import.meta.url);' },
  });
}

/** Without hardware virtualisation, which a machine of the tests need not have. */
function machineArguments(options: { folder: string; image: string; serial: readonly string[] }): string[] {
  const { folder, image, serial } = options;
  const words = [
    "-M q35 -accel tcg,thread=multi",
    "-nodefaults -no-user-config -display none -no-reboot -device virtio-rng-pci",
    "-device virtio-blk-pci,drive=root -device virtio-blk-pci,drive=job",
  ].flatMap((line) => line.split(" "));
  const disks = [
    `id=root,file=${join(folder, "root.img")},format=raw,if=none,snapshot=on`,
    `id=job,file=${image},format=raw,if=none,snapshot=on`,
  ];
  const kernel = "root=/dev/vda rw console=ttyS0 panic=-1 mitigations=off quiet systemd.unified_cgroup_hierarchy=1";
  return [
    ...disks.flatMap((disk) => ["-drive", disk]),
    ...words,
    ...serial.flatMap((file) => ["-serial", `file:${file}`]),
    "-kernel",
    join(folder, "kernel"),
    "-initrd",
    join(folder, "initrd"),
    "-append",
    kernel,
  ];
}
