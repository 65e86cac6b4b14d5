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

/** All bits of a process id that the kernel reads; 0 is the caller. `PRIO_PROCESS` is 0 too. */
const ANY_PROCESS = 0xffffffff;
const KERNEL_NAMES: Readonly<Record<Architecture, string>> = { x64: "SCMP_ARCH_X86_64", arm64: "SCMP_ARCH_AARCH64" };

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

/**
 * The same restrictions as bubblewrap's filter, in the format of engines. A container has no terminal of the host, so `ioctl` is
 * not restricted.
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
    // For the calling process only: otherwise a program could keep the init process from ending the container.
    allow(["sched_setattr", "sched_setparam", "sched_setscheduler"], without(0, ANY_PROCESS)),
    allow(["setpriority"], without(0, ANY_PROCESS), without(1, ANY_PROCESS)),
    // The mode counts only when the call makes a file.
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

/**
 * System calls that a container may make with any arguments: all of Linux 6.10 on x64 and arm64, except those that the filter of
 * bubblewrap refuses. All others are refused, including calls of newer kernels.
 */
const FREE_SYSCALLS: readonly string[] = (
  "accept accept4 access alarm arch_prctl bind brk cachestat capget capset chdir chown " +
  "clock_getres clock_getres_time64 clock_gettime clock_gettime64 clock_nanosleep clock_nanosleep_time64 " +
  "close close_range connect copy_file_range dup dup2 dup3 epoll_create epoll_create1 " +
  "epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 execve execveat exit exit_group faccessat " +
  "faccessat2 fadvise64 fallocate fanotify_mark fchdir fchown fchownat fcntl fdatasync fgetxattr flistxattr " +
  "flock fork fremovexattr fsetxattr fstat fstatat fstatfs fsync ftruncate futex futex_requeue futex_time64 " +
  "futex_wait futex_waitv futex_wake futimesat get_mempolicy get_robust_list getcpu getcwd getdents " +
  "getdents64 getegid geteuid getgid getgroups getitimer getpeername getpgid getpgrp getpid getppid " +
  "getpriority getrandom getresgid getresuid getrlimit getrusage getsid getsockname getsockopt gettid " +
  "gettimeofday getuid getxattr inotify_add_watch inotify_init inotify_init1 inotify_rm_watch " +
  "ioprio_get ioprio_set kill " +
  "landlock_add_rule landlock_create_ruleset landlock_restrict_self lchown lgetxattr link linkat listen " +
  "listxattr llistxattr lremovexattr lseek lsetxattr lstat madvise map_shadow_stack membarrier memfd_create " +
  "memfd_secret mincore mkdir mkdirat mlock mlock2 mlockall mmap mprotect mq_getsetattr mq_notify mq_open " +
  "mq_timedreceive mq_timedreceive_time64 mq_timedsend mq_timedsend_time64 mq_unlink mremap mseal msgctl " +
  "msgget msgrcv msgsnd msync munlock munlockall munmap nanosleep newfstatat pause pidfd_open " +
  "pidfd_send_signal pipe pipe2 pkey_alloc pkey_free pkey_mprotect poll ppoll ppoll_time64 prctl pread64 " +
  "preadv preadv2 prlimit64 process_mrelease pselect6 pselect6_time64 pwrite64 pwritev pwritev2 read " +
  "readahead readlink readlinkat readv recvfrom recvmmsg recvmmsg_time64 recvmsg remap_file_pages " +
  "removexattr rename renameat renameat2 restart_syscall rmdir rseq rt_sigaction rt_sigpending " +
  "rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_sigtimedwait_time64 " +
  "rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr " +
  "sched_getparam sched_getscheduler sched_rr_get_interval sched_rr_get_interval_time64 sched_setaffinity " +
  "sched_yield seccomp select semctl semget semop semtimedop " +
  "semtimedop_time64 sendfile sendmmsg sendmsg sendto set_robust_list set_tid_address setfsgid setfsuid " +
  "setgid setgroups setitimer setpgid setregid setresgid setresuid setreuid setrlimit setsid " +
  "setsockopt setuid setxattr shmat shmctl shmdt shmget shutdown sigaltstack signalfd signalfd4 " +
  "splice stat statfs statx symlink symlinkat sync sync_file_range sync_file_range2 syncfs sysinfo tee " +
  "tgkill time timer_create timer_delete timer_getoverrun timer_gettime timer_gettime64 timer_settime " +
  "timer_settime64 timerfd_create timerfd_gettime timerfd_gettime64 timerfd_settime timerfd_settime64 times " +
  "tkill truncate umask uname unlink unlinkat utime utimensat utimensat_time64 utimes vfork vmsplice wait4 " +
  "waitid write writev "
)
  .trim()
  .split(" ");
