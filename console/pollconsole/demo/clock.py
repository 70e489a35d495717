"""Compressed time that passes only while the polling loop waits.

Job: the port `Clock` for the demo: wall and boot clock that run *factor* times as fast as real time. While the loop
works (a commit, an import, a machine with other things to do) they stand still, so that a slow machine makes a slow
demo, never one in which leases die and requests are late. Must not know: what is timed.

What stays in real time: the transport's total time of one answer, the keyring's limit, the screen's own ticks.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Final

from pollcore.facts import BootMs, Instant, Moment

FACTOR: Final = 15.0
"""Demo time per real time: two minutes of a provider's guidance are eight seconds of an operator's patience."""
LIFE_S: Final = 7_200.0
"""Real seconds of waiting after which demo time stands still for good: a forgotten demo asks nothing any more."""
SLICE_MS: Final = 15_000
"""T9: the longest wait in one piece, demo time."""
LEAST_S: Final = 0.005
"""The shortest wait in real time, so that compressed time makes no busy loop."""
AS_IN_LIFE: Final = 1.0
"""Demo time per real time while somebody looks at what counts down: a card of two minutes is there for two minutes."""
LOOK_S: Final = 0.25
"""The longest wait in real time meanwhile: so soon time is compressed again."""
SETTLE_ROUNDS: Final = 2
"""Rounds of the event loop before time runs: what was just charged is sent first, whatever this machine is doing."""
ENDED_S: Final = 1.0
"""One wait, real time, after the end of demo time."""
FIRST_BOOT: Final = 60_000_000
BOOT_ID: Final = "demo"
"""Names no boot of any machine; the home that holds it is thrown away."""


class DemoClock:
    """`now` is for all threads. `wait` belongs to the one loop that polls: it alone lets time pass."""

    def __init__(
        self,
        begin: Instant,
        *,
        factor: float = FACTOR,
        life_s: float = LIFE_S,
        real: Callable[[], float] = time.monotonic,
    ) -> None:
        """*begin*: the wall time at which the demo starts. *real*: seconds that never go back."""
        self.begin = begin
        self.factor = factor
        self._life_ms = life_s * 1_000 * factor
        self._real = real
        self._lock = threading.Lock()
        self._passed = 0.0
        self._since: float | None = None
        self._most = 0.0
        self._rate = factor
        """Of the wait under way."""
        self._in_life = False

    def as_in_life(self, on: bool) -> None:
        """From the next wait on time runs as fast as real time (*on*), or compressed. For all threads."""
        with self._lock:
            self._in_life = on

    def now(self) -> Moment:
        """One reading of all clocks; never raises, never goes back."""
        with self._lock:
            passed = int(self._passed + self._running())
        return Moment(Instant(self.begin + passed), BootMs(FIRST_BOOT + passed), BOOT_ID)

    def passed_s(self) -> float:
        """Seconds of demo time since its start."""
        return (self.now().wall - self.begin) / 1_000

    async def wait(self, event: asyncio.Event, ms: int) -> None:
        """Until *event* is set or *ms* of demo time have passed, at most one slice. No more than *ms* pass."""
        for _ in range(SETTLE_ROUNDS):
            await asyncio.sleep(0)
        if event.is_set() or ms <= 0:
            return
        with self._lock:
            rate = AS_IN_LIFE if self._in_life else self.factor
            slice_ms = LOOK_S * 1_000 if self._in_life else float(SLICE_MS)
            span = min(float(ms), slice_ms, self._life_ms - self._passed)
            self._since, self._most, self._rate = self._real(), max(0.0, span), rate
        real_s = ENDED_S if span <= 0 else max(LEAST_S, span / rate / 1_000)
        whole = False
        try:
            async with asyncio.timeout(real_s):
                await event.wait()
        except TimeoutError:
            whole = True
        finally:
            with self._lock:
                # the timer may end a hair early: a wait that was waited out has passed whole
                self._passed += self._most if whole else self._running()
                self._since = None

    def _running(self) -> float:
        if self._since is None:
            return 0.0
        return min(self._most, max(0.0, self._real() - self._since) * 1_000 * self._rate)
