"""What a simulation takes from the controller: its view of shared waits, and its pauses.

Job: the shapes. Must not know: the controller, which lies above; whoever starts a simulation hands over the real ones.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from pollcore.facts import BootMs, Instant, Moment, Operation


class Cooling(Protocol):
    """A cool-down in force."""

    @property
    def until_boot(self) -> BootMs: ...


class Shared(Protocol):
    """T8, T11: what operations share (`controller/shared.py`)."""

    def cooldown(self, operation: Operation, now: Moment) -> Cooling | None: ...
    def place(self, operation: Operation, until: BootMs) -> int: ...
    def cool_down(self, operation: Operation, until: Instant, until_boot: BootMs) -> None: ...
    def answered(self, origin: str, account: str) -> None: ...
    def faulted(self, operation: Operation, origin: str, now: Moment) -> None: ...
    def may_probe(self, operation: Operation, origin: str, now: Moment) -> bool: ...
    def look_again(
        self, operation: Operation, origin: str, now: Moment, recheck_ms: int, draw: float, room_ms: int
    ) -> int: ...
    def let_go(self, operation: Operation, origin: str, now: Moment, draw: float, room_ms: int) -> int: ...
    def is_down(self, operation: Operation, origin: str) -> bool: ...
    def probing(self, operation: Operation, origin: str, now: Moment, total_ms: int) -> None: ...


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """One worker's rules beside those of a single operation; spans in ms."""

    shared: Shared
    slots: int
    """Requests in flight at once: so many are prepared before the first answer."""
    recheck_ms: int
    """An operation looks again at an origin that is down when it may be probed, after this at most."""
    cap_pause_ms: int
    """One that found no room under a cap looks again after this to twice of it."""
