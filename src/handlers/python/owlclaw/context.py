"""The context of a call."""

from __future__ import annotations

import math
import threading
import time
from typing import Any, Callable, Dict, Mapping, Optional

from .questions import Questions, Sandbox


class Logger:
    """Sends log messages to the client, if it wants messages of the level."""

    def __init__(self, send: Callable[[str, Any], None]) -> None:
        self._send = send

    def debug(self, data: Any) -> None:
        self._send("debug", data)

    def info(self, data: Any) -> None:
        self._send("info", data)

    def warning(self, data: Any) -> None:
        self._send("warning", data)

    def error(self, data: Any) -> None:
        self._send("error", data)


class Context:
    """A parameter of this type gets the context. It is not a field of the tool."""

    def __init__(self, call_id: int, wire: Mapping[str, Any], send: Callable[[Dict[str, Any]], None]) -> None:
        self._id = call_id
        self._send = send
        self._cancelled = threading.Event()
        self._settled = False
        #: Who calls: ``{"id": ..., "scopes": [...], "claims": {...}}``.
        self.principal: Mapping[str, Any] = wire.get("principal") or {}
        self.trace_id: str = wire.get("traceId", "")
        #: By W3C Trace Context, for requests to other services; only while the call is traced.
        self.traceparent: Optional[str] = wire.get("traceparent")
        #: What belongs to it and goes on with it, where the client sent any.
        self.tracestate: Optional[str] = wire.get("tracestate")
        self._started = time.perf_counter()
        self.session_id: Optional[str] = wire.get("sessionId")
        self.protocol_version: str = wire.get("protocolVersion", "")
        self.logger = Logger(self._log)
        self._questions = Questions(lambda question: send({**question, "id": call_id}))
        #: A place to run things in, isolated from the server and from the handler itself.
        self.sandbox = Sandbox(self._questions)

    @property
    def is_cancelled(self) -> bool:
        """True after a cancel, a timeout or a server stop. Return soon: the process is killed afterwards."""
        return self._cancelled.is_set()

    def _elapsed_ms(self) -> float:
        return (time.perf_counter() - self._started) * 1000

    def progress(self, done: float, total: Optional[float] = None, message: Optional[str] = None) -> None:
        """Reports progress to clients that asked for it."""
        report: Dict[str, Any] = {"t": "progress", "id": self._id, "done": done}
        if total is not None:
            report["total"] = total
        if message is not None:
            report["message"] = message
        self._say(report)

    def elicit(self, message: str, schema: Mapping[str, Any], key: Optional[str] = None) -> Any:
        """Asks the user of the client: ``{"action": "accept", "content": {...}}``, or ``decline``, or ``cancel``.

        To be awaited in an async function. On revisions without server requests the call ends with the question and
        runs again from its start when the answer has come: do what must happen once after the last question.
        """
        return self._questions.ask("elicit", {"message": message, "requestedSchema": dict(schema)}, key)

    def charge(self, amount: float) -> None:
        """Adds to the cost of this call, also after a cancel until the handler returns."""
        if not math.isfinite(amount) or amount < 0:
            raise ValueError("charge() takes a finite amount that is not negative")
        if not self._settled:
            self._send({"t": "charge", "id": self._id, "amount": amount})

    def list_changed(self, kind: str) -> None:
        """Tells clients to request a list again: tools, resources or prompts."""
        self._say({"t": "listChanged", "id": self._id, "list": kind})

    def _cancel(self) -> None:
        self._cancelled.set()
        self._questions.end()

    def _settle(self) -> None:
        self._settled = True
        self._questions.end()

    def _log(self, level: str, data: Any) -> None:
        self._say({"t": "log", "id": self._id, "level": level, "data": data})

    def _say(self, message: Dict[str, Any]) -> None:
        if not self._settled and not self._cancelled.is_set():
            self._send(message)
