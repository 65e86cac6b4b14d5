/**
 * Runs inside an instance and tries to break each property; prints one JSON object, name to `[attack succeeded, what happened]`.
 * Python, because Node cannot make system calls. Its argument is a JSON object made by the probe.
 */
export const ATTACK_SCRIPT = `
import ctypes, errno, json, os, signal, socket, sys, time
given = json.loads(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
found = {}

def attack(name):
    def run(body):
        try:
            found[name] = [True, str(body() or "succeeded")]
        except Stopped as stopped:
            found[name] = [False, str(stopped)]
        except OSError as error:
            found[name] = [False, errno.errorcode.get(error.errno, str(error))]
        except Exception as error:
            found[name] = [True, f"the attack itself failed: {error!r}"]
    return run

class Stopped(Exception):
    pass

def every(*attempts):
    reasons = []
    for what, attempt in attempts:
        try:
            attempt()
        except OSError as error:
            reasons.append(errno.errorcode.get(error.errno, str(error)))
            continue
        return what
    raise Stopped(", ".join(sorted(set(reasons))))

def connect(family, address):
    with socket.socket(getattr(socket, family), socket.SOCK_STREAM) as client:
        client.settimeout(0.3)
        client.connect(address)

def in_child(body):
    child = os.fork()
    if child == 0:
        try:
            body()
        except BaseException:
            os._exit(3)
        os._exit(0)
    return child

def apart(call):
    # In a child: some of these calls change the process or kill it.
    def body():
        if call() < 0:
            os._exit(ctypes.get_errno())
    status = os.waitpid(in_child(body), 0)[1]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0:
        raise OSError(os.WEXITSTATUS(status), "refused")

@attack("guest")
def _():
    missing = [path for path in given["needed"] if not os.access(path, os.R_OK)]
    if missing:
        return f"cannot be read inside: {missing}"
    raise Stopped("both can be read")

@attack("server-files")
def _():
    return every(*[(path, lambda path=path: open(path).read()) for path in given["canaries"]])

@attack("host-processes")
def _():
    mine = {*given["processes"], os.path.basename(sys.executable), open("/proc/self/comm").read().strip()}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and open(f"/proc/{entry}/comm").read().strip() not in mine:
            return f"process {entry} of the host is visible"
    os.kill(given["serverPid"], 0)
    return "the server can be signalled"

@attack("host-network")
def _():
    return every(*[
        (f"{family} reached", lambda family=family, address=address, port=port: connect(family, (address, port)))
        for family, address, port in given["listeners"]
    ])

@attack("host-sockets")
def _():
    name = "\\0" + given["abstractSocket"]
    # Some versions of Node fill the name up with zeros.
    return every(*[("reached", lambda name=name: connect("AF_UNIX", name)) for name in (name, name.ljust(108, "\\0"))])

@attack("read-only-system")
def _():
    return every(*[
        (f"{folder} can be written", lambda folder=folder: open(f"{folder}/.owlclaw-probe", "w").close())
        for folder in ("/usr", "/etc", "", "/opt/owlclaw", "/dev")
    ])

@attack("privileges")
def _():
    status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
    held = {name: status[name].strip() for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}
    if any(int(value, 16) for value in held.values()):
        return f"capabilities are left: {held}"
    if status["NoNewPrivs"].strip() != "1" or status["Seccomp"].strip() != "2":
        return "new privileges or unfiltered system calls are possible"
    os.setuid(0)

@attack("nested-namespaces")
def _():
    return every(*[
        (f"unshare({flag:#x})", lambda flag=flag: apart(lambda: libc.unshare(ctypes.c_int(flag))))
        for flag in (0x10000000, 0x20000, 0x40000000)
    ])

@attack("mounts")
def _():
    def mount(kind, target, flags):
        libc.unshare(ctypes.c_int(0x10020000))
        return libc.mount(b"none", target, kind, ctypes.c_ulong(flags), None)
    return every(
        ("tmpfs", lambda: apart(lambda: mount(b"tmpfs", b"/tmp", 0))),
        ("remount", lambda: apart(lambda: mount(None, b"/usr", 0x1020))),
        ("umount", lambda: apart(lambda: libc.umount2(b"/proc", ctypes.c_int(2)))),
    )

@attack("system-calls")
def _():
    buffer = ctypes.create_string_buffer(256)
    def attempt(number):
        try:
            apart(lambda: libc.syscall(ctypes.c_long(number), ctypes.c_long(0), ctypes.c_long(0), buffer))
        except OSError as error:
            # Another complaint comes from the call itself: then it was not refused.
            if error.errno in (errno.EPERM, errno.ENOSYS):
                raise
    return every(*[(name, lambda number=number: attempt(number)) for name, number in given["syscalls"].items()])

@attack("server-environment")
def _():
    first = {line.split("=")[0] for line in open("/proc/1/environ").read().split("\\0") if line}
    if first - set(given["initVariables"]):
        return f"the first process has {len(first)} variables, more than it should"
    more = set(os.environ) - set(given["variables"])
    if more:
        return f"unexpected variables: {sorted(more)}"
    raise Stopped("empty")

@attack("inherited-descriptors")
def _():
    numbers = [int(entry) for entry in os.listdir("/proc/self/fd") if int(entry) > 2]
    left = [number for number in numbers if os.path.exists(f"/proc/self/fd/{number}")]
    if left:
        return f"descriptors are left: {left}"
    raise Stopped("none left")

@attack("memory-limit")
def _():
    share = int(given["memoryBytes"] * 0.7)
    told, wait = os.pipe(), os.pipe()
    def hold():
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        held = bytearray(share)
        for offset in range(0, share, 4096):
            held[offset] = 1
        os.write(told[1], b"h")
        os.read(wait[0], 1)
    children = [in_child(hold), in_child(hold)]
    os.set_blocking(told[0], False)
    holding, ended = 0, []
    while holding < 2 and not ended:
        try:
            holding += len(os.read(told[0], 2))
        except BlockingIOError:
            time.sleep(0.002)
        ended = [status for pid, status in (os.waitpid(child, os.WNOHANG) for child in children) if pid]
    # Not by SIGKILL: one that the kernel is ending, and that is not gone yet, must be told from one that held.
    for child in children:
        try:
            os.kill(child, signal.SIGTERM)
            ended.append(os.waitpid(child, 0)[1])
        except (ChildProcessError, ProcessLookupError):
            pass
    if any(os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL for status in ended):
        raise Stopped("ended by the kernel")
    return f"processes held more than the limit together, or failed on their own: {holding}, {ended}"

@attack("process-limit")
def _():
    children = []
    try:
        while len(children) <= given["maxPids"]:
            children.append(in_child(signal.pause))
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)

def fill(folder, limit):
    written, files = 0, []
    try:
        while written <= limit:
            path = f"{folder}/.owlclaw-probe-{len(files)}"
            files.append(path)
            with open(path, "wb", buffering=0) as file:
                written += file.write(b"x" * (1 << 20))
        os.sync()
    finally:
        for path in files:
            os.unlink(path)
    return f"{written} bytes were written"

for name, folder in given["disks"].items():
    attack(name)(lambda: fill(folder, given["diskBytes"]))

print(json.dumps(found), flush=True)
`;
