"""Signs of life of the cores that poll one store: read, and judged.

Job: heartbeats out of the store, and from them who polls as far as is known. Must not know: widgets, words, what a
console does when nobody polls.
Source: spec O8.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from pollconsole.mailbox import Beat, CoreRole, Delta
from pollcore.facts import Moment

if TYPE_CHECKING:
    from pollconsole import bridge

OTHER_SILENT_MS: Final = 35_000
"""A core of another process beats every 10 s; silent for longer it is gone, and this one takes over."""


async def read_beats(core: bridge.Core) -> tuple[Beat, ...]:
    """The newest heartbeat of each worker; one that is proved to have ended is marked. Raises StoreUnusable."""
    now, here = core.clock.now(), (os.getpid(), socket.gethostname())
    beats = []
    for w in await core.store.workers():
        beat = Beat(w.owner, w.pid, w.kind, w.beat_at, w.beat_boot, w.boot_id, w.host, mine=(w.pid, w.host) == here)
        gone = beat_age_ms(beat, now) < OTHER_SILENT_MS and core.is_gone(w.owner, w.host)
        beats.append(msgspec.structs.replace(beat, gone=True) if gone else beat)
    return tuple(beats)


def is_alive(beat: Beat, now: Moment) -> bool:
    """Whether that core polls as far as is known: it beat lately and is not proved to have ended."""
    return not beat.gone and beat_age_ms(beat, now) < OTHER_SILENT_MS


def other_core(beats: Sequence[Beat], now: Moment) -> Beat | None:
    """The newest sign of life of a core of another process that polls this store; None: there is none."""
    others = [beat for beat in beats if not beat.mine and is_alive(beat, now)]
    return min(others, key=lambda beat: beat_age_ms(beat, now), default=None)


def is_polled(latest: Delta, now: Moment) -> bool:
    """Whether some core polls what is shown; while this one starts nobody knows yet, and it counts as polled."""
    if latest.role in (CoreRole.STARTING, CoreRole.OWN):
        return True
    ended = latest.role is CoreRole.FAILED  # its newest sign of life may be of a moment ago
    return any(is_alive(beat, now) and not (ended and beat.mine) for beat in latest.beats)


def beat_age_ms(beat: Beat, now: Moment) -> int:
    """ms since *beat*, by the clock that never steps where both belong to one boot."""
    age = now.boot - beat.beat_boot if beat.boot_id == now.boot_id else now.wall - beat.beat_at
    return max(0, age)
