"""What the help lists: read from the bindings that are in force, so that it never names a key that does nothing.

Job: classes with bindings -> sections of keys and what they do. Must not know: widgets, single screens. Movement is one
line; keys that differ in an argument alone stand together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from textual.binding import Binding

from pollconsole.key_names import shown

OURS: Final = "pollconsole."
MOVES: Final = ("move", "page", "end", "ends", "scroll")
"""Actions that only move."""
TOGETHER: Final = ("view", "match", "other")
"""Actions whose keys stand on one line."""

VIEW: Final = "view_"
"""How the ids of the views' bindings begin."""


class Section(msgspec.Struct, frozen=True):
    """One screen's keys: pairs of keys and what they do."""

    title: str
    pairs: tuple[tuple[str, str], ...]


def section(
    title: str, owner: type[Any], keymap: Mapping[str, str] | None = None, more: Iterable[tuple[str, str]] = ()
) -> Section:
    """Keys of the class *owner* and of those of ours that it builds on. *keymap*: keys by the ids of bindings, as the
    operator changed them. *more*: what is no binding (a card's digits belong to its guard)."""
    grouped: dict[str, list[Binding]] = {}
    for binding in bindings(owner):
        name = binding.action.partition("(")[0]
        key = "move" if name in MOVES else name if name in TOGETHER else binding.action
        grouped.setdefault(key, []).append(binding)
    moves = grouped.pop("move", None)
    first = [_pair("move", moves, keymap or {})] if moves else []
    return Section(title, (*more, *first, *(_pair(name, group, keymap or {}) for name, group in grouped.items())))


def bindings(owner: type[Any]) -> list[Binding]:
    """All of *owner* and of the classes of ours that it builds on, its own first; each key once."""
    found: list[Binding] = []
    keys: set[str] = set()
    for kind in owner.__mro__:
        if kind.__module__.startswith(OURS):
            for binding in Binding.make_bindings(kind.__dict__.get("BINDINGS", ())):
                if binding.key not in keys:
                    keys.add(binding.key)
                    found.append(binding)
    return found


def _pair(name: str, group: list[Binding], keymap: Mapping[str, str]) -> tuple[str, str]:
    keys = list(dict.fromkeys(shown(key) for binding in group for key in _keys(binding, keymap)))
    if len(keys) > 2 and all(key.isdigit() for key in keys):
        said = f"{keys[0]} - {keys[-1]}"
    else:
        said = (" " if name == "move" else " / ").join(keys)
    if name == "move":
        return "move, scroll", said
    if name == "view":
        return (
            said,
            f"views: {', '.join((each.id or each.description).removeprefix(VIEW).replace('_', ' ') for each in group)}",
        )
    told = [binding.tooltip or binding.description for binding in group]
    return said, "; ".join(dict.fromkeys(told))


def _keys(binding: Binding, keymap: Mapping[str, str]) -> list[str]:
    changed = keymap.get(binding.id or "")
    return [key.strip() for key in changed.split(",")] if changed else [binding.key]
