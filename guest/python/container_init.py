"""The first process of a container: it ends the container when the server is gone.

The container's input ends when the server does. Code inside has the same user, and could hold the guest's input open or stop
the guest. So only this process has the container's input: it copies it to the guest, and when it ends, the guest has a moment to
end by itself. Code inside cannot reach this process: as the first one it gets no signal that it has no handler for, and since it
cannot be dumped, its memory and descriptors in /proc belong to root.
"""

import ctypes
import os
import select
import signal
import sys
import time

PR_SET_DUMPABLE = 4
GRACE_SECONDS = 2
CHUNK_BYTES = 64 * 1024
ENDED = select.POLLHUP | select.POLLRDHUP | select.POLLERR


def main():
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the first process cannot be closed to others")
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    children = wake_on_child_signals()
    guest, guest_input = start(sys.argv[1:])
    copy_input(guest, guest_input, children)


def wake_on_child_signals():
    wakeup, sender = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(sender, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return wakeup


def start(command):
    theirs, ours = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(theirs, 0)
            # An ignored signal stays ignored in the program.
            for number in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            os.execvp(command[0], command)
        except OSError as error:
            os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        finally:
            os._exit(127)
    os.close(theirs)
    os.set_blocking(ours, False)
    os.set_blocking(0, False)
    return pid, ours


def copy_input(guest, guest_input, children):
    pending = memoryview(b"")
    deadline = None
    poll = select.poll()
    poll.register(children, select.POLLIN)
    while True:
        if deadline is None:
            # While the guest does not read, nothing more is read for it; the end of the input is still seen.
            poll.register(0, select.POLLRDHUP | (0 if pending else select.POLLIN))
        if guest_input is not None:
            poll.register(guest_input, select.POLLOUT if pending else 0)
        left = None if deadline is None else max(0, deadline - time.monotonic())
        ready = dict(poll.poll(None if left is None else left * 1000))
        if children in ready:
            os.read(children, 4096)
            reap(guest)
        if deadline is not None and time.monotonic() >= deadline:
            os._exit(0)
        if guest_input in ready:
            pending = written(guest_input, pending)
            if pending is None:
                poll.unregister(guest_input)
                os.close(guest_input)
                guest_input, pending = None, memoryview(b"")
        if 0 in ready and deadline is None:
            chunk = None if pending and ready[0] & ENDED else received()
            if chunk is not None and guest_input is not None:
                pending = memoryview(chunk)
            if chunk is None:
                poll.unregister(0)
                deadline = time.monotonic() + GRACE_SECONDS
                if guest_input is not None:
                    poll.unregister(guest_input)
                    os.close(guest_input)
                    guest_input = None


def received():
    """What has come; nothing at the end of the input. A descriptor without anything to read is no end."""
    try:
        return os.read(0, CHUNK_BYTES) or None
    except BlockingIOError:
        return b""
    except OSError:
        return None


def written(guest_input, pending):
    """What is left to write; nothing when the guest has closed its input."""
    try:
        return pending[os.write(guest_input, pending) :] if pending else None
    except BlockingIOError:
        return pending
    except OSError:
        return None


def reap(guest):
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if pid == guest:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


main()
