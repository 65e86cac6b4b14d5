/**
 * The launcher's connections to the host. Separate, so that a test can run it outside a machine; it needs the modules of
 * `LAUNCH_SCRIPT`, `given`, and `system`, which calls the C library.
 */
export const CONNECTION_SCRIPT = `def connected(port):
    deadline = time.monotonic() + given["connectSeconds"]
    while True:
        sock = socket.socket(socket.AF_VSOCK)
        # SO_VM_SOCKETS_CONNECT_TIMEOUT: the default of two seconds is too short for a busy host. Python cannot set structs.
        system("setsockopt", sock.fileno(), 40, 6, struct.pack("ll", given["connectSeconds"], 0), 16)
        try:
            sock.connect((2, port))
            return sock
        except OSError as error:
            sock.close()
            complain(error)
            if time.monotonic() > deadline:
                raise
        time.sleep(0.1)

def complain(error):
    print("launcher:", repr(error), file=sys.stderr, flush=True)

class Connection:
    # To the host, with the flow control of src/sandbox/runtimes/microsandbox/host-socket.ts
    def __init__(self, port):
        self.socket = connected(port)
        self.window, self.changed, self.is_over = given["windowBytes"], threading.Condition(), False

    def send(self, data):
        for start in range(0, len(data), given["pieceBytes"]):
            piece = data[start : start + given["pieceBytes"]]
            with self.changed:
                while self.window < len(piece) and not self.is_over:
                    self.changed.wait()
                self.window -= len(piece)
            if self.is_over:
                raise BrokenPipeError
            self.socket.sendall(piece)

    def exactly(self, count):
        parts = []
        while count > 0:
            part = self.socket.recv(min(count, 65536))
            if not part:
                raise EOFError
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def receive(self, write, finish):
        try:
            while True:
                length = int.from_bytes(self.exactly(4), "big")
                if length:
                    write(self.exactly(length))
                    continue
                with self.changed:
                    self.window += given["creditBytes"]
                    self.changed.notify_all()
        except (EOFError, OSError):
            pass
        # The host sends no more credits and may still receive: send without them.
        with self.changed:
            self.is_over = True
            self.changed.notify_all()
        quietly(finish)

def quietly(act):
    try:
        act()
    except OSError:
        pass

def in_thread(target, *args):
    thread = threading.Thread(target=target, args=args, daemon=True)
    thread.start()
    return thread

def send_all(read, connection):
    try:
        while piece := read():
            connection.send(piece)
    except OSError:
        pass
    quietly(lambda: connection.socket.shutdown(socket.SHUT_WR))
`;

/**
 * Runs as root inside a microVM and starts one program as an unprivileged user, confined as in the other runtimes. The hypervisor
 * isolates the machine; this script limits what a program can do to the machine's kernel. Python, because a shell cannot make
 * system calls. Its argument is a JSON object made by `launchArguments`.
 */
export const LAUNCH_SCRIPT: string = `
import base64, ctypes, fcntl, json, os, resource, signal, socket, struct, sys, threading, time
given = json.loads(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
READONLY, NOSUID, NODEV, NOEXEC, REMOUNT, BIND, MOVE, PRIVATE = 1, 2, 4, 8, 32, 4096, 8192, 0x44000
NEWNS, NEWIPC, NEWPID, NEWNET = 0x20000, 0x8000000, 0x20000000, 0x40000000
uid = given["uid"]

def system(name, *args):
    if getattr(libc, name)(*args) == -1:
        raise OSError(ctypes.get_errno(), name + " " + repr(args))

def mount(source, target, kind, flags, options=""):
    texts = [None if text is None else text.encode() for text in (source, target, kind)]
    system("mount", *texts, ctypes.c_ulong(flags), options.encode())

def tmpfs(target, options):
    os.makedirs(target, exist_ok=True)
    mount("tmpfs", target, "tmpfs", NOSUID | NODEV, options)

def make_devices():
    new = "/run/owlclaw/dev"
    os.makedirs(new)
    mount("tmpfs", new, "tmpfs", NOSUID, "mode=755,size=64k")
    for name in ("null", "zero", "full", "random", "urandom", "tty"):
        open(f"{new}/{name}", "w").close()
        mount(f"/dev/{name}", f"{new}/{name}", None, BIND)
    for name, target in (("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(f"/proc/self/{target}", f"{new}/{name}")
    os.mkdir(f"{new}/pts")
    mount("devpts", f"{new}/pts", "devpts", NOSUID | NOEXEC, "newinstance,ptmxmode=0666,mode=620")
    os.symlink("pts/ptmx", f"{new}/ptmx")
    tmpfs(f"{new}/shm", f"mode=1777,size={given['shmBytes']}")
    mount(new, "/dev", None, MOVE)

def raise_loopback():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, 0x8914, struct.pack("16sh14x", b"lo", 0x49))

def kills_for_memory():
    with open("/proc/vmstat") as file:
        return next((line for line in file if line.startswith("oom_kill ")), "")

${CONNECTION_SCRIPT}
def beside(body):
    # A process outside the namespaces of the sandbox: programs cannot see or kill it.
    pid = os.fork()
    if pid != 0:
        return pid
    system("prctl", 1, signal.SIGKILL, 0, 0, 0)
    try:
        body()
    except Exception as error:
        complain(error)
    finally:
        os._exit(0)

def carry_egress():
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(given["egressSocket"])
    os.chown(given["egressSocket"], uid, uid)
    os.chmod(given["egressSocket"], 0o600)
    listener.listen(128)
    def serve(inner):
        with inner:
            try:
                connection = Connection(given["egressPort"])
            except OSError:
                return
            back = in_thread(connection.receive, inner.sendall, lambda: inner.shutdown(socket.SHUT_WR))
            send_all(lambda: inner.recv(65536), connection)
            back.join()
            connection.socket.close()
    def accept():
        while True:
            in_thread(serve, listener.accept()[0])
    beside(accept)
    listener.close()

def carry_stream():
    # Over a vsock connection: microsandbox writes the streams of an exec to a log.
    inward, outward = os.pipe(), os.pipe()
    def carry():
        connection = Connection(given["streamPort"])
        # The host accepts a connection at its first byte.
        connection.socket.sendall(b"\\0")
        os.close(inward[0])
        os.close(outward[1])
        def write(piece):
            while piece:
                piece = piece[os.write(inward[1], piece):]
        in_thread(connection.receive, write, lambda: os.close(inward[1]))
        send_all(lambda: os.read(outward[0], 65536), connection)
    carrier = beside(carry)
    os.dup2(inward[0], 0)
    os.dup2(outward[1], 1)
    for number in (*inward, *outward):
        os.close(number)
    return carrier

def confine():
    limits = given["limits"]
    for name, value in limits.items():
        resource.setrlimit(getattr(resource, "RLIMIT_" + name), (value, value))
    for number in range(64):
        libc.prctl(24, number, 0, 0, 0)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    system("prctl", 38, 1, 0, 0, 0)
    rules = ctypes.create_string_buffer(base64.b64decode(given["filter"]))
    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("rules", ctypes.c_void_p)]
    program = Program((len(rules) - 1) // 8, ctypes.addressof(rules))
    system("prctl", 22, 2, ctypes.byref(program), 0, 0)

def run():
    os.umask(0o022)
    os.setsid()
    os.chdir(given["workspace"])
    confine()
    os.execve(given["command"][0], given["command"], given["env"])

def code_of(status):
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)

def first_process():
    system("prctl", 1, signal.SIGKILL, 0, 0, 0)
    mount("proc", "/proc", "proc", NOSUID | NODEV | NOEXEC)
    # It shows the devices of this network namespace only.
    mount("sysfs", "/sys", "sysfs", READONLY | NOSUID | NODEV | NOEXEC)
    mount(None, "/", None, REMOUNT | BIND | READONLY)
    child = os.fork()
    if child == 0:
        run()
    # This process must not keep the stream open after the program has closed it.
    null = os.open("/dev/null", os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    os.close(null)
    while True:
        ended, status = os.wait()
        if ended == child:
            os._exit(code_of(status))

os.umask(0)
before = kills_for_memory()
system("unshare", NEWNS | NEWIPC)
mount(None, "/", None, PRIVATE)
tmpfs("/run", "mode=755,size=1m")
os.makedirs("/run/owlclaw")
# Hides the files of microsandbox in the machine.
tmpfs("/.msb", "mode=700,size=1m")
tmpfs("/tmp", f"mode=1777,size={given['tmpBytes']}")
make_devices()
if given["ownsWorkspace"]:
    os.chown(given["workspace"], uid, uid)
    if os.path.isdir(given["workspace"] + "/lost+found"):
        os.rmdir(given["workspace"] + "/lost+found")
if "egressPort" in given:
    carry_egress()
carrier = carry_stream()
system("unshare", NEWPID | NEWNET)
raise_loopback()
child = os.fork()
if child == 0:
    first_process()
for number in (0, 1):
    os.close(number)
code = code_of(os.waitpid(child, 0)[1])
# The machine is switched off next: write its files to the disk, and let the last output be sent.
os.sync()
deadline = time.monotonic() + 2
while os.waitpid(carrier, os.WNOHANG)[0] == 0 and time.monotonic() < deadline:
    time.sleep(0.005)
os._exit(given["memoryCode"] if code == 128 + signal.SIGKILL and kills_for_memory() != before else code)
`;
