"""Figures of a run, scaled to all operations where a sample was simulated.

Job: sums, ranks, peaks, intervals. Must not know: schedules, contracts, how figures are printed.

Intervals hold with CONFIDENCE for what simulating all operations would have given: a sample of n stands beside a whole
of N, so that a mean varies with 1/n + 1/N. Shares: Wilson (1927). Ranks: the order statistics around the rank.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from pollcore.facts import DAY, HOUR, MINUTE, SECOND
from pollcore.whatif.shapes import Estimate, Late, Load, Part, Peak

CONFIDENCE: Final = 0.99
_Z: Final = 2.575829303548901
"""Of the normal distribution, two-sided."""
_SURE: Final = 4.0
"""Deviations around a scaled peak: it is the largest of many counts, not one."""
_BELOW: Final = 8
"""The longest of all lies below the eighth longest of a sample once in 2^8 times, or less."""
_WINDOWS: Final = (1, 2, 5, 15, 60, 300, 900, 3_600, 21_600, 86_400)
"""Seconds over which a scaled peak is averaged."""
_PARTS: Final = (
    SECOND, 5 * SECOND, 15 * SECOND, MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 3 * HOUR, 12 * HOUR, DAY, 7 * DAY, 30 * DAY,
)  # fmt: skip
MAX_PARTS: Final = 48
"""Parts of the time that requests are told by."""


class Seconds(msgspec.Struct, frozen=True):
    """Requests by second, rising, those without a request left out: two rows, since there may be millions."""

    at: array[int]
    counts: array[int]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self.at, self.counts, strict=True)


class Scale:
    """How a simulated operation stands for all: *simulated* of *operations*."""

    def __init__(self, operations: int, simulated: int) -> None:
        self.operations = operations
        self.simulated = simulated
        self.weight = operations / simulated
        self.exact = operations == simulated
        self._varies = 1 / simulated + 1 / operations

    def total(self, values: Sequence[int]) -> Estimate:
        """The sum of a figure that each operation has."""
        n, total = len(values), sum(values)
        if self.exact:
            return _exact(total)
        mean = total / n
        variance = sum((value - mean) ** 2 for value in values) / max(1, n - 1)
        half = _Z * math.sqrt(variance * self._varies) * self.operations
        value = total * self.weight
        return Estimate(value, max(0.0, value - half), value + half)

    def share(self, count: int) -> Estimate:
        """The number of operations of a kind."""
        if self.exact:
            return _exact(count)
        n, p = 1 / self._varies, count / self.simulated
        centre, room = p + _Z * _Z / (2 * n), 1 + _Z * _Z / n
        half = _Z * math.sqrt(p * (1 - p) / n + _Z * _Z / (4 * n * n))
        low, high = max(0.0, (centre - half) / room), min(1.0, (centre + half) / room)
        value = count * self.weight
        return Estimate(value, min(value, low * self.operations), max(value, high * self.operations))

    def mean(self, values: Sequence[int]) -> Estimate:
        """The mean over operations."""
        total = self.total(values)
        high = None if total.high is None else total.high / self.operations
        return Estimate(total.value / self.operations, total.low / self.operations, high)

    def rank(self, values: Sequence[int], part: float) -> Estimate | None:
        """The *part* (0-1) of rising *values*, by the nearest rank."""
        if not values:
            return None
        n = len(values)
        value = values[nearest(n, part)]
        if self.exact:
            return _exact(value)
        if part >= 1.0:
            return Estimate(value, values[max(0, n - _BELOW)], None)
        half = _Z * math.sqrt(part * (1 - part) * n * (1 + 1 / self.weight))
        low, high = math.floor(part * n - half) - 1, math.ceil(part * n + half)
        return Estimate(value, values[max(0, low)], values[min(n - 1, high)])

    def peak(self, seconds: Seconds, unit: int) -> Peak | None:
        """The busiest *unit* (1 or 60 seconds) from the beginning.

        Scaled: a sample's busiest second is mostly luck. Told is the rate of the window whose requests prove the
        highest rate; the interval adds what all operations may do within one unit.
        """
        if not seconds.at:
            return None
        if self.exact:
            at, most = _busiest(seconds, unit)
            return Peak(_exact(most), at * SECOND, unit * SECOND)
        found = [(*_busiest(seconds, window), window) for window in _WINDOWS if window >= unit]
        at, most, window = max(found, key=lambda one: (one[1] - _SURE * math.sqrt(one[1])) / one[2])
        value, luck = most * self.weight * unit / window, _SURE / math.sqrt(most)
        low, high = value * max(0.0, 1 - luck), value * (1 + luck)
        return Peak(Estimate(value, low, high + _SURE * math.sqrt(high)), at * SECOND, window * SECOND)


def load(scale: Scale, requests: Sequence[int], late: Sequence[int], seconds: Seconds | None) -> Load:
    """All figures of one way to ask. *seconds* None: peaks are not known."""
    ranked, waited = sorted(requests), sorted(late)
    n = len(ranked)
    return Load(
        requests=scale.total(requests),
        per_operation=scale.mean(requests),
        median_requests=ranked[nearest(n, 0.5)],
        p95_requests=ranked[nearest(n, 0.95)],
        most_requests=ranked[-1],
        per_second=None if seconds is None else scale.peak(seconds, 1),
        per_minute=None if seconds is None else scale.peak(seconds, 60),
        seen=scale.share(len(late)),
        late=Late(scale.rank(waited, 0.5), scale.rank(waited, 0.95), scale.rank(waited, 1.0)),
    )


def by_second(sent: Iterable[int]) -> Seconds:
    """Requests at rising times (ms), by second."""
    found = Seconds(array("q"), array("q"))
    last = -1
    for at in sent:
        second = at // SECOND
        if second == last:
            found.counts[-1] += 1
        else:
            found.at.append(second)
            found.counts.append(1)
            last = second
    return found


def dense(counts: Sequence[int]) -> Seconds:
    """Requests of each second from the beginning."""
    used = [second for second, count in enumerate(counts) if count]
    return Seconds(array("q", used), array("q", (counts[second] for second in used)))


def parts(end: int, planned: Seconds, fixed: Seconds | None, weight: float) -> tuple[int, tuple[Part, ...]]:
    """Requests by parts of the time until *end* (ms): the length of a part, and MAX_PARTS of them at most."""
    size = next((one for one in _PARTS if end // one < MAX_PARTS), _PARTS[-1])
    ours, theirs = (Counter(dict(_windows(one or (), size // SECOND))) for one in (planned, fixed))
    return size, tuple(
        Part(at * size, round(ours[at] * weight), None if fixed is None else round(theirs[at] * weight))
        for at in range(end // size + 1)
    )


def nearest(n: int, part: float) -> int:
    """The index of the nearest rank among *n* rising values."""
    return max(0, min(n - 1, math.ceil(part * n) - 1))


def _busiest(seconds: Seconds, window: int) -> tuple[int, int]:
    """(second at which it begins, requests) of the first busiest window; windows are counted from the beginning."""
    best = most = 0
    for at, count in _windows(seconds, window):
        if count > most:
            best, most = at, count
    return best * window, most


def _windows(seconds: Iterable[tuple[int, int]], window: int) -> Iterator[tuple[int, int]]:
    """(number of the window, requests), rising, those without a request left out."""
    now = total = 0
    for second, count in seconds:
        if second // window != now:
            if total:
                yield now, total
            now, total = second // window, 0
        total += count
    if total:
        yield now, total


def over(seconds: Seconds, weight: float, limit: int) -> float:
    """Requests beyond *limit* in each minute, a request counted as *weight*."""
    return sum(max(0.0, count * weight - limit) for _, count in _windows(seconds, 60))


def _exact(value: float) -> Estimate:
    return Estimate(value, value, value)
