"""Where the operator was: view, order, filter, cursor, marks and pins, kept from one start to the next.

Job: state <-> the part `table` of HOME/ui.json, every field checked by itself. Must not know: widgets, the core.
Nothing of a question, a card, a note or a half-typed filter is kept, nor that the display stood still: what is new must
be seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from typing import Any, Final, TypeVar

from pollconsole import ui_file
from pollconsole.board import Sort, View
from pollconsole.mailbox import CoreRole
from pollconsole.safe import safe
from pollconsole.state import State

PART: Final = "table"
MAX_NEEDLE: Final = 60
MAX_ID: Final = 128
"""Characters of an operation's id; so that all of them stay under the size that is read back."""
MAX_PINS: Final = 50
MAX_MARKS: Final = 300

E = TypeVar("E", bound=Enum)


def restore(state: State, home: Path | None) -> None:
    """Put back what was kept; what is missing or malformed stays as it is."""
    kept = ui_file.read(home).get(PART)
    if not isinstance(kept, dict):
        return
    state.view = _member(View, kept.get("view"), state.view)
    state.sort = _member(Sort, kept.get("sort"), state.sort)
    state.reverse = kept.get("reverse") is True
    state.needle = safe(_text(kept.get("filter"), MAX_NEEDLE), MAX_NEEDLE)
    state.cursor_at_start = _text(kept.get("cursor"), MAX_ID) or None
    state.last_needle = safe(_text(kept.get("sought"), MAX_NEEDLE), MAX_NEEDLE)
    state.board.pinned = dict.fromkeys(_ids(kept.get("pins"), MAX_PINS))
    state.board.marked = set(_ids(kept.get("marks"), MAX_MARKS))
    if state.view is View.MARKED and not state.board.marked:
        state.view = View.OPEN


def keep(state: State, home: Path | None, cursor: str | None) -> bool:
    """Keep where the operator is now; False where that cannot be written."""
    return ui_file.write(home, {PART: snapshot(state, cursor)})


def snapshot(state: State, cursor: str | None) -> dict[str, Any]:
    """What would be kept."""
    return {
        "view": state.view.value,
        "sort": state.sort.value,
        "reverse": state.reverse,
        "filter": state.needle,
        "cursor": cursor,
        "sought": state.last_needle,
        "pins": _kept(state, state.board.pinned, MAX_PINS),
        "marks": _kept(state, sorted(state.board.marked), MAX_MARKS),
    }


def _kept(state: State, ids: Iterable[str], limit: int) -> list[str]:
    """The first *limit* of those that this home still shows; until all rows were read, of all."""
    if state.board.latest.role not in (CoreRole.STARTING, CoreRole.FAILED):
        ids = [each for each in ids if each in state.board.operations]
    return [each for each in ids if len(each) <= MAX_ID][:limit]


def _ids(value: Any, limit: int) -> list[str]:
    return [each for each in value[:limit] if _text(each, MAX_ID)] if isinstance(value, list) else []


def _member(kind: type[E], value: Any, otherwise: E) -> E:
    return next((each for each in kind if each.value == value), otherwise)


def _text(value: Any, limit: int) -> str:
    return value if isinstance(value, str) and len(value) <= limit else ""
