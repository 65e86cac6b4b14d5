import {
  allow,
  and,
  ARCHITECTURE_OFFSET,
  argumentOffset,
  fail,
  type Instruction,
  load,
  NUMBER_OFFSET,
  unless,
  when,
} from "./bpf-program.ts";
import {
  type Architecture,
  AUDIT_ARCHITECTURE,
  NEWEST_KNOWN_SYSCALL,
  syscallNumber,
  type SyscallName,
} from "./syscall-numbers.ts";

const EPERM = 1;
export const ENOSYS = 38;
const EAFNOSUPPORT = 97;

/** Always refused: no program in a sandbox needs them, and past escapes used them. */
export const REFUSED: readonly SyscallName[] = [
  // Other processes' memory and descriptors.
  ...(["ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd"] as const),
  // Kernel subsystems with a history of vulnerabilities and without a namespace.
  ...(["keyctl", "add_key", "request_key", "bpf", "perf_event_open", "userfaultfd"] as const),
  ...(["io_uring_setup", "io_uring_enter", "io_uring_register", "fanotify_init"] as const),
  // Mounts and namespaces.
  ...(["mount", "umount2", "pivot_root", "chroot", "mount_setattr", "move_mount", "open_tree"] as const),
  ...(["fsopen", "fsconfig", "fsmount", "fspick", "setns"] as const),
  ...(["open_by_handle_at", "name_to_handle_at"] as const),
  // The machine itself.
  ...(["kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module"] as const),
  ...(["create_module", "query_module", "get_kernel_syms", "reboot", "swapon", "swapoff"] as const),
  ...(["quotactl", "quotactl_fd", "acct", "syslog", "iopl", "ioperm", "modify_ldt", "vhangup"] as const),
  ...(["clock_settime", "settimeofday", "clock_adjtime", "adjtimex", "sethostname", "setdomainname"] as const),
  ...(["migrate_pages", "move_pages", "mbind", "set_mempolicy", "set_mempolicy_home_node"] as const),
  // Obsolete calls.
  ...(["lookup_dcookie", "nfsservctl", "_sysctl", "uselib", "ustat", "sysfs"] as const),
];

/** Their arguments are in memory, which a filter cannot read. ENOSYS makes libraries fall back to the older call. */
export const UNREADABLE: readonly SyscallName[] = ["clone3", "openat2"];

/**
 * Asynchronous I/O: one sandbox could take all contexts of the machine (`fs.aio-max-nr`), which no namespace or control
 * group divides. ENOSYS makes libraries fall back to other calls.
 */
export const ABSENT: readonly SyscallName[] = [
  ...(["io_setup", "io_submit", "io_cancel", "io_destroy", "io_getevents", "io_pgetevents"] as const),
];

export const CLONE_NEW_NAMESPACES = 0x7e020000;
export const CLONE_NEWTIME = 0x80;

const TIOCSTI = 0x5412;
const TIOCLINUX = 0x541c;

export const AF_UNIX = 1;
export const AF_INET = 2;
export const AF_INET6 = 10;
export const AF_NETLINK = 16;
export const NETLINK_ROUTE = 0;

export const SET_ID_BITS = 0o6000;
export const O_CREAT = 0x40;
export const O_TMPFILE = 0x400000;

export const PERSONALITY_QUERY = 0xffffffff;

/** Calls that depend on an argument: each block ends the program. */
const CONDITIONAL: ReadonlyArray<readonly [SyscallName, readonly Instruction[]]> = [
  ["clone", refuseBits(0, CLONE_NEW_NAMESPACES)],
  ["unshare", refuseBits(0, CLONE_NEW_NAMESPACES | CLONE_NEWTIME)],
  [
    "ioctl",
    [
      load(argumentOffset(1)),
      ...when("equals", TIOCSTI, [fail(EPERM)]),
      ...when("equals", TIOCLINUX, [fail(EPERM)]),
      allow(),
    ],
  ],
  ["socket", socketFamilies()],
  ["socketpair", socketFamilies()],
  [
    "personality",
    [
      load(argumentOffset(0)),
      ...when("equals", 0, [allow()]),
      ...when("equals", PERSONALITY_QUERY, [allow()]),
      fail(EPERM),
    ],
  ],
  // A set-id file on a shared volume would give its owner's rights to other users of the host.
  ["chmod", refuseBits(1, SET_ID_BITS)],
  ["fchmod", refuseBits(1, SET_ID_BITS)],
  ["fchmodat", refuseBits(2, SET_ID_BITS)],
  ["fchmodat2", refuseBits(2, SET_ID_BITS)],
  ["creat", refuseBits(1, SET_ID_BITS)],
  ["mknod", refuseBits(1, SET_ID_BITS)],
  ["mknodat", refuseBits(2, SET_ID_BITS)],
  ["open", refuseSetIdOnCreate(1)],
  ["openat", refuseSetIdOnCreate(2)],
];

/** The program for `bwrap --seccomp`: it allows calls that it does not name, except calls newer than the filter. */
export function seccompFilter(architecture: Architecture): Instruction[] {
  const numbers = (names: readonly SyscallName[]): number[] =>
    names.map((name) => syscallNumber(name, architecture)).filter((number) => number !== null);
  return [
    load(ARCHITECTURE_OFFSET),
    ...unless("equals", AUDIT_ARCHITECTURE[architecture], [fail(ENOSYS)]),
    load(NUMBER_OFFSET),
    // Calls of the x32 ABI have the architecture of x64 and a high bit in their number: they are refused here too.
    ...when("greater", NEWEST_KNOWN_SYSCALL, [fail(ENOSYS)]),
    ...numbers([...UNREADABLE, ...ABSENT]).flatMap((number) => when("equals", number, [fail(ENOSYS)])),
    ...numbers(REFUSED).flatMap((number) => when("equals", number, [fail(EPERM)])),
    ...CONDITIONAL.flatMap(([name, block]) => {
      const number = syscallNumber(name, architecture);
      return number === null ? [] : when("equals", number, block);
    }),
    allow(),
  ];
}

function refuseBits(argument: number, bits: number): Instruction[] {
  return [load(argumentOffset(argument)), ...when("anyBit", bits, [fail(EPERM)]), allow()];
}

/** The mode counts only when the call makes a file; otherwise it is an undefined register value. */
function refuseSetIdOnCreate(flagsArgument: number): Instruction[] {
  return [
    load(argumentOffset(flagsArgument)),
    and(O_CREAT | O_TMPFILE),
    ...when("equals", 0, [allow()]),
    ...refuseBits(flagsArgument + 1, SET_ID_BITS),
  ];
}

/** Of netlink only the routing family, which `getifaddrs` needs: other families had vulnerabilities. */
function socketFamilies(): Instruction[] {
  return [
    load(argumentOffset(0)),
    ...[AF_UNIX, AF_INET, AF_INET6].flatMap((family) => when("equals", family, [allow()])),
    ...unless("equals", AF_NETLINK, [fail(EAFNOSUPPORT)]),
    load(argumentOffset(2)),
    ...when("equals", NETLINK_ROUTE, [allow()]),
    fail(EAFNOSUPPORT),
  ];
}
