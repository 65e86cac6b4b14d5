"""Questions of a running handler to the client, and the caller's sandbox."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from typing import Any, Callable, Dict, Optional


class QuestionRefused(Exception):
    """The question was refused. Raised unchanged, it ends the call with the server's original error."""

    def __init__(self, question: int, message: str) -> None:
        super().__init__(message)
        self.question = question


class Questions:
    """The questions of one call. Answers come on another thread."""

    def __init__(self, ask: Callable[[Dict[str, Any]], None]) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self._waiting: Dict[int, "concurrent.futures.Future[Any]"] = {}
        self._asked = 0
        self._is_over = False

    def ask(self, what: str, request: Any, key: Optional[str] = None) -> Any:
        """The answer; inside an async function an awaitable."""
        future: "concurrent.futures.Future[Any]" = concurrent.futures.Future()
        with self._lock:
            self._asked += 1
            number = self._asked
            if self._is_over:
                raise RuntimeError("the call has ended: its client cannot be asked")
            self._waiting[number] = future
        question: Dict[str, Any] = {"t": "ask", "q": number, "what": what, "request": request}
        if key is not None:
            question["key"] = key
        self._ask(question)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return future.result()
        return asyncio.wrap_future(future)

    def answer(self, number: int, value: Any, error: Optional[Dict[str, Any]]) -> None:
        with self._lock:
            future = self._waiting.pop(number, None)
        if future is None or not future.set_running_or_notify_cancel():
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(QuestionRefused(number, error.get("message", "refused")))

    def end(self) -> None:
        with self._lock:
            self._is_over = True
            waiting = list(self._waiting.values())
            self._waiting.clear()
        for future in waiting:
            if future.set_running_or_notify_cancel():
                future.set_exception(RuntimeError("the call has ended: its client cannot be asked"))


class Sandbox:
    """The caller's sandbox, which the built-in tools use too. It is created when it is first used.

    In an async function each of these is to be awaited.
    """

    def __init__(self, questions: Questions) -> None:
        self._questions = questions

    def run(self, code: str, language: str = "python", timeout: Optional[float] = None) -> Any:
        """Runs code: ``{"status", "stdout", "stderr", "value", "error"}``."""
        return self._do({"verb": "run", "code": code, "language": language}, timeout)

    def exec(self, command: str, timeout: Optional[float] = None) -> Any:
        """Runs a shell command: ``{"status", "stdout", "stderr", "exitCode"}``."""
        return self._do({"verb": "exec", "command": command}, timeout)

    def read_file(self, path: str) -> Any:
        return self._do({"verb": "readFile", "path": path})

    def write_file(self, path: str, content: str) -> Any:
        return self._do({"verb": "writeFile", "path": path, "content": content})

    def _do(self, request: Dict[str, Any], timeout: Optional[float] = None) -> Any:
        if timeout is not None:
            request["timeoutSeconds"] = timeout
        return self._questions.ask("sandbox", request)
