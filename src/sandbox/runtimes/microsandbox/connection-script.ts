/**
 * The launcher's part that talks to the host. It stands by itself, so that it can be run outside a machine; around it
 * are the modules of `LAUNCH_SCRIPT`, `given`, and `system`, which calls the C library.
 */
export const CONNECTION_SCRIPT = `def connected(port):
    deadline = time.monotonic() + given["connectSeconds"]
    while True:
        door = socket.socket(socket.AF_VSOCK)
        # The kernel itself gives up after two seconds, which a busy host needs longer than. Python sets numbers alone here.
        system("setsockopt", door.fileno(), 40, 6, struct.pack("ll", given["connectSeconds"], 0), 16)
        try:
            door.connect((2, port))
            return door
        except OSError as error:
            door.close()
            complain(error)
            if time.monotonic() > deadline:
                raise
        time.sleep(0.1)

def complain(error):
    print("launcher:", repr(error), file=sys.stderr, flush=True)

class Line:
    # To the host, with its word for how much of it has arrived: src/sandbox/runtimes/microsandbox/credited-stream.ts
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
        # The host may have finished and still listen: its credits are no longer needed then.
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

def send_all(read, line):
    try:
        while piece := read():
            line.send(piece)
    except OSError:
        pass
    quietly(lambda: line.socket.shutdown(socket.SHUT_WR))
`;
