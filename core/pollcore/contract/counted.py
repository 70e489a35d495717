"""What reading one answer may cost, counted while its expressions run.

Job: a number of steps for all expressions of one answer together; every part that is evaluated, every long text or list
that a function goes through and every match takes of it. Must not know: contracts, what a value decides.
Counted, not timed: the same answer reads the same on every machine and on every day. Source: spec H7, X5.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from jmespath.visitor import Options, TreeInterpreter

from pollcore.contract.functions import ContractFunctions, compiled
from pollcore.contract.patterns import Pattern

MAX_STEPS: Final = 300_000
"""For one answer; measured, one step takes 0.5 to 1.5 microseconds of CPU."""
MAX_SHARED_STEPS: Final = 4 * MAX_STEPS
"""For one answer that several operations read (R39), all of them together."""
COST_OF_STEP: Final = 300
"""Units of `Pattern.cost` that one step stands for."""

_ENTRIES: Final = 16
_CHARACTERS: Final = 64
_WRITTEN: Final = 16
"""Entries of a list, characters of a text, characters written as JSON that one step stands for."""
_NODES: Final = 4
"""Values that one step stands for."""
_CALL: Final = 3
"""What calling a function costs, whatever it does."""
_WRITER: Final = 5
"""What beginning to write JSON costs, be there ever so little to write."""
_EQUALITY: Final = frozenset({"eq", "ne"})
_CONTAINERS: Final = (list, dict)


class TooCostly(ValueError):
    """The steps of this answer are used up."""


class Steps:
    """What is left of one answer's steps; shared by all that is read out of it."""

    __slots__ = ("_interpreter", "left", "most")

    def __init__(self, most: int = MAX_STEPS) -> None:
        self.most = most
        self.left = most
        self._interpreter: _Interpreter | None = None

    def take(self, steps: int) -> None:
        """Raises TooCostly, from then on at every call."""
        self.left -= steps
        if self.left < 0:
            raise TooCostly(
                f"reading this answer takes more than {self.most:,} steps; a plain path, or a condition over fewer "
                "entries, takes less"
            )

    def visit(self, ast: dict[str, Any], scope: dict[str, Any]) -> Any:
        """The value of a JMESPath tree. Raises whatever JMESPath raises, and TooCostly."""
        if self._interpreter is None:
            self._interpreter = _Interpreter(self)
        return self._interpreter.visit(ast, scope)

    def matches(self, pattern: Pattern, text: str) -> bool:
        """Raises TooCostly."""
        self.take(pattern.cost(len(text)) // COST_OF_STEP)
        return pattern.matches(text)

    def weigh(self, value: Any) -> None:
        """Take what going through all of *value* costs, before it is done. Raises TooCostly."""
        left = [value]
        while left:
            part = left.pop()
            if isinstance(part, str):
                self.take(len(part) // _WRITTEN)
            elif isinstance(part, dict):
                self.take(1 + len(part) // _NODES)
                self.take(sum(map(len, part)) // _WRITTEN)
                left.extend(part.values())
            elif isinstance(part, list):
                self.take(1 + len(part) // _NODES)
                left.extend(part)


class _Functions(ContractFunctions):
    """The functions of expressions, each charged for what it goes through, before it does."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    def call_function(self, function_name: str, resolved_args: Iterable[Any]) -> Any:
        steps, resolved_args = self._steps, list(resolved_args)
        steps.take(_CALL)
        for one in resolved_args:
            if isinstance(one, _CONTAINERS):
                steps.take(len(one) // _ENTRIES)
            elif isinstance(one, str):
                steps.take(len(one) // _CHARACTERS)
        before = _BEFORE.get(function_name)
        if before is not None:
            before(steps, *resolved_args)
        found = super().call_function(function_name, resolved_args)
        if isinstance(found, str):
            steps.take(len(found) // _CHARACTERS)
        return found


def _before_match(steps: Steps, text: Any, pattern: Any) -> None:
    if isinstance(text, str) and isinstance(pattern, str):
        steps.take(compiled(pattern).cost(len(text)) // COST_OF_STEP)


def _before_join(steps: Steps, separator: Any, array: Any) -> None:
    if isinstance(separator, str) and isinstance(array, list):
        steps.take(len(separator) * len(array) // _CHARACTERS)
        steps.take(sum(len(one) for one in array if isinstance(one, str)) // _CHARACTERS)


def _before_contains(steps: Steps, subject: Any, wanted: Any) -> None:
    if isinstance(subject, list) and isinstance(wanted, _CONTAINERS):
        steps.weigh(subject)


def _before_sort(steps: Steps, array: Any, *_: Any) -> None:
    """Each entry is compared with some others; what a key costs is counted where it is visited."""
    if isinstance(array, list):
        steps.take(len(array))
        steps.take(sum(len(one) for one in array if isinstance(one, str)) // _CHARACTERS)


def _before_written(steps: Steps, value: Any) -> None:
    if not isinstance(value, str):
        steps.take(_WRITER)
        steps.weigh(value)


_BEFORE: Final[dict[str, Any]] = {
    "match": _before_match,
    "join": _before_join,
    "contains": _before_contains,
    "sort": _before_sort,
    "sort_by": _before_sort,
    "to_string": _before_written,
}


class _Interpreter(TreeInterpreter):
    """JMESPath's interpreter, every visit counted."""

    def __init__(self, steps: Steps) -> None:
        super().__init__(Options(custom_functions=_Functions(steps)))
        self._steps = steps
        self._methods: dict[str, Any] = {}

    def visit(self, node: Any, *args: Any, **kwargs: Any) -> Any:
        steps = self._steps
        steps.left -= 1
        if steps.left < 0:
            steps.take(0)
        kind = node["type"]
        method = self._methods.get(kind)
        if method is None:
            method = self._methods[kind] = getattr(self, f"visit_{kind}")
        return method(node, *args, **kwargs)

    def visit_comparator(self, node: Any, value: Any) -> Any:
        """Two long lists are compared entry by entry, so they are weighed first."""
        how = node["value"]
        if how not in _EQUALITY:
            return super().visit_comparator(node, value)
        first, second = node["children"]
        left, right = self.visit(first, value), self.visit(second, value)
        if isinstance(left, _CONTAINERS) and isinstance(right, _CONTAINERS):
            self._steps.weigh(min(left, right, key=len))
        return self.COMPARATOR_FUNC[how](left, right)

    def visit_flatten(self, node: Any, value: Any) -> Any:
        found = super().visit_flatten(node, value)
        self._steps.take(len(found or ()) // _ENTRIES)
        return found

    def visit_slice(self, node: Any, value: Any) -> Any:
        found = super().visit_slice(node, value)
        self._steps.take(len(found or ()) // _ENTRIES)
        return found
