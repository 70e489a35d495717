"""The provider of a simulation: when jobs come and end, and what one request brings.

Job: arrivals, job times, the fate of each request. Must not know: schedules, decisions, who asks. An answer takes no
time.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from pollcore.facts import MINUTE, SECOND
from pollcore.whatif.parameters import Arrivals, JobTime, Parameters, Source


class Fate(IntEnum):
    """What one request brings."""

    ANSWERED = 0
    REFUSED = 1
    """No connection."""
    LIMITED = 2
    """429."""


ANSWERED: Final = Fate.ANSWERED


class Provider:
    """Asked in the order of time. *weight*: how many requests each of them stands for against a limit."""

    def __init__(self, asked: Parameters, fates: Source) -> None:
        self._outage = asked.outage
        self._failures = asked.failure_rate
        self._fates = fates
        limit = asked.rate_limit_per_minute
        self._limit = None if limit is None else limit / asked.weight
        self._minute = -1
        self._taken = 0
        self.is_plain = self._outage is None and not self._failures and self._limit is None
        """Every request is answered."""

    def fate(self, at: int) -> Fate:
        """What a request at *at* (ms from the beginning) brings."""
        if self._outage is not None and self._outage.holds(at):
            return Fate.REFUSED
        if self._failures and self._fates() < self._failures:
            return Fate.REFUSED
        if self._limit is not None:
            minute = at // MINUTE
            if minute != self._minute:
                self._minute, self._taken = minute, 0
            if self._taken + 1 > self._limit:
                return Fate.LIMITED
            self._taken += 1
        return Fate.ANSWERED


def until_next_minute(at: int) -> int:
    """What a 429 at *at* says in `Retry-After`: ms, whole seconds, rounded up."""
    left = MINUTE - at % MINUTE
    return -(-left // SECOND) * SECOND


def arrivals(asked: Parameters, source: Source) -> list[int]:
    """When each simulated operation is handed over, ms from the beginning, rising."""
    n = asked.simulated
    match asked.arrivals:
        case Arrivals.BURST:
            return [0] * n
        case Arrivals.SPREAD:
            return [at * asked.duration // n for at in range(n)]
        case Arrivals.POISSON:
            # given their number, arrivals of a Poisson process are independent and uniform
            return sorted(int(asked.duration * source()) for _ in range(n))


def job_times(asked: Parameters, time: JobTime, source: Source) -> list[int]:
    """How long each simulated job runs from its hand-over, ms."""
    return [time.draw(source) for _ in range(asked.simulated)]
