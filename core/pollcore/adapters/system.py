"""The machine's clocks and chance (ports `Clock` and `Chance`).

Job: wall time, a clock that runs on during suspend, which boot it belongs to; waits in slices; random numbers.
Must not know: what is timed.
Source: spec T9, T1 (the random source is injected); reliability notes, section 10 (asyncio's timers stand still while
the machine sleeps, hence slices).
"""

from __future__ import annotations

import asyncio
import getpass
import os
import random
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pollcore.facts import BootMs, Instant, Moment

SLICE_MS: Final = 15_000
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


class SystemClock:
    """All clocks of this machine."""

    def __init__(self) -> None:
        self._boot_ns = _boot_clock()
        self._boot_id = boot_id()

    def now(self) -> Moment:
        """One reading of all clocks."""
        return Moment(Instant(time.time_ns() // 1_000_000), BootMs(self._boot_ns() // 1_000_000), self._boot_id)

    async def wait(self, event: asyncio.Event, ms: int) -> None:
        """Until *event* is set or *ms* have passed, at most one slice; the caller looks at all clocks again."""
        try:
            async with asyncio.timeout(min(ms, SLICE_MS) / 1_000):
                await event.wait()
        except TimeoutError:
            return


class SystemChance:
    """Draws and ids. With a *seed* the draws repeat (demo, tests); ids are always from the system's source."""

    def __init__(self, seed: int | None = None) -> None:
        self._random = random.SystemRandom() if seed is None else random.Random(seed)

    def draw(self) -> float:
        """From [0.0, 1.0)."""
        return self._random.random()

    def token(self, size: int = 8) -> str:
        """*size* random bytes as lower-case hex."""
        return os.urandom(size).hex()


def os_user() -> str:
    """The OS user's name, unverified."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def boot_id() -> str:
    """What tells one boot from another; where the system has nothing of the kind, what tells this process from others.

    A boot time under another id is never compared, so a process-unique id is safe: it only forgets more.
    """
    try:
        text = _BOOT_ID.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        text = _mac_boot_session() if sys.platform == "darwin" else ""
    return text.lower() or f"process-{uuid.uuid4()}"


def _boot_clock() -> Callable[[], int]:
    """Nanoseconds of a clock that never steps and counts time spent in suspend."""
    if sys.platform == "linux":
        return lambda: time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    if sys.platform == "darwin":
        # unlike time.monotonic (mach_absolute_time), this one runs on while the machine sleeps
        return lambda: time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    if sys.platform == "win32":
        import ctypes

        ticks = ctypes.windll.kernel32.GetTickCount64
        ticks.restype = ctypes.c_uint64
        return lambda: int(ticks()) * 1_000_000
    return time.monotonic_ns


def _mac_boot_session() -> str:
    import ctypes

    size = ctypes.c_size_t(64)
    buffer = ctypes.create_string_buffer(size.value)
    failed = ctypes.CDLL(None).sysctlbyname(b"kern.bootsessionuuid", buffer, ctypes.byref(size), None, 0)
    return "" if failed else buffer.value.decode("ascii", "replace")
