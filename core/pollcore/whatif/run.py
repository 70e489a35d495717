"""The events of a simulation in their order.

Job: a queue of waits by the time at which each is due; turns as a worker makes them: prepare what is due, count what
may go out, then the answers. Must not know: what an answer leads to, figures.
Source: spec O7, T6, T8, T11; the order of draws is the controller's (tests hold the two against each other).
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Final

import msgspec

from pollcore.facts import Refused, StopReason
from pollcore.whatif.caps import Caps
from pollcore.whatif.provider import Provider
from pollcore.whatif.waits import Steps, Waiting

MAX_SIMULATED: Final = 10_000_000
"""Requests of one simulation."""
MAX_LOOKS: Final = 20_000_000
"""Steps of one simulation, those included at which nothing is sent."""
_BITS: Final = 20
"""Of a queue entry: the wait's number; above it the time."""
_NUMBER: Final = (1 << _BITS) - 1


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """What happened; times in ms from the beginning."""

    sent: array[int]
    """Every request's time, rising."""
    requests: Sequence[int]
    """By operation."""
    late: Sequence[int]
    """ms between a job's end and the answer that showed it, by operation that saw it."""
    stops: Counter[StopReason]
    end: int
    """When the last operation ended or stopped."""


class Run:
    """One run: waits that arrive at *arrivals* (rising) and whose jobs run for *times*."""

    def __init__(
        self,
        steps: Steps,
        provider: Provider,
        caps: Caps,
        arrivals: Sequence[int],
        times: Sequence[int],
        slots: int,
    ) -> None:
        self._steps = steps
        self._provider = provider
        self._caps = caps
        self._arrivals = arrivals
        self._times = times
        self._slots = slots
        self._queue: list[int] = []
        self._waits: list[Waiting | None] = []
        self._sent: array[int] = array("q")
        self._requests: array[int] = array("q", bytes(8 * len(arrivals)))
        self._late: array[int] = array("q")
        self._stops: Counter[StopReason] = Counter()

    def go(self) -> Trace:
        """Everything until the last wait has ended. Raises Refused: more than MAX_SIMULATED or MAX_LOOKS."""
        queue, waits, arrivals = self._queue, self._waits, self._arrivals
        at = looks = arrived = 0
        while queue or arrived < len(arrivals):
            due = queue[0] >> _BITS if queue else None
            if arrived < len(arrivals) and (due is None or arrivals[arrived] <= due):
                at = arrivals[arrived]
                one = self._steps.submit(arrived, at, at + self._times[arrived])
                waits.append(one)
                heappush(queue, (one.due << _BITS) | arrived)
                arrived += 1
                continue
            assert due is not None
            at = due
            batch = [heappop(queue) & _NUMBER]
            while queue and queue[0] >> _BITS == at and len(batch) < self._slots:
                batch.append(heappop(queue) & _NUMBER)
            looks += len(batch)
            self._turn(at, batch)
            if len(self._sent) > MAX_SIMULATED or looks > MAX_LOOKS:
                raise too_much(len(self._sent), looks)
        return Trace(sent=self._sent, requests=self._requests, late=self._late, stops=self._stops, end=at)

    def _turn(self, at: int, batch: Sequence[int]) -> None:
        steps, caps = self._steps, self._caps
        ready = [one for index in batch if (one := self._prepared(index, at)) is not None]
        if caps.any:
            ready = [one for one, room in [(one, caps.take(at)) for one in ready] if room or self._put_off(one, at)]
        for one in ready:
            one.used += 1
            self._sent.append(at)
        provider = self._provider
        for one in ready:
            ended = steps.answer(one, provider.fate(at), at)
            if ended is None:
                heappush(self._queue, (one.due << _BITS) | one.index)
            elif ended is True:
                self._late.append(at - one.ends)
                self._finish(one)
            else:
                assert isinstance(ended, StopReason)
                self._stop(one, ended)

    def _prepared(self, index: int, at: int) -> Waiting | None:
        """The wait, if it may send now."""
        one, steps = self._waits[index], self._steps
        assert one is not None
        if at >= one.deadline:
            self._stop(one, steps.stop_at_limit(one, at))
            return None
        if steps.cooling and (cooled := steps.cooled(one, at)):
            if isinstance(cooled, StopReason):
                self._stop(one, cooled)
            else:
                heappush(self._queue, (one.due << _BITS) | index)
            return None
        if (steps.troubled or one.kept) and steps.kept_back(one, at):
            heappush(self._queue, (one.due << _BITS) | index)
            return None
        return one

    def _put_off(self, one: Waiting, at: int) -> bool:
        self._steps.capped(one, at)
        heappush(self._queue, (one.due << _BITS) | one.index)
        return False

    def _stop(self, one: Waiting, reason: StopReason) -> None:
        self._stops[reason] += 1
        self._finish(one)

    def _finish(self, one: Waiting) -> None:
        self._requests[one.index] = one.used
        self._waits[one.index] = None


def too_much(requests: int, looks: int) -> Refused:
    """The refusal of a simulation that grew beyond its limits."""
    what = f"{requests:,} requests" if requests > MAX_SIMULATED else f"{looks:,} steps"
    limit = f"{MAX_SIMULATED:,} requests" if requests > MAX_SIMULATED else f"{MAX_LOOKS:,} steps"
    return Refused(
        f"the simulation comes to {what}, at most {limit} are simulated: ask for fewer --operations, a shorter "
        "--job-time, or lower --max-requests or --deadline",
        code="limit",
        limit="simulated_requests",
    )
