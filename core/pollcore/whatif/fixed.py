"""The loop that a schedule is compared with: a request every so many seconds, from the hand-over to the job's end.

Job: arithmetic over the same arrivals, job times, outage and failures. Must not know: contracts beyond the deadline at
which this loop gives up as well. It has no budget, takes no guidance and asks on through an outage and through 429s;
what it sends beyond the provider's limit is told, not played out.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Final

import msgspec

from pollcore.facts import SECOND
from pollcore.whatif.parameters import Parameters, Source

MAX_SECONDS: Final = 4_000_000
"""Of a simulated time whose loop is counted by the second (about 46 days); the peaks of a longer one are not told."""


class Loop(msgspec.Struct, frozen=True, kw_only=True):
    """What the loop did, by simulated operation."""

    requests: Sequence[int]
    late: Sequence[int]
    """ms, by operation that saw its end."""
    unseen: int
    """Operations whose deadline came first."""
    by_second: Sequence[int] | None
    """Requests of each second from the beginning; None: longer than MAX_SECONDS."""


def fixed_loop(asked: Parameters, arrivals: Sequence[int], times: Sequence[int], span: int, fates: Source) -> Loop:
    """The loop over all simulated operations. *span*: from a hand-over to its deadline, ms."""
    interval, last_tick = asked.compare_interval, (span - 1) // asked.compare_interval
    requests, late, unseen = array("q"), array("q"), 0
    spans: list[tuple[int, int]] = []
    for at, time in zip(arrivals, times, strict=True):
        tick = first_answer(asked, at, max(1, -(-time // interval)), last_tick, fates)
        if tick > last_tick:
            unseen += 1
            tick = last_tick
        else:
            late.append(tick * interval - time)
        requests.append(tick)
        if tick:
            spans.append((at + interval, at + tick * interval))
    return Loop(requests=requests, late=late, unseen=unseen, by_second=_by_second(spans, interval))


def first_answer(asked: Parameters, at: int, tick: int, last: int, fates: Source) -> int:
    """The first tick from *tick* on that is answered; beyond *last* no further one is looked for."""
    interval, outage = asked.compare_interval, asked.outage
    while tick <= last:
        when = at + tick * interval
        if outage is not None and outage.holds(when):
            tick += -(-(outage.start + outage.span - when) // interval)
        elif asked.failure_rate and fates() < asked.failure_rate:
            tick += 1
        else:
            break
    return tick


def _by_second(spans: Sequence[tuple[int, int]], interval: int) -> Sequence[int] | None:
    """Requests by second, of loops that ask from the first to the last time of their span."""
    end = max((last for _, last in spans), default=0) // SECOND + 1
    if end > MAX_SECONDS:
        return None
    stride = interval // SECOND
    counts = array("q", bytes(8 * (end + stride)))
    for first, last in spans:
        counts[first // SECOND] += 1
        counts[last // SECOND + stride] -= 1
    for second in range(stride, end):
        counts[second] += counts[second - stride]
    return counts[:end]
