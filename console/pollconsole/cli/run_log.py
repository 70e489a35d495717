"""What `run` says: on standard error, and in the log file that config.toml names.

Job: one line, plain or JSON, to both; the file of mode 0600 turns over at its size. Must not know: the core, what is
worth saying. Lines hold our own words, ids and reasons: no state, text or header of a provider, no caller's text, no
address. The file is written by a thread of its own: a disk that hangs holds up no poll, and lines that it cannot take
are counted and dropped.
Source: spec K1, O6.
"""

from __future__ import annotations

import errno
import json
import logging
import logging.handlers
import os
import queue
import stat
import threading
from pathlib import Path
from typing import Any, Final

from pollconsole.cli import out
from pollconsole.safe import safe
from pollcore.facts import AuditEvent, EventName, Instant, Refused, clock_time, iso

MAX_WAITING: Final = 10_000
"""Lines that wait for the disk; beyond that they are dropped, and how many is said."""
END_S: Final = 2.0
"""How long the end waits for the last lines."""
MAX_LINE: Final = 2_000
_TIMES: Final = frozenset({"at", "next_poll_at"})
_FIELDS: Final = (
    *("operation_id", "http", "fault", "decision", "reason", "requests_used", "max_requests"),
    *("next_poll_at", "delay_source"),
)
"""Of an event: none of them holds a text of a provider or of a caller, but the id that a caller may have chosen."""


class _File(logging.handlers.RotatingFileHandler):
    """The file, for its owner alone; never through a link. Errors are told once, on standard error."""

    failed = False

    def _open(self) -> Any:
        # O_NONBLOCK: opening a FIFO that nobody reads would wait for ever
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        handle = os.open(self.baseFilename, flags, 0o600)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise OSError(errno.EINVAL, "it is no regular file", self.baseFilename)
        return os.fdopen(handle, "a", encoding="utf-8")

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002
        if not self.failed:
            self.failed = True
            out.note(f"the log {self.baseFilename} cannot be written; polling goes on")


class RunLog:
    """Used from one thread, the loop's."""

    def __init__(self, *, as_json: bool, path: Path | None = None, max_size: int = 0, copies: int = 0) -> None:
        """*path*: the file, None: none. Raises Refused, code `log`: it cannot be opened."""
        self.as_json = as_json
        self.writes_file = path is not None
        self._dropped = 0
        self._lines: queue.Queue[str | None] = queue.Queue(MAX_WAITING)
        self._thread: threading.Thread | None = None
        if path is not None:
            try:
                file = _File(path, maxBytes=max_size, backupCount=copies)
            except OSError as error:
                why = f"{path}: {error.strerror or error}; name a file in a folder that is there, or leave it out"
                raise Refused(f"config.toml: log.file: {why}", code="config", key="log.file") from None
            self._thread = threading.Thread(target=self._write, args=(file,), name="pollconsole-log", daemon=True)
            self._thread.start()

    def say(self, at: Instant, text: str, what: str = "core") -> None:
        """One line about this process, on standard error and in the file."""
        line = self._line(at, {"event": what, "text": text}, text)
        if self.as_json:
            out.note(line)
        else:
            out.note(text)
        self._put(line)

    def event(self, event: AuditEvent) -> None:
        """One line about an operation: in the file, and as JSON on standard error, too."""
        if event.event is EventName.SENT:
            return
        found = {name: getattr(event, name) for name in _FIELDS}
        fields = {name: value for name, value in found.items() if value is not None}
        line = self._line(event.at, {"event": event.event.value, **fields}, _told(event, fields))
        if self.as_json:
            out.note(line)
        self._put(line)

    def close(self) -> None:
        """Write what waits, within a limit."""
        if self._thread is not None:
            try:
                self._lines.put(None, timeout=END_S)
            except queue.Full:
                return
            self._thread.join(END_S)

    def _line(self, at: Instant, fields: dict[str, Any], text: str) -> str:
        if not self.as_json:
            return f"{iso(at)} {safe(text, MAX_LINE)}"
        shown = {name: iso(value) if name in _TIMES else value for name, value in fields.items()}
        return json.dumps({"at": iso(at), **shown}, ensure_ascii=True, allow_nan=False)

    def _put(self, line: str) -> None:
        if self._thread is None:
            return
        try:
            if self._dropped:
                self._lines.put_nowait(f"{self._dropped} lines were dropped: the disk took none")
                self._dropped = 0
            self._lines.put_nowait(line)
        except queue.Full:
            self._dropped += 1

    def _write(self, file: _File) -> None:
        while (line := self._lines.get()) is not None:
            file.emit(logging.LogRecord("run", logging.INFO, "", 0, line.replace("%", "%%"), (), None))
        file.close()


def _told(event: AuditEvent, fields: dict[str, Any]) -> str:
    """`op-1: polled, http 200, wait, 3 of 12, next poll 10:20:14 from local_backoff`."""
    parts = [event.event.value]
    parts += [f"http {fields['http']}"] if "http" in fields else []
    parts += [str(fields[name]) for name in ("fault", "decision", "reason") if name in fields]
    if "requests_used" in fields and "max_requests" in fields:
        parts.append(f"{fields['requests_used']} of {fields['max_requests']}")
    if event.next_poll_at is not None:
        source = f" from {event.delay_source.value}" if event.delay_source is not None else ""
        parts.append(f"next poll {clock_time(event.next_poll_at)}{source}")
    return f"{event.operation_id or 'core'}: {', '.join(parts)}"
