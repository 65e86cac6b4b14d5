"""Runs Python for the guest: one JSON line per request on descriptor 3, one per answer on descriptor 4.

What the code prints goes to the real descriptors 1 and 2, so that what its child processes print is caught too.
"""

import ast
import json
import linecache
import os
import signal
import sys
import time
import types

# This folder is not the code's: nothing is left in it.
sys.dont_write_bytecode, _writes_bytecode = True, sys.dont_write_bytecode
from owlclaw_pictures import Pictures, install_import_hooks

sys.dont_write_bytecode = _writes_bytecode

HTML_CHARS_MAX = 200_000
CO_COROUTINE = 0x80
NO_LOOP_NOTE = (
    ": an event loop runs only while code awaits at its top level. Await the coroutine itself, or something after"
    " create_task, such as `await task` or `await asyncio.sleep(1)`; tasks go on in later calls that await"
)


def main():
    requests = os.fdopen(move_up(3), "rb")
    answers = move_up(4)
    driver_pid = os.getpid()
    prepare_interpreter()
    session = Session()
    for line in requests:
        request = json.loads(line)
        started = time.perf_counter()
        answer = session.answer(request)
        answer["ms"] = (time.perf_counter() - started) * 1000
        answer["id"] = request["id"]
        flush_output()
        if os.getpid() != driver_pid:
            # The code forked, and this is the child at its end: the driver itself is in the other process.
            os._exit(0)
        write_all(answers, json.dumps(answer).encode() + b"\n")


class Session:
    def __init__(self):
        self.pictures = Pictures()
        self.output = {name: (number, move_copy_up(number)) for number, name in ((1, "stdout"), (2, "stderr"))}
        self.count = 0
        self.loop = None
        self.module = types.ModuleType("__main__")
        self.module.__dict__["__builtins__"] = __builtins__
        sys.modules["__main__"] = self.module
        install_import_hooks(self.pictures)

    def answer(self, request):
        if "preload" in request:
            return {"failed": [name for name in request["preload"] if not can_import(name)]}
        if "startOver" in request:
            return self.start_over()
        forget_missing_files()
        self.restore_output()
        self.count += 1
        self.pictures.clear()
        answer = self.run(request["code"], request["maxChars"])
        try:
            self.pictures.add_open_figures()
        except Exception as error:
            print("a figure could not be drawn: %r" % error, file=sys.stderr)
        answer["pictures"] = self.pictures.take()
        return answer

    def start_over(self):
        """After the rehearsals: the code's first cell is the first."""
        for number in range(1, self.count + 1):
            linecache.cache.pop("<cell %d>" % number, None)
        self.count = 0
        return {}

    def restore_output(self):
        """Code that closes its output closes it for itself, not for the runs that follow."""
        for name, (number, copy) in self.output.items():
            os.dup2(copy, number)
            stream = getattr(sys, name, None)
            if stream is None or getattr(stream, "closed", False):
                setattr(sys, name, open(number, "w", closefd=False))
                prepare_stream(getattr(sys, name))

    def run(self, code, max_chars):
        filename = "<cell %d>" % self.count
        # No modification time: it is never looked for on the disk.
        linecache.cache[filename] = (len(code), None, code.splitlines(True), filename)
        try:
            body, last = compile_cell(code, filename)
            return self.describe(self.execute(body, last), max_chars)
        except SystemExit as error:
            return describe_exit(error)
        except BaseException as error:
            return {"status": "error", "error": describe_error(error, max_chars)}

    def execute(self, body, last):
        """The value of the last expression, if there is one."""
        if not any(is_coroutine(code) for code in (body, last)):
            eval(body, self.module.__dict__)
            return None if last is None else eval(last, self.module.__dict__)
        if self.loop is None:
            import asyncio

            self.loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self.loop)
        return self.loop.run_until_complete(self.execute_in_loop(body, last))

    async def execute_in_loop(self, *codes):
        """One await makes the loop run for the whole cell: create_task before it finds it."""
        value = None
        for code in codes:
            value = None if code is None else eval(code, self.module.__dict__)
            if is_coroutine(code):
                value = await value
        return value

    def describe(self, value, max_chars):
        if value is None:
            return {"status": "ok"}
        self.module.__dict__["_"] = value
        if self.pictures.add_value(value):
            return {"status": "ok"}
        described = {"text": cut(repr(value), max_chars)}
        html = html_of(value)
        if html is not None:
            described["html"] = html
        return {"status": "ok", "value": described}


def compile_cell(code, filename):
    """The statements, and the last expression by itself."""
    tree = compile(code, filename, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr) and not code.rstrip().endswith(";"):
        expression = ast.Expression(tree.body.pop().value)
        last = compile(expression, filename, "eval", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    return compile(tree, filename, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True), last


def is_coroutine(code):
    return code is not None and code.co_flags & CO_COROUTINE


def html_of(value):
    if isinstance(value, type) or not hasattr(type(value), "_repr_html_"):
        return None
    try:
        html = value._repr_html_()
    except Exception:
        return None
    return html if isinstance(html, str) and len(html) <= HTML_CHARS_MAX else None


def describe_exit(error):
    if error.code is None or error.code == 0:
        return {"status": "ok"}
    message = "the code ended with sys.exit(%s)" % cut(repr(error.code), 200)
    return {"status": "error", "error": {"name": "SystemExit", "message": message, "traceback": ""}}


def describe_error(error, max_chars):
    import traceback

    drop_driver_frames(error, set())
    try:
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        message = str(error)
    except Exception as failure:
        text = message = "the exception cannot be shown: %s" % type(failure).__name__
    if isinstance(error, RuntimeError) and message == "no running event loop":
        message += NO_LOOP_NOTE
    return {"name": type(error).__name__, "message": cut(message, 4000), "traceback": cut(text, max_chars)}


def drop_driver_frames(error, seen):
    """For the exception and those that led to it: frames above the code's own are of no use to its author."""
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        frame = error.__traceback__
        while frame is not None and frame.tb_frame.f_code.co_filename == __file__:
            frame = frame.tb_next
        # An event loop may be between the driver and the code.
        inner = frame
        while inner is not None and not inner.tb_frame.f_code.co_filename.startswith("<cell "):
            inner = inner.tb_next
        error.__traceback__ = inner or frame
        drop_driver_frames(error.__cause__, seen)
        error = error.__context__


def prepare_interpreter():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    prepare_stream(sys.stdout)
    prepare_stream(sys.stderr)
    # As in an interactive session: modules beside the code, not beside this file.
    sys.path[0] = ""
    sys.argv = [""]
    add_user_site()


def prepare_stream(stream):
    stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)


def add_user_site():
    """What pip installs later must be found, even where the folder does not exist yet."""
    import site

    if site.ENABLE_USER_SITE is not False:
        folder = site.getusersitepackages()
        if folder not in sys.path:
            sys.path.append(folder)


def forget_missing_files():
    """Files that other calls wrote since the last run are there, however fast they came."""
    for path, finder in list(sys.path_importer_cache.items()):
        if finder is None:
            del sys.path_importer_cache[path]
        elif hasattr(finder, "invalidate_caches"):
            finder.invalidate_caches()


def can_import(name):
    try:
        __import__(name)
        return True
    except Exception:
        return False


def flush_output():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            # The code replaced or closed it.
            pass


def move_up(descriptor):
    """Out of the way of code that uses low descriptor numbers, and not passed on to what it starts."""
    moved = move_copy_up(descriptor)
    os.close(descriptor)
    return moved


def move_copy_up(descriptor):
    import fcntl

    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 200)


def write_all(descriptor, data):
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def cut(text, max_chars):
    if len(text) <= max_chars:
        return text
    half = max_chars // 2
    return "%s\n[… %d characters cut …]\n%s" % (text[:half], len(text) - 2 * half, text[len(text) - half :])


if __name__ == "__main__":
    main()
