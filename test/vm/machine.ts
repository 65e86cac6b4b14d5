import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { chmodSync, copyFileSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { cachedFolder } from "./cached-folder.ts";

const run = promisify(execFile);
const MIB = 1024 * 1024;
const JOB_SIZE = "1500M";

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

/**
 * A kernel that reads through a null pointer (`ext4_mb_load_buddy_gfp`) as soon as a group of processes that runs out of
 * memory takes back what a file system in a file knew of its free blocks. Newer and older ones are as good as ever.
 */
const PREFERENCES = `Package: linux-image-*
Pin: version 6.1.192-1
Pin-Priority: -1
`;

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

/** Room for what the disks of some tens of sandboxes could grow to: the server promises no more. It is sparse, and stays so. */
const DISK_SIZE = "100G";
const DISK_WORDS = ["-N", "400000", "-J", "size=64", "-E", "lazy_itable_init=1"];

/** The machine's disk, kernel and first file system. */
export async function makeMachine(): Promise<Machine> {
  const digest = createHash("sha256")
    .update(JSON.stringify([PACKAGES, PREFERENCES, CUSTOMIZE, DISK_WORDS, DISK_SIZE]))
    .digest("hex")
    .slice(0, 16);
  const folder = await cachedFolder(`vm-${digest}`, async (draft) => {
    const tree = join(draft, "tree");
    mkdirSync(tree);
    const hook = join(draft, "customize.sh");
    await writeFile(hook, CUSTOMIZE);
    chmodSync(hook, 0o755);
    const preferences = join(draft, "preferences");
    await writeFile(preferences, PREFERENCES);
    const hooks = [
      `--setup-hook=install -D -m 644 ${preferences} "$1/etc/apt/preferences.d/kernel"`,
      `--customize-hook=sh ${hook} "$1"`,
    ];
    const include = `--include=${PACKAGES.join(",")}`;
    const words = ["--quiet", "--variant=essential", include, ...hooks, "bookworm", tree];
    await run("mmdebstrap", words, { maxBuffer: 64 * MIB });
    for (const [from, to] of [
      ["vmlinuz-", "kernel"],
      ["initrd.img-", "initrd"],
    ] as const) {
      const found = readdirSync(join(tree, "boot")).find((name) => name.startsWith(from)) ?? "";
      copyFileSync(join(tree, "boot", found), join(draft, to));
    }
    await run("mke2fs", ["-q", "-t", "ext4", ...DISK_WORDS, "-d", tree, join(draft, "root.img"), DISK_SIZE]);
    rmSync(tree, { recursive: true });
  });
  return { folder };
}

export interface RunningMachine {
  /** What the machine wrote: its own console, results and log. */
  readonly serial: { readonly console: string; readonly results: string; readonly log: string };
  readonly exited: Promise<void>;
  /** Ends it at once, and removes what was made for it. */
  stop(): Promise<void>;
}

export interface MachineWish {
  /** A folder of its own with a folder `job` in it; it goes away with the machine. */
  readonly place: string;
  /** Further words for the machine's command line: processor, memory, network. */
  readonly words: readonly string[];
}

/** Switches a machine on with a job, which it runs, as a disk. */
export async function startMachine({ folder }: Machine, { place, words }: MachineWish): Promise<RunningMachine> {
  const image = join(place, "job.img");
  await run("mke2fs", ["-q", "-t", "ext4", "-d", join(place, "job"), image, JOB_SIZE]);
  rmSync(join(place, "job"), { recursive: true });
  const serial = { console: join(place, "console"), results: join(place, "results"), log: join(place, "log") };
  const all = [...machineArguments({ folder, image, serial: Object.values(serial) }), ...words];
  const machine = spawn("qemu-system-x86_64", all, { stdio: ["ignore", "ignore", "pipe"] });
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
  // A busy host is late with the timer's first interrupts, which a kernel that counts them takes for a broken board.
  const timer = "no_timer_check";
  const kernel = `root=/dev/vda rw console=ttyS0 panic=-1 mitigations=off ${timer} quiet systemd.unified_cgroup_hierarchy=1`;
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
