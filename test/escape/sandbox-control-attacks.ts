import type { Control } from "../../src/sandbox/runtimes/bubblewrap/bubblewrap-host.ts";

/** One line of Python. An error of the system means that it was refused. */
export interface ControlAttack {
  /** Without exactly these it succeeds. `own-uid` means nothing for an ordinary user, who has no second one. */
  readonly off: readonly Control[];
  readonly code: string;
}

const SECCOMP: readonly Control[] = ["seccomp"];
const NAMESPACES: readonly Control[] = ["seccomp", "nested-namespaces"];
const PROCESSES: readonly Control[] = ["processes"];
/** Root's sandboxes also have another user id than the server and each other. */
const SIGNALS: readonly Control[] = ["processes", "own-uid"];
const FILES: readonly Control[] = ["system-tree", "own-uid"];
const ENVIRONMENT: readonly Control[] = ["environment"];
const TREE: readonly Control[] = ["system-tree"];
const NETWORK: readonly Control[] = ["network"];

type AttacksOfClass = Readonly<Record<string, ControlAttack>>;

/** By class. `given` holds what the host and a second sandbox offer, and `attempt` is what each line may use. */
export const CONTROL_ATTACKS: Readonly<Record<string, AttacksOfClass>> = {
  "/proc": {
    "symbols of the kernel": { off: PROCESSES, code: "need(open('/proc/kallsyms').read(10))" },
    "the command line of a process of the host": {
      off: PROCESSES,
      code: "need(open(f'/proc/{given[\"hostPid\"]}/cmdline').read())",
    },
    "the state of the server": { off: PROCESSES, code: "need(open(f'/proc/{given[\"serverPid\"]}/status').read())" },
    "threads of the server": { off: PROCESSES, code: "need(os.listdir(f'/proc/{given[\"serverPid\"]}/task'))" },
  },
  "other sandboxes": {
    "its file": { off: [...FILES, "disk-image"], code: "read(given['victimFile'])" },
    "its process": { off: SIGNALS, code: "os.kill(given['victimPid'], 0)" },
    "its port": { off: NETWORK, code: "socket.create_connection(('127.0.0.1', given['victimPort']), 5).close()" },
    "its abstract socket": { off: NETWORK, code: "connect('\\0' + given['victimName'], socket.SOCK_STREAM)" },
  },
  "server files": {
    "a file in the data folder": { off: FILES, code: "read(given['canaryFile'])" },
    "the list of the data folder": {
      off: FILES,
      code: "either(lambda at: need(os.listdir(at)), given['dataFolder'])",
    },
    "the record of the server": { off: FILES, code: "read(given['recordFile'])" },
    "a new file beside them": {
      off: FILES,
      code: "either(lambda at: open(at + '/new', 'w').close(), given['dataFolder'])",
    },
  },
  "server environment": {
    "in one's own environment": { off: ENVIRONMENT, code: "need(given['secret'] in str(os.environ))" },
    "in that of the first process": {
      off: ENVIRONMENT,
      code: "need(given['secret'] in open('/proc/1/environ').read())",
    },
    "in that of the guest": {
      off: ENVIRONMENT,
      code: "need(given['secret'] in open(f'/proc/{os.getppid()}/environ').read())",
    },
    "in that of a new program": {
      off: ENVIRONMENT,
      code: "need(given['secret'] in subprocess.check_output(['env'], text=True))",
    },
  },
  "host processes and signals": {
    "a signal": { off: SIGNALS, code: "os.kill(given['hostPid'], signal.SIGSTOP)" },
    "a signal through a descriptor": {
      off: SIGNALS,
      code: "signal.pidfd_send_signal(os.pidfd_open(given['hostPid']), signal.SIGCONT)",
    },
    "smaller limits": { off: SIGNALS, code: "resource.prlimit(given['hostPid'], resource.RLIMIT_NOFILE, (9, 9))" },
    "its end": { off: SIGNALS, code: "os.kill(given['hostPid'], signal.SIGKILL)" },
  },
  "nested namespaces": {
    unshare: { off: NAMESPACES, code: "call(libc.unshare(NEWUSER))" },
    clone: {
      off: NAMESPACES,
      code: "r = system('clone', NEWUSER | 17, 0, 0, 0, 0); r == 0 and os._exit(0); call(r)",
    },
    clone3: {
      off: NAMESPACES,
      code: "r = system('clone3', struct.pack('8Q', NEWUSER, 0, 0, 0, 17, 0, 0, 0), 64); r == 0 and os._exit(0); call(r)",
    },
    "a network within": { off: NAMESPACES, code: "call(libc.unshare(NEWUSER | 0x40000000))" },
    "a program for it": {
      off: NAMESPACES,
      code: "need(subprocess.run(['unshare', '-Ur', 'true'], stderr=subprocess.DEVNULL).returncode == 0)",
    },
  },
  mounts: {
    "a new file system": {
      off: NAMESPACES,
      code: "libc.unshare(NEWUSER | NEWNS); call(libc.mount(b'x', b'/tmp', b'tmpfs', 0, None))",
    },
    "a folder over another": {
      off: NAMESPACES,
      code: "libc.unshare(NEWUSER | NEWNS); call(libc.mount(b'/workspace', b'/usr/lib', None, 4096, None))",
    },
    "by the newer calls": {
      off: NAMESPACES,
      code: "libc.unshare(NEWUSER | NEWNS); call(system('fsopen', b'tmpfs', 0))",
    },
    "a copy of a tree": {
      off: NAMESPACES,
      code: "libc.unshare(NEWUSER | NEWNS); call(system('open_tree', -100, b'/usr', 1))",
    },
    "another root": { off: NAMESPACES, code: "libc.unshare(NEWUSER); os.chroot('/workspace')" },
  },
  ptrace: {
    attaching: { off: SECCOMP, code: "call(libc.ptrace(16, child(), 0, 0))" },
    seizing: { off: SECCOMP, code: "call(libc.ptrace(0x4206, child(), 0, 0))" },
    "reading memory": { off: SECCOMP, code: "call(system('process_vm_readv', child(), vec, 1, vec, 1, 0))" },
    "writing memory": { off: SECCOMP, code: "call(system('process_vm_writev', child(), vec, 1, vec, 1, 0))" },
    "taking a descriptor": {
      off: SECCOMP,
      code: "call(system('pidfd_getfd', os.pidfd_open(child()), 0, 0))",
    },
  },
  io_uring: {
    "a ring": { off: SECCOMP, code: "ring(0)" },
    "a ring with a thread of the kernel": { off: SECCOMP, code: "ring(2)" },
    "entering a ring": { off: SECCOMP, code: "call(system('io_uring_enter', ring(0), 0, 0, 0, None, 0))" },
    "what a ring can do": {
      off: SECCOMP,
      code: "call(system('io_uring_register', ring(0), 8, ctypes.create_string_buffer(4096), 256))",
    },
  },
  "unix sockets": {
    "a stream by path": {
      off: TREE,
      code: "either(lambda at: connect(at, socket.SOCK_STREAM), given['socketFolder'] + '/stream')",
    },
    "datagrams by path": {
      off: TREE,
      code: "either(lambda at: connect(at, socket.SOCK_DGRAM), given['socketFolder'] + '/datagram')",
    },
    "a stream by name": { off: NETWORK, code: "connect('\\0' + given['socketName'], socket.SOCK_STREAM)" },
    "datagrams by name": { off: NETWORK, code: "connect('\\0' + given['socketName'] + 'd', socket.SOCK_DGRAM)" },
  },
};
