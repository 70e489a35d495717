"""Counts over all rows, kept as rows come, change and go, instead of counted over all of them once a second.

Job: pure: the facts of one row in or out -> the counts. Must not know: questions, views, the screen. What time alone
changes (a live wait that runs low) is found by the instant at which it does; a clock that was put back, or a machine
that was started anew, has it found over all rows again.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping
from typing import Final

from pollconsole.row_facts import RowFacts
from pollcore.facts import Moment, Status, StopReason

UNKNOWN: Final = frozenset({StopReason.UNKNOWN_STATE, StopReason.NEEDS_HUMAN, StopReason.INTEGRATION_FAILURE})
FAILED: Final = frozenset({Status.FAILED, Status.CANCELLED, Status.EXPIRED})
MAX_STALE: Final = 1_000
"""Instants kept beyond two for each row: those of records that were replaced; then all are found anew."""


class Tally:
    """The counts. *rows*: facts by operation id, whoever keeps them; each change of them is told here."""

    def __init__(self, rows: Mapping[str, RowFacts]) -> None:
        self._rows = rows
        self.live = 0
        """Rows that have not ended."""
        self.unknown = 0
        """Live ones whose state nobody understands."""
        self.failed = 0
        """Ends other than success."""
        self.needing = 0
        """Those whose status alone wants a person."""
        self.needing_ends = 0
        self.users: Counter[str] = Counter()
        """OS users who handed over what is live."""
        self._low: set[str] = set()
        self._walls: list[tuple[float, str]] = []
        self._boots: list[tuple[float, str]] = []
        self._at: Moment | None = None

    def put(self, row: RowFacts, before: RowFacts | None) -> None:
        """*row* stands among the rows now, in the place of *before* if there was one."""
        if before is not None:
            self.drop(before)
        self._count(row, 1)
        if row.low is None or self._at is None:
            return
        if row.low.at(self._at):
            self._low.add(row.operation_id)
        else:
            heapq.heappush(self._walls, (row.low.wall, row.operation_id))
            heapq.heappush(self._boots, (row.low.boot, row.operation_id))

    def drop(self, row: RowFacts) -> None:
        """*row* is none of the rows any more."""
        self._count(row, -1)
        self._low.discard(row.operation_id)

    def low(self, now: Moment) -> int:
        """Live waits that run low at *now*."""
        last = self._at
        went_on = last is not None and last.wall <= now.wall and last.boot <= now.boot and last.boot_id == now.boot_id
        if not went_on or len(self._walls) > 2 * len(self._rows) + MAX_STALE:
            self._find_all(now)
        self._at = now
        for instants, at in ((self._walls, now.wall), (self._boots, now.boot)):
            while instants and instants[0][0] < at:
                _, operation_id = heapq.heappop(instants)
                row = self._rows.get(operation_id)  # of a record that was replaced the newer one says whether it is low
                if row is not None and row.low is not None and row.low.at(now):
                    self._low.add(operation_id)
        return len(self._low)

    def _find_all(self, now: Moment) -> None:
        live = [(row.low, row.operation_id) for row in self._rows.values() if row.low is not None]
        self._low = {operation_id for low, operation_id in live if low.at(now)}
        later = [(low, operation_id) for low, operation_id in live if operation_id not in self._low]
        self._walls = [(low.wall, operation_id) for low, operation_id in later]
        self._boots = [(low.boot, operation_id) for low, operation_id in later]
        heapq.heapify(self._walls)
        heapq.heapify(self._boots)

    def _count(self, row: RowFacts, by: int) -> None:
        operation = row.operation
        if row.needs:
            self.needing += by
        if row.end:
            self.failed += by * (operation.status in FAILED)
            self.needing_ends += by * row.needs
            return
        self.live += by
        if operation.stop_reason in UNKNOWN:
            self.unknown += by
        user = operation.submitted.os_user
        self.users[user] += by
        if by < 0 and not self.users[user]:
            del self.users[user]
