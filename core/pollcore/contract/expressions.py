"""JMESPath over `{http, body, item, submitted, seen, steps, step}`, compiled once.

Job: a text -> something that reads a value out of a scope; plain dotted paths skip the interpreter.
Must not know: what the value decides. Evaluation may raise (JMESPath does on ordinary answers): the caller turns that
into `rule_failed`, never into "no match".
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import jmespath
from jmespath.exceptions import JMESPathError

from pollcore.contract.counted import Steps
from pollcore.contract.functions import FUNCTIONS, compiled
from pollcore.contract.near import did_you_mean

ROOTS: Final = frozenset({"http", "body", "item", "submitted", "seen", "steps", "step"})
MAX_EXPRESSION: Final = 1_000
MAX_NODES: Final = 160
MAX_NESTING: Final = 40
MAX_WIDTH: Final = 256
"""Product of the sizes of all multi-select lists: bounds how far one expression can multiply its input."""

_WALKS: Final = frozenset({"subexpression", "index_expression", "projection", "filter_projection", "value_projection"})

Keys = tuple[str | int, ...]


class Expression:
    """One compiled expression. *roots*: which parts of the scope it reads; *prefixes*: which body paths at most."""

    __slots__ = ("_ast", "keys", "prefixes", "roots", "source")

    def __init__(self, source: str, ast: dict[str, Any], keys: Keys | None) -> None:
        self.source = source
        self._ast = ast
        self.keys = keys
        paths = list(_root_paths(ast))
        self.roots = frozenset(path[0] for path in paths)
        self.prefixes: tuple[Keys, ...] = tuple(
            sorted({path for path in paths if path[0] in ("body", "http")}, key=str)
        )

    def read(self, scope: dict[str, Any], steps: Steps | None = None) -> Any:
        """The value, or None where the path leads nowhere. Raises whatever JMESPath raises, and TooCostly.

        *steps*: what is left for this answer; None: this expression is all that is read out of it.
        """
        if self.keys is None:
            return (Steps() if steps is None else steps).visit(self._ast, scope)
        value: Any = scope
        for key in self.keys:
            if isinstance(key, str):
                if type(value) is not dict:
                    return None
                value = value.get(key)
            elif type(value) is list and key < len(value):
                value = value[key]
            else:
                return None
        return value

    def holds(self, scope: dict[str, Any]) -> bool:
        """Whether the value is true as JMESPath sees it: not null, false, "", [] or {} (0 is true)."""
        value = self.read(scope)
        return not (value is None or value is False or value == "" or value == [] or value == {})

    def __repr__(self) -> str:
        return f"Expression({self.source!r})"


@lru_cache(maxsize=1_024)
def compile_expression(text: str) -> Expression:
    """Compile and measure.

    Raises:
        ValueError: not JMESPath, too long, too deep, not over the known roots, a function that JMESPath does not have,
            or too few or too many arguments for it; in words for the contract's author.
    """
    if len(text) > MAX_EXPRESSION:
        raise ValueError(f"expression longer than {MAX_EXPRESSION} characters")
    try:
        ast: Any = jmespath.compile(text).parsed
    except JMESPathError as error:
        raise ValueError(f"no JMESPath expression: {_in_words(str(error))}") from None
    except RecursionError:
        raise ValueError("expression nested too deeply") from None
    _measure(ast)
    _check_calls(ast)
    expression = Expression(text, ast, _plain_keys(ast))
    unknown = sorted(str(root) for root in expression.roots - ROOTS)
    if unknown:
        word = unknown[0]
        raise ValueError(f'"{word}" is none of {", ".join(sorted(ROOTS))}{_way_out(word, text)}')
    return expression


def _in_words(said: str) -> str:
    """JMESPath's first line, without what would only lead on to its picture of the place."""
    first = " ".join(said.splitlines()[0].split())
    first = first.removeprefix("Bad jmespath expression: ").removeprefix("Invalid jmespath expression: ")
    first = first.removesuffix("for expression:").rstrip(" ,:")
    return f'{first}; a name with "-" stands in double quotes, as body."job-id"' if "token '-'" in first else first


def _way_out(word: str, text: str) -> str:
    near = did_you_mean(word, ROOTS) if len(word) > 2 else ""
    if "did you mean" in near:
        return near
    if f'"{word}"' in text and f'."{word}"' not in text:
        return f"; double quotes make a field's name, a text takes single quotes: '{word}'"
    return f"; write body.{word} for a field of the answer's body"


def _measure(ast: dict[str, Any]) -> None:
    nodes = 0
    width = 1
    level = [ast]
    for _ in range(MAX_NESTING):
        nodes += len(level)
        for node in level:
            if node["type"] in ("multi_select_list", "multi_select_dict"):
                width *= max(1, len(node["children"]))
        level = [child for node in level for child in node["children"] if isinstance(child, dict)]
        if nodes > MAX_NODES:
            raise ValueError(f"expression with more than {MAX_NODES} parts; split it into rules")
    if level:
        raise ValueError(f"expression nested deeper than {MAX_NESTING} levels")
    if width > MAX_WIDTH:
        raise ValueError("expression multiplies its input too often")


def _check_calls(ast: dict[str, Any]) -> None:
    """What can never be evaluated is told when it is written, not when an answer comes."""
    level = [ast]
    while level:
        node = level.pop()
        level += [child for child in node["children"] if isinstance(child, dict)]
        if node["type"] in _WALKS and node["children"][0]["type"] == "not_expression":
            raise ValueError('"!" takes only the one word after it, so this is always null: write !(body.error)')
        if node["type"] != "function_expression":
            continue
        name, given = node["value"], len(node["children"])
        known = FUNCTIONS.get(name)
        if known is None:
            raise ValueError(f'"{name}" is no JMESPath function{did_you_mean(name, FUNCTIONS)}')
        wanted = known["signature"]
        more = bool(wanted) and bool(wanted[-1].get("variadic"))
        if given < len(wanted) or (given > len(wanted) and not more):
            least = "at least " if more else ""
            raise ValueError(f"{name}() takes {least}{len(wanted)} arguments, not {given}")
        if name == "match":
            _check_pattern(node["children"][1])


def _check_pattern(node: dict[str, Any]) -> None:
    """A pattern is the contract's own text, never an answer's: checked once, here."""
    if node["type"] != "literal" or not isinstance(node["value"], str):
        raise ValueError("match() takes its pattern as a text of the contract: match(body.note, 'done [0-9]+')")
    compiled(node["value"])


def _plain_keys(node: dict[str, Any]) -> Keys | None:
    """The keys of an expression that only walks down (`body.items[0].status`), else None."""
    if node["type"] in ("field", "index"):
        return (node["value"],) if node["type"] == "field" or node["value"] >= 0 else None
    if node["type"] not in ("subexpression", "index_expression"):
        return None
    keys: Keys = ()
    for child in node["children"]:
        more = _plain_keys(child)
        if more is None:
            return None
        keys += more
    return keys


def _root_paths(node: dict[str, Any]) -> Iterator[Keys]:
    """The key paths, from the root of the scope, that the expression can read."""
    kind, children = node["type"], node["children"]
    if kind == "field":
        yield (node["value"],)
    elif kind == "subexpression":
        head = list(_root_paths(children[0]))
        rest = _plain_tail(children[1:])
        for path in head:
            yield path + rest
    elif kind in ("index_expression", "pipe", "projection", "value_projection", "filter_projection", "flatten"):
        # what follows is relative to the first child's value
        yield from _root_paths(children[0])
    elif kind in ("current", "identity"):
        yield ("@",)
    elif kind not in ("expref", "literal", "index", "slice"):
        for child in children:
            yield from _root_paths(child)


def _plain_tail(nodes: list[dict[str, Any]]) -> Keys:
    tail: Keys = ()
    for node in nodes:
        while node["type"] in ("index_expression", "projection", "flatten", "filter_projection", "value_projection"):
            inner = node["children"][0]
            if inner["type"] == "field":
                return (*tail, inner["value"])
            node = inner
        if node["type"] != "field":
            return tail
        tail = (*tail, node["value"])
    return tail
