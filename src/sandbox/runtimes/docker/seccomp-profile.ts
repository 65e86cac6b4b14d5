import {
  ABSENT,
  AF_INET,
  AF_INET6,
  AF_NETLINK,
  AF_UNIX,
  CLONE_NEW_NAMESPACES,
  CLONE_NEWTIME,
  ENOSYS,
  NETLINK_ROUTE,
  O_CREAT,
  O_TMPFILE,
  PERSONALITY_QUERY,
  SET_ID_BITS,
  UNREADABLE,
} from "../seccomp/filter.ts";
import type { Architecture } from "../seccomp/syscall-numbers.ts";
import { FREE_SYSCALLS } from "./free-syscalls.ts";

interface Condition {
  readonly index: number;
  readonly value: number;
  readonly valueTwo?: number;
  readonly op: "SCMP_CMP_EQ" | "SCMP_CMP_MASKED_EQ";
}

interface Rule {
  readonly names: readonly string[];
  readonly action: "SCMP_ACT_ALLOW" | "SCMP_ACT_ERRNO";
  readonly errnoRet?: number;
  readonly args?: readonly Condition[];
}

/** All bits of a process id that the kernel looks at; 0 is the caller. `PRIO_PROCESS` is 0 too. */
const ANY_PROCESS = 0xffffffff;

const KERNEL_NAMES: Readonly<Record<Architecture, string>> = { x64: "SCMP_ARCH_X86_64", arm64: "SCMP_ARCH_AARCH64" };

/**
 * The same border as bubblewrap's filter, in the form that engines take. There is no terminal of the host in a container,
 * so that `ioctl` needs no look.
 */
export function seccompProfile(architecture: Architecture): string {
  const rules: readonly Rule[] = [
    allow([...FREE_SYSCALLS, "ioctl"]),
    // ENOSYS makes libraries fall back to the older call.
    { names: UNREADABLE, action: "SCMP_ACT_ERRNO", errnoRet: ENOSYS },
    { names: ABSENT, action: "SCMP_ACT_ERRNO", errnoRet: ENOSYS },
    allow(["clone"], without(0, CLONE_NEW_NAMESPACES)),
    allow(["unshare"], without(0, CLONE_NEW_NAMESPACES | CLONE_NEWTIME)),
    ...[AF_UNIX, AF_INET, AF_INET6].map((family) => allow(["socket", "socketpair"], is(0, family))),
    allow(["socket", "socketpair"], is(0, AF_NETLINK), is(2, NETLINK_ROUTE)),
    ...[0, PERSONALITY_QUERY].map((persona) => allow(["personality"], is(0, persona))),
    allow(["chmod", "fchmod", "creat", "mknod"], without(1, SET_ID_BITS)),
    allow(["fchmodat", "fchmodat2", "mknodat"], without(2, SET_ID_BITS)),
    // Of oneself alone: the first process could otherwise get no time to end the container.
    allow(["sched_setattr", "sched_setparam", "sched_setscheduler"], without(0, ANY_PROCESS)),
    allow(["setpriority"], without(0, ANY_PROCESS), without(1, ANY_PROCESS)),
    // The mode means something only when the call makes a file.
    allow(["open"], without(1, O_CREAT | O_TMPFILE)),
    allow(["open"], without(2, SET_ID_BITS)),
    allow(["openat"], without(2, O_CREAT | O_TMPFILE)),
    allow(["openat"], without(3, SET_ID_BITS)),
  ];
  return JSON.stringify({
    defaultAction: "SCMP_ACT_ERRNO",
    architectures: [KERNEL_NAMES[architecture]],
    syscalls: rules,
  });
}

function allow(names: readonly string[], ...args: readonly Condition[]): Rule {
  return { names, action: "SCMP_ACT_ALLOW", ...(args.length > 0 && { args }) };
}

function is(index: number, value: number): Condition {
  return { index, value, op: "SCMP_CMP_EQ" };
}

/** None of the bits is set. */
function without(index: number, bits: number): Condition {
  return { index, value: bits, valueTwo: 0, op: "SCMP_CMP_MASKED_EQ" };
}
