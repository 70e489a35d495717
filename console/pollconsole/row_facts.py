"""What ordering, counting and finding ask of a row, worked out once for each record instead of once a second.

Job: pure: one record -> its place-independent facts. Must not know: the clock (it comes in), other rows, widgets. With
10,000 rows on the screen this is the difference between a tenth of a core and a hundredth.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pollconsole import row_columns, rows, words
from pollconsole.causes import wait_ends_at
from pollcore.facts import Operation, Status

FIELDS: Final[dict[str, Callable[[Operation], str]]] = {
    "op": lambda o: o.operation_id,
    "status": lambda o: o.status.value,
    "state": lambda o: o.last_known_state or "",
    "provider": lambda o: o.submitted.provider,
    "account": lambda o: o.submitted.account,
    "job": lambda o: o.submitted.job_id,
    "label": lambda o: o.submitted.label or "",
    "reason": lambda o: o.stop_reason.value if o.stop_reason is not None else "",
}
"""What a filter can name: `state:running`."""
_ENDS: Final = frozenset(status for status in Status if status.is_end)


class RowFacts:
    """Of one record; a newer record of the same operation has facts of its own."""

    __slots__ = ("_text", "cells", "end", "ends_at", "low", "needs", "operation", "operation_id")

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self.operation_id = operation.operation_id
        self.end = operation.status in _ENDS
        self.needs = operation.status in words.NEEDS_A_HUMAN
        self.ends_at = wait_ends_at(operation)
        self.low = rows.low_from(operation)
        self.cells = row_columns.cells_of(operation)
        self._text: str | None = None

    @property
    def text(self) -> str:
        """All that a word can be looked for in, in small letters; made when somebody looks for one."""
        if self._text is None:
            self._text = "\n".join(read(self.operation) for read in FIELDS.values()).lower()
        return self._text


def finder(needle: str) -> Callable[[RowFacts], bool]:
    """A test whether every word of *needle* is in a row: plain words anywhere, `field:word` in that field."""
    named: list[tuple[Callable[[Operation], str], str]] = []
    anywhere: list[str] = []
    for word in needle.lower().split():
        name, colon, rest = word.partition(":")
        if colon and name in FIELDS:
            named.append((FIELDS[name], rest))
        else:
            anywhere.append(word)

    def fits(row: RowFacts) -> bool:
        if not all(rest in read(row.operation).lower() for read, rest in named):
            return False
        return all(word in row.text for word in anywhere)

    return fits
