"""A shell on a terminal of its own: requests as JSON lines on stdin, everything that the terminal shows on stdout."""

import errno
import fcntl
import json
import os
import pty
import select
import signal
import struct
import sys
import termios

READ_BYTES = 65536


def resize(master, cols, rows):
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))


def read_terminal(master):
    try:
        return os.read(master, READ_BYTES)
    except OSError as error:
        # What Linux says when the last program on the terminal has gone.
        if error.errno == errno.EIO:
            return b""
        raise


def write_some(master, pending):
    try:
        return pending[os.write(master, pending):]
    except BlockingIOError:
        return pending


def write_all(data):
    while data:
        data = data[os.write(1, data):]


def apply(line, master):
    """The bytes that a request wants typed."""
    request = json.loads(line)
    if "resize" in request:
        resize(master, *request["resize"])
    return request.get("input", "").encode("utf-8", "replace")


def serve(master):
    requests, pending = b"", b""
    while True:
        readable, writable, _ = select.select([0, master], [master] if pending else [], [])
        if master in readable:
            shown = read_terminal(master)
            if not shown:
                return
            write_all(shown)
        if writable:
            pending = write_some(master, pending)
        if 0 in readable:
            taken = os.read(0, READ_BYTES)
            if not taken:
                return
            *lines, requests = (requests + taken).split(b"\n")
            for line in lines:
                pending += apply(line, master)


def main():
    cols, rows, shell = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    child, master = pty.fork()
    if child == 0:
        os.execv(shell, [shell, "-i"])
    resize(master, cols, rows)
    os.set_blocking(master, False)
    try:
        serve(master)
    finally:
        os.kill(child, signal.SIGHUP)
        os.close(master)
        os.waitpid(child, 0)


main()
