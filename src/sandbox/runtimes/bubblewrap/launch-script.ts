const LIMIT_DESCRIPTORS = "ulimit -n 4096 2> /dev/null || true";

/**
 * The scripts that run between the server and bwrap. They are constants: what differs is an argument, and no argument contains
 * a string of a caller. bash and not sh, because only bash closes descriptors above 9 and starts a program with an empty
 * environment.
 *
 * Arguments of both: files to join cgroups by, `--`, …, and at the end the program to execute.
 */
const PREAMBLE = `
set -eu
umask 022
while [ "$1" != -- ]; do echo $$ > "$1"; shift; done
shift
ulimit -c 0
${LIMIT_DESCRIPTORS}
`;

/** An inherited descriptor of the server could be used to escape: all but the ones listed here are closed. */
const CLOSE_DESCRIPTORS = `
for entry in /proc/self/fd/*; do
  number=\${entry##*/}
  if [ "$number" -gt 5 ]; then eval "exec $number>&-" || true; fi
done
`;

/**
 * For root: it runs in its own mount namespace, so that nothing stays mounted after the last process, however that exits. All
 * sources are mounted on one small tmpfs that the unprivileged user can reach, also when the data folder is private. One
 * `mount` reads a table of all mounts: each program that is started costs a millisecond.
 *
 * Arguments: the table's file, the workspace, the uid, an interpreter and its program for mapped mounts; source and target of
 * each file; `--`; the program's arguments for each mapped mount; `--`, and the program to execute.
 */
const STAGE = `
table=$1 workspace=$2 uid=$3 python=$4 mapper=$5
shift 5
mount -a -T "$table"
install -d -o "$uid" -g "$uid" "$workspace"
while [ "$1" != -- ]; do
  : > "$2"
  mount --bind "$1" "$2"
  shift 2
done
shift
mapped=()
while [ "$1" != -- ]; do mapped+=("$1"); shift; done
shift
if [ "\${#mapped[@]}" -gt 0 ]; then "$python" -I -S -c "$mapper" "$uid" "\${mapped[@]}"; fi
`;

export const USER_SCRIPT = `${PREAMBLE}${CLOSE_DESCRIPTORS}exec -c "$@"`;

export const ROOT_SCRIPT = `${PREAMBLE}${STAGE}${CLOSE_DESCRIPTORS}exec -c setpriv --reuid "$uid" --regid "$uid" --clear-groups --pdeathsig KILL -- "$@"`;

/** Where the sources are mounted: every machine has this folder, and no part of it is mounted inside. */
export const STAGE_FOLDER = "/sys/kernel";

/** The next three are for tests that show what each control prevents. */
export function withInheritedDescriptors(script: string): string {
  return script.replace(CLOSE_DESCRIPTORS, "");
}

export function withInheritedEnvironment(script: string): string {
  return script.replace("exec -c ", "exec ");
}

export function withoutDescriptorLimit(script: string): string {
  return script.replace(LIMIT_DESCRIPTORS, "");
}

/**
 * Makes id-mapped mounts: inside, the instance's user owns the files of the volume's owner. No tool of Debian 12 can do it, and
 * Node cannot make system calls, so it is Python, which every template needs. The mount is private: later mounts below the
 * folder do not appear inside. It runs as root before anything of the sandbox, on paths that the operator configured.
 *
 * Arguments: the instance's uid (and gid); then for each mount its kind, source, target, owner's uid and gid, and the device and
 * inode that the source must have (both empty: any).
 */
export const VOLUME_MAPPER = `
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
instance, rest = int(sys.argv[1]), sys.argv[2:]
OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442
AT_FDCWD, AT_EMPTY_PATH = -100, 0x1000

def call(number, *arguments):
    result = libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

class Attributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]

def user_namespace(uid, gid):
    ready, go = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        if libc.unshare(0x10000000) != 0:
            os._exit(1)
        os.write(ready[1], b"x")
        os.read(go[0], 1)
        os._exit(0)
    os.read(ready[0], 1)
    with open(f"/proc/{child}/uid_map", "w") as file:
        file.write(f"{uid} {instance} 1")
    with open(f"/proc/{child}/gid_map", "w") as file:
        file.write(f"{gid} {instance} 1")
    found = os.open(f"/proc/{child}/ns/user", os.O_RDONLY)
    os.write(go[1], b"x")
    os.waitpid(child, 0)
    return found

def opened(path):
    fd = os.open("/", os.O_PATH)
    for name in path.strip("/").split("/"):
        following = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=fd)
        os.close(fd)
        fd = following
    return fd

namespaces = {}
while rest:
    (kind, source, target, uid, gid, device, inode), rest = rest[:7], rest[7:]
    owner = (int(uid), int(gid))
    if owner not in namespaces:
        namespaces[owner] = user_namespace(*owner)
    if kind == "folder":
        os.mkdir(target)
    else:
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    fd = opened(source)
    stats = os.fstat(fd)
    if device != "" and (str(stats.st_dev), str(stats.st_ino)) != (device, inode):
        raise SystemExit(f"{source} is not the file or folder that the server opened")
    tree = call(OPEN_TREE, ctypes.c_int(fd), b"", ctypes.c_uint(1 | AT_EMPTY_PATH | os.O_CLOEXEC))
    wanted = Attributes(0x100000 | 0x2 | 0x4, 0, 0x40000, namespaces[owner])
    call(MOUNT_SETATTR, ctypes.c_int(tree), b"", ctypes.c_uint(AT_EMPTY_PATH), ctypes.byref(wanted), ctypes.c_size_t(32))
    call(MOVE_MOUNT, ctypes.c_int(tree), b"", ctypes.c_int(AT_FDCWD), target.encode(), ctypes.c_uint(0x4))
`;
