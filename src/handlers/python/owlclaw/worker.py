"""The program of a Python worker. It speaks the protocol of ``worker-protocol.ts``."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import platform
import queue
import struct
import sys
import threading
import traceback
from typing import Any, Callable, Dict, List, Optional, Tuple

from .context import Context
from .describe import Handler, LoadedModule
from .questions import QuestionRefused
from .shapes import Misfit
from .sources import Sources
from .values import to_json

PROTOCOL_FD = 3
REGISTERS_FD = 4
# Where the protocol is a pair of descriptors, there are no registers.
WRITE_FD = 4


class JsonLines:
    """JSON objects, one per line, on a pair of descriptors."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._lock = threading.Lock()

    def send(self, message: Dict[str, Any]) -> None:
        data = memoryview((json.dumps(message, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8", "replace"))
        with self._lock:
            while data:
                data = data[os.write(self._write_fd, data) :]

    def read(self, receive: Callable[[Dict[str, Any]], None]) -> None:
        rest = b""
        while True:
            chunk = os.read(self._read_fd, 65536)
            if not chunk:
                return
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                receive(json.loads(line))


class Worker:
    """Runs one sync function at a time on its own thread, and async functions concurrently."""

    def __init__(self, stream: JsonLines, has_registers: bool) -> None:
        self._stream = stream
        self._has_registers = has_registers
        self._targets: Dict[int, Dict[str, Any]] = {}
        self._modules: Dict[str, LoadedModule] = {}
        self._sources = Sources()
        self._contexts: Dict[int, Context] = {}
        self._tasks: Dict[int, "asyncio.Task[Any]"] = {}
        self._jobs: "queue.SimpleQueue[Callable[[], None]]" = queue.SimpleQueue()
        self._loop = asyncio.new_event_loop()

    def run(self) -> None:
        threading.Thread(target=self._read, daemon=True, name="owlclaw-protocol").start()
        threading.Thread(target=self._loop.run_forever, daemon=True, name="owlclaw-async").start()
        self._stream.send({"t": "hello", "version": platform.python_version()})
        # Sync functions have the main thread: signals and many libraries want it.
        while True:
            self._jobs.get()()

    def _read(self) -> None:
        try:
            self._stream.read(self._receive)
        finally:
            # The server is gone, or has no use for this worker any more.
            os._exit(0)

    def _receive(self, message: Dict[str, Any]) -> None:
        kind = message["t"]
        if kind == "ping":
            self._stream.send({"t": "pong"})
        elif kind == "target":
            self._targets[message["n"]] = message["target"]
        elif kind == "sources":
            self._sources.keep(message["texts"])
        elif kind == "cancel":
            self._cancel(message["id"])
        elif kind == "answer":
            context = self._contexts.get(message["id"])
            if context is not None:
                context._questions.answer(message["q"], message.get("value"), message.get("error"))
        elif kind in ("call", "describe", "watch"):
            if not self._may_start(message["id"]):
                self._stream.send({"t": "skipped", "id": message["id"]})
            elif kind == "call":
                self._start(message)
            elif kind == "describe":
                self._jobs.put(lambda: self._describe(message))
            else:
                self._stream.send({"t": "done", "id": message["id"]})

    def _may_start(self, call_id: int) -> bool:
        if not self._has_registers:
            return True
        os.pwrite(REGISTERS_FD, struct.pack("<d", call_id), 0)
        return bool(struct.unpack("<d", os.pread(REGISTERS_FD, 8, 8))[0] == 0)

    def _describe(self, message: Dict[str, Any]) -> None:
        self._finish(message["id"], lambda: self._module(message["file"]).report())

    def _module(self, file: str) -> LoadedModule:
        if self._must_load(file):
            self._sources.serve(file)
            self._modules[file] = LoadedModule(file)
        return self._modules[file]

    def _start(self, message: Dict[str, Any]) -> None:
        target = self._targets[message["n"]]
        context = Context(message["id"], message.get("ctx") or {}, self._stream.send)
        self._contexts[message["id"]] = context
        if target["call"].get("isAsync"):
            self._load_first(target["file"], lambda: self._start_async(message, target, context))
        else:
            self._jobs.put(lambda: self._run_sync(message, target, context))

    def _load_first(self, file: str, start: Callable[[], None]) -> None:
        """Only the main thread loads files, one at a time, so that no partly loaded module is used."""

        def load() -> None:
            self._module(file)
            self._loop.call_soon_threadsafe(start)

        if self._must_load(file):
            self._jobs.put(load)
        else:
            self._loop.call_soon_threadsafe(start)

    def _must_load(self, file: str) -> bool:
        module = self._modules.get(file)
        return module is None or (module.is_broken and file in self._sources)

    def _prepare(
        self, message: Dict[str, Any], target: Dict[str, Any], context: Context
    ) -> Tuple[Handler, List[Any], Dict[str, Any]]:
        module = self._module(target["file"])
        handler = module.handlers.get(target["exportName"])
        if module.is_broken:
            raise FileBroken("; ".join(problem["message"] for problem in module.problems))
        if handler is None:
            reasons = "; ".join(problem["message"] for problem in module.problems)
            raise RuntimeError(f"{target['exportName']} is no longer in its file{': ' + reasons if reasons else ''}")
        args, named = handler.arguments(message["input"], context)
        return handler, args, named

    def _run_sync(self, message: Dict[str, Any], target: Dict[str, Any], context: Context) -> None:
        def call() -> Any:
            handler, args, named = self._prepare(message, target, context)
            output = handler.function(*args, **named)
            if inspect.isgenerator(output):
                output = drive(output, context)
            return to_json(output)

        self._finish(message["id"], call)

    def _start_async(self, message: Dict[str, Any], target: Dict[str, Any], context: Context) -> None:
        async def call() -> None:
            result = await self._run_async(message, target, context)
            self._finish(message["id"], result)

        task = self._loop.create_task(call())
        self._tasks[message["id"]] = task
        task.add_done_callback(lambda _: self._tasks.pop(message["id"], None))
        if context.is_cancelled:
            task.cancel()

    async def _run_async(
        self, message: Dict[str, Any], target: Dict[str, Any], context: Context
    ) -> Callable[[], Any]:
        try:
            handler, args, named = self._prepare(message, target, context)
            output = handler.function(*args, **named)
            value = await drive_async(output, context) if inspect.isasyncgen(output) else await output
        except BaseException as error:  # noqa: BLE001 - told to the server, whatever it is
            failure = error

            def fail() -> Any:
                raise failure

            return fail
        return lambda: to_json(value)

    def _cancel(self, call_id: int) -> None:
        context = self._contexts.get(call_id)
        if context is not None:
            context._cancel()
        task = self._tasks.get(call_id)
        if task is not None:
            self._loop.call_soon_threadsafe(task.cancel)

    def _finish(self, call_id: int, produce: Callable[[], Any]) -> None:
        try:
            answer: Dict[str, Any] = {"t": "done", "id": call_id, "value": produce()}
        except Misfit as misfit:
            issue = {"path": misfit.path, "message": misfit.message}
            answer = {"t": "fail", "id": call_id, "error": {"message": str(misfit), "side": "input", "issues": [issue]}}
        except BaseException as error:  # noqa: BLE001 - a handler may raise anything, SystemExit too
            answer = {"t": "fail", "id": call_id, "error": wire_error(error)}
        context = self._contexts.pop(call_id, None)
        if context is not None:
            context._settle()
            if context.traceparent is not None:
                answer["ms"] = context._elapsed_ms()
        self._stream.send(answer)


class FileBroken(Exception):
    """The file of a function could not be loaded."""


def wire_error(error: BaseException) -> Dict[str, Any]:
    text = str(error)
    if isinstance(error, FileBroken):
        return {
            "message": f"its file could not be loaded:  {text}",
            "hint": "The operator must repair the file, or what it needs when it is loaded. The server's log names it.",
            "unloaded": True,
        }
    name = type(error).__name__
    stack = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    wire: Dict[str, Any] = {"message": f"{name}: {text}" if text else name, "stack": stack}
    if isinstance(error, QuestionRefused):
        wire["q"] = error.question
    return wire


def drive(generator: Any, context: Context) -> Any:
    """Each yield is progress; the returned value is the result."""
    steps = 0
    while True:
        try:
            value = next(generator)
        except StopIteration as end:
            return end.value
        steps += 1
        report(value, steps, context)
        if context.is_cancelled:
            generator.close()
            raise RuntimeError("the call was cancelled")


async def drive_async(generator: Any, context: Context) -> Any:
    """An async generator cannot return a value: the last yield is the result, the others are progress."""
    steps = 0
    last: Any = None
    async for value in generator:
        if steps > 0:
            report(last, steps, context)
        steps += 1
        last = value
    return last


def report(value: Any, steps: int, context: Context) -> None:
    if isinstance(value, bool):
        context.progress(steps)
    elif isinstance(value, (int, float)):
        context.progress(value)
    elif isinstance(value, str):
        context.progress(steps, message=value)
    elif isinstance(value, dict):
        done, total, message = value.get("done"), value.get("total"), value.get("message")
        context.progress(
            done if isinstance(done, (int, float)) else steps,
            total if isinstance(total, (int, float)) else None,
            message if isinstance(message, str) else None,
        )
    else:
        context.progress(steps)


def open_stream(where: str) -> JsonLines:
    # Child processes of handlers must neither read nor write frames.
    for fd in (PROTOCOL_FD, WRITE_FD):
        os.set_inheritable(fd, False)
        os.set_blocking(fd, True)
    return JsonLines(PROTOCOL_FD, WRITE_FD if where == "pair" else PROTOCOL_FD)


def main(where: Optional[str] = None) -> None:
    transport = where or (sys.argv[1] if len(sys.argv) > 1 else "fd")
    Worker(open_stream(transport), has_registers=transport == "fd").run()


if __name__ == "__main__":
    main()
