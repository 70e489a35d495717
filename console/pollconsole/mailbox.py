"""What the core's thread hands to the screen: the newest of everything, never a queue of changes.

Job: keep one newest row per operation between two looks of the screen, bounded, under one lock. Must not know: widgets,
event loops, how rows are found. A screen that stands still for a minute finds one row per operation, not a minute
of them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import msgspec

from pollcore.facts import BootMs, Escalation, Instant, Operation

MAX_HELD: Final = 100_000
"""Rows kept between two looks; beyond it ends are dropped first, and the number dropped is told."""


class CoreRole(StrEnum):
    """Who polls, as far as this console knows. The value is the word of the status line."""

    STARTING = "STARTING"
    OWN = "ACTIVE"
    ATTACHED = "ATTACHED"
    READ_ONLY = "READ-ONLY"
    ENDING = "ENDING"
    FAILED = "FAILED"


class Beat(msgspec.Struct, frozen=True):
    """One worker's heartbeat, as far as a screen shows it."""

    owner: str
    pid: int
    kind: str
    beat_at: Instant
    beat_boot: BootMs
    boot_id: str
    host: str = ""
    gone: bool = False
    """Proved to have ended, however young its beat is."""
    mine: bool = False
    """This process's own."""


class Trouble(msgspec.Struct, frozen=True):
    """Why the audit is not anchored. *alarm*: its record is known to be damaged."""

    why: str
    alarm: bool


class SessionLeft(msgspec.Struct, frozen=True):
    """What is left of one session of a credential (G6). *owner*: the run of the core that may use it."""

    session_id: str
    credential: str
    owner: str
    until: Instant
    calls: int
    calls_left: int


class Delta(msgspec.Struct, frozen=True, kw_only=True):
    """What is new since the last look. *operations*: the newest row of each that changed; the rest is complete
    each time."""

    operations: tuple[Operation, ...] = ()
    questions: tuple[Escalation, ...] = ()
    beats: tuple[Beat, ...] = ()
    role: CoreRole = CoreRole.STARTING
    health: str | None = None
    """Why nothing is sent now (the store cannot commit), or why the core ended; None: all well."""
    audit: Trouble | None = None
    """None: anchored."""
    sessions: tuple[SessionLeft, ...] = ()
    """Those that can still be used."""
    change: int = 0
    read_s: float = 0.0
    """When the store was read last, by `time.monotonic`; 0: not yet."""
    loaded: bool = False
    """The first rows are in."""
    dropped: int = 0


class Mailbox:
    """One writer (the core's thread), one reader (the screen's tick). No call blocks longer than a dictionary
    update."""

    def __init__(self, limit: int = MAX_HELD) -> None:
        self._lock = threading.Lock()
        self._limit = limit
        self._rows: dict[str, Operation] = {}
        self._rest = Delta()

    def put(
        self,
        operations: Iterable[Operation] = (),
        *,
        questions: tuple[Escalation, ...] | None = None,
        beats: tuple[Beat, ...] | None = None,
        role: CoreRole | None = None,
        change: int | None = None,
        loaded: bool | None = None,
        read_s: float | None = None,
    ) -> None:
        """Replace what is named; None leaves it as it was."""
        named = {
            "questions": questions, "beats": beats, "role": role, "change": change, "loaded": loaded, "read_s": read_s
        }  # fmt: skip
        with self._lock:
            for operation in operations:
                self._keep(operation)
            changes = {key: value for key, value in named.items() if value is not None}
            self._rest = msgspec.structs.replace(self._rest, **changes)

    @property
    def loaded(self) -> bool:
        """Whether the first rows are in; takes nothing."""
        return self._rest.loaded

    def health(self, text: str | None) -> None:
        """Set or clear what is wrong."""
        with self._lock:
            self._rest = msgspec.structs.replace(self._rest, health=text)

    def audit(self, trouble: Trouble | None) -> None:
        """Set or clear what is wrong with the audit."""
        with self._lock:
            self._rest = msgspec.structs.replace(self._rest, audit=trouble)

    def sessions(self, left: tuple[SessionLeft, ...]) -> None:
        """Replace what is left of the sessions."""
        with self._lock:
            self._rest = msgspec.structs.replace(self._rest, sessions=left)

    def take(self) -> Delta:
        """All that changed since the last call, and forget it."""
        with self._lock:
            rows, self._rows = self._rows, {}
            found = msgspec.structs.replace(self._rest, operations=tuple(rows.values()))
            self._rest = msgspec.structs.replace(self._rest, dropped=0)
        return found

    def _keep(self, operation: Operation) -> None:
        held = self._rows.get(operation.operation_id)
        if held is not None and held.change > operation.change:
            return
        if held is None and len(self._rows) >= self._limit:
            ended = next((key for key, row in self._rows.items() if row.status.is_end), None)
            self._rest = msgspec.structs.replace(self._rest, dropped=self._rest.dropped + 1)
            if ended is None:
                return
            del self._rows[ended]
        self._rows[operation.operation_id] = operation
