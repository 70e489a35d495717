"""Which columns a width has room for, and how wide each is.

Job: pure: cells of the table, cells that its texts take -> columns. Must not know: what a cell says, widgets, colours.
The same rows give the same columns whatever the clock says, so that nothing shifts while it is watched.

Source: spec V1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from rich.cells import cell_len

from pollconsole.safe import safe
from pollcore.facts import Operation

MAX_NAME: Final = 60
"""Characters of an id or a name that count."""


class Column(msgspec.Struct, frozen=True):
    """One column. *width*: the fewest cells that it lives with; *right*: figures end together; *least*: shown from this
    width of the table on."""

    key: str
    head: str
    width: int
    right: bool = False
    least: int = 0


COLUMNS: Final = (
    Column("operation", "OPERATION", 9),
    Column("provider", "PROVIDER", 6, least=79),
    Column("status", "STATUS", 11),
    Column("state", "JOB SAYS", 7, least=79),
    Column("next", "NEXT", 6, right=True, least=44),
    Column("left", "LEFT", 8, right=True),
    Column("requests", "REQS", 4, right=True, least=56),
    Column("failures", "FAIL", 4, right=True, least=79),
    Column("limited", "429", 4, right=True, least=79),
    Column("note", "NOTE", 20, least=112),
)
LEAD: Final = 2
"""The cursor's mark and a space."""
WANTED: Final[Mapping[str, int]] = {"operation": 15, "provider": 24, "requests": 8, "failures": 4, "limited": 4}
"""Cells that ids (`op-` and 12 digits), names and figures want where no row says otherwise."""
SIZED: Final[Mapping[str, int]] = {"operation": 9, "provider": 8, "requests": 4, "failures": 4, "limited": 4}
"""Columns that are as wide as their texts, and the fewest cells that they want."""
MAX_OPERATION: Final = 24
_HEADS: Final[Mapping[str, tuple[str, str]]] = {"requests": ("REQS", "REQUESTS"), "state": ("JOB", "JOB SAYS")}
_GROWTH: Final = (
    *(("requests", 15), ("failures", 9), ("limited", 9)),  # a figure that is cut says another thing
    *(("operation", 15), ("provider", 8), ("provider", 14), ("operation", MAX_OPERATION)),
    *(("state", 16), ("provider", 24), ("note", 80)),
)
"""Who may grow to how many cells, one after the other, as long as there is room."""


def columns_for(width: int, wanted: Mapping[str, int] = WANTED) -> tuple[Column, ...]:
    """The columns that *width* cells hold, grown to fill them. *wanted*: by column, cells that its texts take."""
    chosen = [column for column in COLUMNS if column.least <= width]
    cells = {column.key: column.width for column in chosen}
    spare = width - LEAD - sum(cells.values()) - (len(chosen) - 1)
    for key, most in _GROWTH:
        if key in cells and spare > 0:
            more = max(0, min(spare, min(most, wanted.get(key, most)) - cells[key]))
            cells[key] += more
            spare -= more
    cells["operation"] += max(0, spare)  # where nothing else has use for it
    return tuple(
        msgspec.structs.replace(column, width=cells[column.key], head=_head(column, cells[column.key]))
        for column in chosen
    )


def _head(column: Column, cells: int) -> str:
    """Its name, or the one for fewer or more cells: no name is cut."""
    fewer, more = _HEADS.get(column.key, (column.head, column.head))
    return more if cells >= len(more) else fewer


def cells_of(operation: Operation) -> tuple[int, ...]:
    """Cells that the texts of one row take, in the order of `SIZED`; whatever the clock says."""
    return (
        cell_len(safe(operation.operation_id, MAX_NAME)),
        cell_len(safe(operation.submitted.provider, MAX_NAME)),
        _figure_cells(operation.max_status_requests, operation.status_requests_used),
        _figure_cells(operation.max_transport_failures, operation.transport_failures_used),
        _figure_cells(operation.max_rate_limited, operation.rate_limited_used),
    )


def wanted_by(sizes: Iterable[tuple[int, ...]]) -> dict[str, int]:
    """Cells that rows of these sizes (`cells_of`) take, by column; the same for the same rows."""
    widest = (max(column) for column in zip(SIZED.values(), *set(sizes), strict=True))
    return dict(zip(SIZED, widest, strict=True))


def _figure_cells(allowed: int, used: int) -> int:
    """Of `12/12!`: a figure grows while it is watched, its column must not."""
    return len(str(max(allowed, used))) + len(str(allowed)) + 2
