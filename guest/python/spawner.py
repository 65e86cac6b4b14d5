"""Starts processes for the guest, so that none of them can get away.

The guest asks for supervisors by writing one byte each to descriptor 0. A supervisor is forked ahead of its use, makes its
pipes, and says on descriptor 1 which they are; the guest opens its ends through /proc. A supervisor is a child subreaper:
whatever its program starts, daemons and double forks included, stays below it and can be ended as a whole.
"""

import ctypes
import errno
import gc
import json
import os
import select
import signal
import sys
import time

# The limit comes with the command line where there is one; the import costs every start a little.
if len(sys.argv) > 1:
    import resource

PR_SET_CHILD_SUBREAPER = 36
END_DEADLINE_SECONDS = 10
FREEZE_ROUNDS = 50


def main():
    reserve_low_descriptors()
    become_subreaper()
    wakeup = wake_on_child_signals()
    say(1, {"python": sys.executable, "version": "%d.%d.%d" % sys.version_info[:3]})
    # What is here now is shared with every fork: the collector must not touch (and so copy) it.
    gc.freeze()
    supervisors = set()
    poll = select.poll()
    poll.register(0, select.POLLIN)
    poll.register(wakeup, select.POLLIN)
    poll.register(1, 0)
    while True:
        ready = dict(poll.poll())
        if 1 in ready:
            return
        if wakeup in ready:
            os.read(wakeup, 4096)
            if reap_supervisors(supervisors):
                end_descendants(lambda: None, spared=supervisors)
        if 0 in ready:
            wanted = os.read(0, 64)
            if not wanted:
                return
            for _ in wanted:
                try:
                    pid = os.fork()
                except OSError as error:
                    say(1, {"failed": os.strerror(error.errno)})
                    continue
                if pid == 0:
                    supervise(poll, wakeup)
                supervisors.add(pid)


def reap_supervisors(supervisors):
    """Reaps what ended; says whether a supervisor was killed, whose processes are then ours."""
    was_killed = False
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return was_killed
        if pid == 0:
            return was_killed
        if pid in supervisors:
            supervisors.discard(pid)
            was_killed = was_killed or status != 0


def supervise(inherited_poll, inherited_wakeup):
    """Never returns: this is a process of its own."""
    status = 1
    try:
        del inherited_poll
        os.close(inherited_wakeup)
        os.close(0)
        os.setsid()
        become_subreaper()
        Supervisor().run()
        status = 0
    finally:
        os._exit(status)


class Supervisor:
    def __init__(self):
        self.wakeup = wake_on_child_signals()
        self.control, control_out = os.pipe()
        events_in, self.events = os.pipe()
        self.stdin, stdin_out = os.pipe()
        stdout_in, self.stdout = os.pipe()
        stderr_in, self.stderr = os.pipe()
        answers_in, self.answers = os.pipe()
        self.guest_ends = [control_out, events_in, stdin_out, stdout_in, stderr_in, answers_in]
        self.child = None
        self.has_exited = False
        self.was_left_behind = False
        self.pending = b""
        say(1, {"pid": os.getpid(), "fds": self.guest_ends})

    def run(self):
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        poll.register(self.wakeup, select.POLLIN)
        # No events asked for: it still says when the guest is gone.
        poll.register(1, 0)
        while True:
            ready = dict(poll.poll())
            if 1 in ready:
                self.end()
                return
            if self.control in ready:
                self.read_control()
            if self.wakeup in ready:
                os.read(self.wakeup, 4096)
            if self.child is not None and not self.reap():
                if not self.was_left_behind:
                    # Nothing of the last program is left: this supervisor can take another.
                    self.child = None
                    continue
                return

    def read_control(self):
        chunk = os.read(self.control, 65536)
        if not chunk:
            self.end()
            os._exit(0)
        *lines, self.pending = (self.pending + chunk).split(b"\n")
        for line in lines:
            request = json.loads(line)
            if "argv" in request:
                self.start(request)
            elif "signal" in request:
                for pid in descendants(os.getpid()):
                    send_signal(pid, request["signal"])
            else:
                self.end()
                os._exit(0)

    def start(self, request):
        # The guest has opened them by now.
        while self.guest_ends:
            os.close(self.guest_ends.pop())
        self.has_exited = False
        actions = [(os.POSIX_SPAWN_DUP2, self.stdout, 1), (os.POSIX_SPAWN_DUP2, self.stderr, 2)]
        if request["stdin"] == "pipe":
            actions.append((os.POSIX_SPAWN_DUP2, self.stdin, 0))
        else:
            actions.append((os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0))
        if request["stdin"] == "channel":
            actions.append((os.POSIX_SPAWN_DUP2, self.stdin, 3))
            actions.append((os.POSIX_SPAWN_DUP2, self.answers, 4))
        argv = request["argv"]
        limit_data(request["isNode"])
        try:
            os.chdir(request["cwd"])
            self.child = os.posix_spawn(
                argv[0],
                argv,
                request["env"],
                file_actions=actions,
                setsid=True,
                setsigmask=[],
                setsigdef=[signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGCHLD],
            )
        except (OSError, ValueError) as error:
            code = errno.errorcode.get(getattr(error, "errno", None), "EINVAL")
            self.say({"failed": str(error), "code": code})
            return
        self.say({"started": self.child})

    def reap(self):
        """Says whether anything below still lives. With nothing left this process has no more to do."""
        exit_event = None
        is_alive = True
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                is_alive = False
                break
            if pid == 0:
                break
            if pid == self.child and not self.has_exited:
                self.has_exited = True
                exit_event = exit_of(status)
        if exit_event is not None:
            self.was_left_behind = is_alive
            self.say({"exited": exit_event, "isAlive": is_alive})
        return is_alive

    def end(self):
        end_descendants(self.reap)
        self.say({"ended": True})

    def say(self, message):
        try:
            say(self.events, message)
        except OSError:
            # The guest closed its end: it wants to hear no more.
            pass


def limit_data(is_node):
    """What the next program may allocate. Node needs all there is: it reserves what it hardly uses."""
    if len(sys.argv) > 1:
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (hard if is_node else int(sys.argv[1]), hard))


def exit_of(status):
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = "SIG%d" % number
        return {"code": None, "signal": name}
    return {"code": os.WEXITSTATUS(status), "signal": None}


def end_descendants(reap, spared=()):
    """Ends everything below this process. It is stopped first: what forks faster than it dies would otherwise get away."""
    deadline = time.monotonic() + END_DEADLINE_SECONDS
    while time.monotonic() < deadline:
        frozen = set()
        for _ in range(FREEZE_ROUNDS):
            fresh = [pid for pid in descendants(os.getpid(), spared) if pid not in frozen]
            if not fresh:
                break
            for pid in fresh:
                send_signal(pid, signal.SIGSTOP)
            frozen.update(fresh)
        for pid in frozen:
            send_signal(pid, signal.SIGKILL)
        if reap() is False or (not frozen and spared):
            return
        time.sleep(0.001)


def descendants(root, spared=()):
    """Parents before their children: a shell that hears of a signal first does not report its child's end as its own."""
    children = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/%s/stat" % name, "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields[0] != b"Z":
            children.setdefault(int(fields[1]), []).append(int(name))
    found = [root]
    for parent in found:
        found += [pid for pid in children.get(parent, ()) if pid not in spared]
    return found[1:]


def send_signal(pid, number):
    try:
        os.kill(pid, number)
    except OSError:
        # It ended by itself meanwhile.
        pass


def become_subreaper():
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot become a child subreaper")


def wake_on_child_signals():
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return reader


def reserve_low_descriptors():
    """Keeps 3 to 9 taken, so that no pipe of ours has a number that a program gets its own descriptors on."""
    while os.open("/dev/null", os.O_RDONLY) < 9:
        pass


def say(descriptor, message):
    os.write(descriptor, json.dumps(message, separators=(",", ":")).encode() + b"\n")


main()
