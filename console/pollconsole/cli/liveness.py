"""O8: has a polling core run lately?

Job: heartbeats and now -> how long nothing has polled, and the sentence that says so.
Must not know: commands, the store.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

from pollconsole import words
from pollcore.facts import SECOND, BootMs, Instant, Moment

SILENT_AFTER_MS: Final = 60 * SECOND
"""A core beats every 10 s; silent for longer than this it counts as gone."""


class Beat(Protocol):
    """What is read of a worker's heartbeat."""

    @property
    def kind(self) -> str: ...
    @property
    def beat_at(self) -> Instant: ...
    @property
    def beat_boot(self) -> BootMs: ...
    @property
    def boot_id(self) -> str: ...


def silent_ms(beats: Iterable[Beat], now: Moment) -> int | None:
    """ms since the newest heartbeat, never negative; None: no core ever ran on this store.

    Under one boot the clock that never steps counts, else wall time.
    """
    ages = [now.boot - beat.beat_boot if beat.boot_id == now.boot_id else now.wall - beat.beat_at for beat in beats]
    return max(0, min(ages)) if ages else None


def is_running(silent: int | None) -> bool:
    """Whether a core beat lately enough to count as running."""
    return silent is not None and silent <= SILENT_AFTER_MS


def warning(silent: int | None) -> str | None:
    """The sentence for stderr; None: a core is running."""
    if is_running(silent):
        return None
    since = "has run on this home yet" if silent is None else f"has run for {words.ago(silent)}"
    return f"warning: no core {since}: nothing is polled until 'pollconsole' or 'pollconsole run' is started"
