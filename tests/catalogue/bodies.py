"""Bodies that the documented state expression reads as a wanted value.

Job: an expression of the facts and a value -> a body, found by trying the fields and literals that it names. Must not
know: contracts. Where none is found, extra/ID.json must give the whole answer.
"""

from __future__ import annotations

import copy
import functools
import itertools
from collections.abc import Iterator
from typing import Any, Final

import jmespath

from tests.catalogue.facts import Api, same

MAX_TRIED: Final = 20_000
_ABSENT: Final = object()

Path = tuple[str | int, ...]


@functools.cache
def fields(expression: str) -> dict[Path, tuple[Any, ...]]:
    """Every plain path that the expression reads, with the literals that it is compared with."""
    found: dict[Path, list[Any]] = {}
    parsed: Any = jmespath.compile(expression).parsed
    _walk(parsed, (), found)
    return {path: tuple(literals) for path, literals in found.items()}


def _walk(node: dict[str, Any], at: Path, found: dict[Path, list[Any]]) -> None:
    path = _plain(node)
    if path is not None:
        found.setdefault(at + path, [])
        return
    kind, children = node["type"], node["children"]
    if kind == "pipe" or (kind == "subexpression" and children[1]["type"] not in ("field", "index_expression")):
        head = _plain(children[0])
        if head is not None:
            _walk(children[1], at + head, found)
        return
    if kind in ("comparator", "function_expression"):
        paths = [at + path for path in map(_plain, children) if path is not None]
        for one in paths:
            found.setdefault(one, []).extend(_literals(node))
    for child in children:
        if isinstance(child, dict):
            _walk(child, at, found)


def _plain(node: dict[str, Any]) -> Path | None:
    if node["type"] == "field":
        return (node["value"],)
    if node["type"] == "index":
        return (node["value"],)
    if node["type"] in ("subexpression", "index_expression"):
        parts = [_plain(child) for child in node["children"]]
        return None if None in parts else tuple(itertools.chain.from_iterable(part for part in parts if part))
    return None


def _literals(node: dict[str, Any]) -> Iterator[Any]:
    for child in node["children"]:
        if not isinstance(child, dict):
            continue
        if child["type"] == "literal":
            yield from child["value"] if isinstance(child["value"], list) else (child["value"],)
        elif child["type"] == "multi_select_list":
            yield from _literals(child)


class Conflict(ValueError):
    """A field cannot be a plain value and hold another field."""


def build(values: dict[Path, Any]) -> Any:
    """`{("jobs", 0, "status"): "X"}` -> `{"jobs": [{"status": "X"}]}`. Raises Conflict."""
    root: Any = {}
    for path, value in sorted(values.items(), key=lambda pair: len(pair[0])):
        node = root
        for n, key in enumerate(path):
            last = n == len(path) - 1
            below: Any = value if last else [] if isinstance(path[n + 1], int) else {}
            if isinstance(key, int):
                while len(node) <= key:
                    node.append(copy.deepcopy(below))
                if last:
                    node[key] = value
            elif last or key not in node:
                node[key] = below
            node = node[key]
            if not last and not isinstance(node, dict | list):
                raise Conflict
    return root


def candidates(api: Api, wanted: Any, derived: bool) -> Iterator[dict[Path, Any]]:
    """Fillings of the expression's fields: with those that it compares with a text, then with the fewest others."""
    known = fields(api.raw["state"]["expr"])
    compared = [any(isinstance(value, str) for value in literals) for literals in known.values()]
    choices = [_choices(literals, _ABSENT if derived else wanted) for literals in known.values()]
    total = list(itertools.islice(itertools.product(*choices), MAX_TRIED))
    total.sort(key=lambda row: sum(map(_weight, row, compared)))
    for row in total:
        yield {path: value for path, value in zip(known, row, strict=True) if value is not _ABSENT}


def _weight(value: Any, compared: bool) -> int:
    return 0 if value is _ABSENT else -9 if compared else 1


def _choices(literals: tuple[Any, ...], wanted: Any) -> list[Any]:
    numbers = [value for value in literals if isinstance(value, int | float) and not isinstance(value, bool)]
    texts = [value for value in literals if isinstance(value, str)]
    if numbers:
        return [_ABSENT, *dict.fromkeys((*numbers, *(value + 1 for value in numbers)))]
    if texts:
        return [_ABSENT, *dict.fromkeys((*texts, *_given(wanted)))]
    return [_ABSENT, *_given(wanted), True, False]


def _given(wanted: Any) -> tuple[Any, ...]:
    return () if wanted is _ABSENT else (wanted,)


def body_for(api: Api, wanted: Any, *, derived: bool = False) -> Any | None:
    """The smallest body that the facts read as *wanted*; None: none was found. *derived*: it never stands in one."""
    for filling in candidates(api, wanted, derived):
        try:
            body = build(filling)
            if same(api.derive(body), wanted):
                return body
        except Exception:
            continue
    return None


def mixtures(api: Api, limit: int) -> list[Any]:
    """Bodies with every mixture of documented values and literals, evenly thinned to *limit*."""
    known = fields(api.raw["state"]["expr"])
    values = [state.value for state in api.states if not state.pattern]
    told = _telling(api)
    choices = []
    for path, literals in known.items():
        choices.append(list(dict.fromkeys((*_choices(literals, _ABSENT), *(values if path in told else ())))))
    total = 1
    for one in choices:
        total *= len(one)
    step = max(1, total // limit)
    rows = itertools.islice(itertools.product(*choices), 0, step * limit, step if step % 2 or step == 1 else step + 1)
    found = []
    for row in rows:
        try:
            found.append(build({path: value for path, value in zip(known, row, strict=True) if value is not _ABSENT}))
        except Conflict:
            continue
    return found


def _telling(api: Api) -> set[Path]:
    """The fields in which a documented value itself stands; others are flags and numbers."""
    listed = [state.value for state in api.states if not state.pattern and not state.derived]
    found = [(body_for(api, value), value) for value in listed]
    return {path for body, value in found if body is not None for path in places(body, value)}


def merged(under: Any, over: Any) -> Any:
    """*over* laid over *under*: objects key by key, arrays place by place."""
    if isinstance(under, dict) and isinstance(over, dict):
        return {key: merged(under.get(key), over[key]) if key in over else under[key] for key in {**under, **over}}
    if isinstance(under, list) and isinstance(over, list) and over:
        pairs = itertools.zip_longest(under, over, fillvalue=_ABSENT)
        return [low if high is _ABSENT else high if low is _ABSENT else merged(low, high) for low, high in pairs]
    return copy.deepcopy(over)


def put(body: Any, path: Path, value: Any) -> Any:
    """A copy of *body* with *value* at *path*."""
    return merged(body, build({path: value}))


def without(body: Any, path: Path) -> Any:
    """A copy of *body* without the field at *path*."""
    made = copy.deepcopy(body)
    node = made
    for key in path[:-1]:
        if isinstance(key, int) and not (isinstance(node, list) and key < len(node)):
            return made
        if isinstance(key, str) and not (isinstance(node, dict) and key in node):
            return made
        node = node[key]
    if isinstance(node, dict):
        node.pop(path[-1], None)
    elif isinstance(node, list):
        del node[int(path[-1]) :]
    return made


def has(body: Any, path: Path) -> bool:
    """Whether something other than null is there."""
    node = body
    for key in path:
        if isinstance(key, int):
            if not (isinstance(node, list) and key < len(node)):
                return False
        elif not (isinstance(node, dict) and key in node):
            return False
        node = node[key]
    return node is not None


def places(body: Any, value: Any, at: Path = ()) -> Iterator[Path]:
    """Where in *body* exactly *value* stands."""
    inner = body.items() if isinstance(body, dict) else enumerate(body) if isinstance(body, list) else ()
    for key, below in inner:
        if same(below, value):
            yield (*at, key)
        else:
            yield from places(below, value, (*at, key))
