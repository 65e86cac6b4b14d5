/**
 * Mounts a folder so that the cell's user is its owner there, in both directions (an id-mapped mount). No tool of
 * Debian 12 can do it, and Node has no system calls of its own: a few lines of Python, which every template needs anyway.
 * It runs as root before anything of the sandbox does, on paths that the operator configured.
 *
 * Arguments: source, target, owner's uid, owner's gid, the cell's uid (and gid).
 */
export const VOLUME_MAPPER = `
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
source, target = sys.argv[1], sys.argv[2]
uid, gid, cell = (int(part) for part in sys.argv[3:6])
OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442
AT_FDCWD, AT_EMPTY_PATH, AT_RECURSIVE = -100, 0x1000, 0x8000

def call(number, *arguments):
    result = libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

class Attributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]

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
    file.write(f"{uid} {cell} 1")
with open(f"/proc/{child}/gid_map", "w") as file:
    file.write(f"{gid} {cell} 1")
userns = os.open(f"/proc/{child}/ns/user", os.O_RDONLY)
tree = call(OPEN_TREE, ctypes.c_int(AT_FDCWD), source.encode(), ctypes.c_uint(1 | os.O_CLOEXEC))
wanted = Attributes(0x100000 | 0x2 | 0x4, 0, 0, userns)
call(MOUNT_SETATTR, ctypes.c_int(tree), b"", ctypes.c_uint(AT_EMPTY_PATH), ctypes.byref(wanted), ctypes.c_size_t(32))
call(MOVE_MOUNT, ctypes.c_int(tree), b"", ctypes.c_int(AT_FDCWD), target.encode(), ctypes.c_uint(0x4))
os.write(go[1], b"x")
os.waitpid(child, 0)
`;
