"""Templates of JSON bodies: a tree whose strings may hold placeholders.

Job: compile once, render quickly, and once more without the idempotency key for the fingerprint. Must not know:
contracts' tables, requests. A string that is one placeholder keeps its value's type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from pollcore.contract.templates import (
    GROUPS,
    JOB_IDS,
    NUMBER,
    OPTIONAL,
    Fill,
    Placeholder,
    TextTemplate,
    refuse,
)

_DIGITS: Final = re.compile(r"-?[0-9]{1,18}")


class BodyTemplate:
    """A JSON body. A string that is one placeholder keeps the value's type; others are text with values put in."""

    __slots__ = ("constant", "mentions_key", "tree")

    def __init__(self, value: Any, allowed: frozenset[str]) -> None:
        """Raises ValueError: unknown placeholder, a date, a number that JSON cannot hold."""
        self.tree = _compile(value, allowed)
        self.mentions_key = _any_key(self.tree)
        self.constant = None if _open(self.tree) else msgspec.json.encode(_fill(self.tree, _NOTHING, False))

    def render(self, fill: Fill) -> bytes:
        return self.constant if self.constant is not None else msgspec.json.encode(_fill(self.tree, fill, False))

    def canonical(self, fill: Fill) -> bytes:
        """JSON with sorted keys and without members that hold the idempotency key (S7)."""
        return msgspec.json.encode(_fill(self.tree, fill, True), order="deterministic")


def _compile(value: Any, allowed: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {key: _compile(inner, allowed) for key, inner in value.items()}
    if isinstance(value, list):
        return [_compile(inner, allowed) for inner in value]
    if isinstance(value, str):
        template = TextTemplate(value, allowed, frozenset({OPTIONAL, NUMBER}))
        if len(template.parts) > 1 and any(isinstance(p, Placeholder) and p.filter == NUMBER for p in template.parts):
            raise ValueError(f'"|{NUMBER}" makes a number of the whole string; nothing may stand beside it')
        return value if template.constant == value else template
    if isinstance(value, bool | int):
        return value
    if isinstance(value, float) and value - value == 0:
        return value
    raise ValueError("a body holds tables, arrays, strings, finite numbers and booleans")


def _open(tree: Any) -> bool:
    inner = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    return (isinstance(tree, TextTemplate) and tree.constant is None) or any(_open(value) for value in inner)


def _any_key(tree: Any) -> bool:
    inner = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    return _holds_key(tree) or any(_any_key(value) for value in inner)


def _fill(tree: Any, fill: Fill, without_key: bool) -> Any:
    if isinstance(tree, dict):
        kept = {name: value for name, value in tree.items() if _stays(value, fill, without_key)}
        return {name: _fill(value, fill, without_key) for name, value in kept.items()}
    if isinstance(tree, list):
        found: list[Any] = []
        for value in tree:
            if (ids := _ids(value)) is not None:
                found += [_number(ids, one) if ids.filter == NUMBER else one for one in fill.ids]
            elif _stays(value, fill, without_key):
                found.append(_fill(value, fill, without_key))
        return found
    if isinstance(tree, TextTemplate):
        if len(tree.parts) == 1 and isinstance(tree.parts[0], Placeholder):
            found = tree.parts[0].value(fill)
            return _number(tree.parts[0], found) if tree.parts[0].filter == NUMBER else found
        return tree.render(fill)
    return tree


def placeholders(tree: Any, in_list: bool = False) -> Iterator[tuple[Placeholder, bool]]:
    """Every placeholder of a compiled body, and whether it is alone in a string of a list."""
    if isinstance(tree, TextTemplate):
        alone = in_list and len(tree.parts) == 1
        yield from ((part, alone) for part in tree.parts if isinstance(part, Placeholder))
    elif isinstance(tree, dict | list):
        for value in tree.values() if isinstance(tree, dict) else tree:
            yield from placeholders(value, isinstance(tree, list))


def _ids(tree: Any) -> Placeholder | None:
    """`{job_ids}` alone in a string of a list: one entry for each id (R39)."""
    part = tree.parts[0] if isinstance(tree, TextTemplate) and len(tree.parts) == 1 else None
    return part if isinstance(part, Placeholder) and part.shown == JOB_IDS else None


def _number(part: Placeholder, found: Any) -> Any:
    """Raises Refused, bad_parameter: no whole number."""
    if isinstance(found, str) and _DIGITS.fullmatch(found):
        return int(found)
    if isinstance(found, int) and not isinstance(found, bool):
        return found
    return refuse(part, "is no whole number")


def _stays(tree: Any, fill: Fill, without_key: bool) -> bool:
    if not isinstance(tree, TextTemplate):
        return True
    return not (without_key and _holds_key(tree)) and not (tree.optional and tree.is_left_out(fill))


def _holds_key(tree: Any) -> bool:
    return isinstance(tree, TextTemplate) and any(isinstance(p, Placeholder) and p.shown == "key" for p in tree.parts)


_NOTHING: Final = Fill({}, {group: {} for group in GROUPS})
