"""How many operations one request asks for, contract by contract, as answers teach it.

Job: take less after a request that was too much, more again after good answers. Must not know: who goes with whom, what
an answer says of a job, stores.
Source: contract need R39. One worker's knowledge: a restart begins with the contract's `max`.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pollcore.facts import MINUTE, BootMs, Moment

MAX_CONTRACTS: Final = 1_000
"""Contracts of which is remembered how many operations of a request are too many; what was not learned of for longest
is forgotten."""
FAULTS_UNTIL_FEWER: Final = 2
"""So many requests for several failed in a row, and half as many operations go together; as many more halve again."""
GOOD_UNTIL_MORE: Final = 20
"""So many good answers for as many as go together now, and more are tried."""
MAX_GOOD_UNTIL_MORE: Final = 1_280
"""Doubled with each trial that fails, up to this."""
STEPS: Final = 10
"""A trial asks for a tenth of `max` more, or for twice as many where that is less."""
TRIAL_MS: Final = 2 * MINUTE
"""A trial whose answer did not come so long is made again: it never left."""


class Size(msgspec.Struct):
    """What is known of one contract."""

    now: int
    """Operations of one request."""
    proved: int = 0
    """As many as before the present trial of more; 0: there is none."""
    next_trial: BootMs = BootMs(0)
    """One request tries, the others stay as they were, until its answer or this time."""
    fitted: int = 0
    """For how many operations a list came since the last answer that was none."""
    faults: int = 0
    """Requests for several that failed in a row since *now* was made smaller."""
    good: int = 0
    needed: int = GOOD_UNTIL_MORE


class Sizes:
    """The sizes of one worker. *most*: `max` of the contract *digest*."""

    def __init__(self) -> None:
        self._known: dict[str, Size] = {}

    def of(self, digest: str, most: int, now: Moment) -> int:
        """How many operations the next request asks for."""
        size = self._known.get(digest)
        if size is None:
            return most
        return size.proved if size.proved and size.next_trial > now.boot else min(most, size.now)

    def goes(self, digest: str, count: int, now: Moment) -> None:
        """A request for *count* operations is made ready: where that is a trial, it is the only one."""
        size = self._known.get(digest)
        if size is not None and size.proved and count > size.proved:
            size.next_trial = BootMs(now.boot + TRIAL_MS)

    def listed(self, digest: str, most: int, count: int) -> None:
        """A list came for *count* operations."""
        size = self._size(digest, most)
        size.fitted, size.faults = max(count, size.fitted), 0
        self._good(size, most, count)

    def alone(self, digest: str, most: int) -> None:
        """One that was asked alone got an answer: a good one where nobody goes with others."""
        size = self._known.get(digest)
        if size is not None and size.now == 1:
            self._good(size, most, 1)

    def too_many(self, digest: str, most: int, count: int) -> None:
        """An answer for *count* operations may have been too large. Not where a list came for as many: a page of a
        proxy, once, makes no request smaller."""
        size = self._size(digest, most)
        forgiven, size.fitted = count <= size.fitted, 0
        if not forgiven:
            _shrink(size, count)

    def failed(self, digest: str, most: int, count: int) -> None:
        """A request for *count* operations left, and no answer came or a 5xx."""
        size = self._size(digest, most)
        size.faults += 1
        if size.faults >= FAULTS_UNTIL_FEWER or count > size.proved > 0:
            _shrink(size, count)

    def _size(self, digest: str, most: int) -> Size:
        size = self._known.pop(digest, None)
        if size is None and len(self._known) >= MAX_CONTRACTS:
            self._known.pop(next(iter(self._known)))
        self._known[digest] = size = Size(most) if size is None else size
        return size

    @staticmethod
    def _good(size: Size, most: int, count: int) -> None:
        if count > size.proved > 0:
            size.next_trial = BootMs(0)
        if count < size.now or (size.now >= most and not size.proved):
            return
        size.proved, size.next_trial = 0, BootMs(0)
        size.good += 1
        if size.good >= size.needed and size.now < most:
            step = min(size.now, -(-most // STEPS))
            size.proved, size.now, size.good = size.now, min(most, size.now + step), 0


def _shrink(size: Size, count: int) -> None:
    """Half of what was too much; after a trial what was proved before, and a longer wait until the next."""
    size.good = 0
    if count > size.proved > 0:
        size.now, size.needed = size.proved, min(MAX_GOOD_UNTIL_MORE, 2 * size.needed)
    else:
        size.now = max(1, min(count // 2, size.now))
    size.proved, size.next_trial, size.faults = 0, BootMs(0), 0
