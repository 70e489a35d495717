"""Where the operator was: view, order, filter, cursor and pins, kept from one start to the next.

Job: state <-> the part `table` of HOME/ui.json, every field checked by itself. Must not know: widgets, the core.
Nothing of a question, a card or a half-typed filter is kept.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Any, Final, TypeVar

from pollconsole import ui_file
from pollconsole.board import Sort, View
from pollconsole.safe import safe
from pollconsole.state import State

PART: Final = "table"
MAX_NEEDLE: Final = 60
MAX_ID: Final = 200
MAX_PINS: Final = 50

E = TypeVar("E", bound=Enum)


def restore(state: State, home: Path | None) -> None:
    """Put back what was kept; what is missing or malformed stays as it is."""
    kept = ui_file.read(home).get(PART)
    if not isinstance(kept, dict):
        return
    state.view = _member(View, kept.get("view"), state.view)
    if state.view is View.MARKED:  # marks are not kept
        state.view = View.ALL
    state.sort = _member(Sort, kept.get("sort"), state.sort)
    state.reverse = kept.get("reverse") is True
    state.needle = safe(_text(kept.get("filter"), MAX_NEEDLE), MAX_NEEDLE)
    state.cursor_at_start = _text(kept.get("cursor"), MAX_ID) or None
    pins = kept.get("pins")
    if isinstance(pins, list):
        state.board.pinned = dict.fromkeys(each for each in pins[:MAX_PINS] if _text(each, MAX_ID))


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
        "pins": list(state.board.pinned)[:MAX_PINS],
    }


def _member(kind: type[E], value: Any, otherwise: E) -> E:
    return next((each for each in kind if each.value == value), otherwise)


def _text(value: Any, limit: int) -> str:
    return value if isinstance(value, str) and len(value) <= limit else ""
