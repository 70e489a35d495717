"""One table of a contract, read key by key.

Job: typed, bounded values. A key that the table does not have is an error with a near match, told before any other
complaint of that table; at the end every key that nobody read is one as well (nothing is ignored).
Must not know: which tables a contract has.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Any, Final, NoReturn, TypeVar

from pollcore.contract.document import Document, kind_of
from pollcore.contract.keys import keys_of
from pollcore.contract.lines import Path
from pollcore.contract.near import did_you_mean
from pollcore.facts import MAX_SPAN, SECOND

T = TypeVar("T")

MAX_TEXT: Final = 2_000
MAX_ITEMS: Final = 500

_UNITS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SPAN: Final = re.compile(r"(?:[0-9]{1,9}(?:ms|s|m|h|d)){1,5}")
_PART: Final = re.compile(r"([0-9]+)(ms|s|m|h|d)")


class Table:
    """A TOML table at *path*; remembers which keys were asked for."""

    def __init__(self, document: Document, path: Path, values: dict[str, Any]) -> None:
        """Raises ContractError: a key that no such table has."""
        self.document = document
        self.path = path
        self.values = values
        self.asked: set[str] = set()
        self.refuse_unknown()

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def fail(self, key: str | None, message: str) -> NoReturn:
        self.document.fail((*self.path, key) if key else self.path, message)

    def refuse_unknown(self) -> None:
        """Raises ContractError for the first key that a table at this place does not have."""
        known = keys_of(self.path)
        if known is None:
            return
        for key in self.values:
            if key not in known:
                self.fail(key, f"unknown key{did_you_mean(key, known)}")

    def finish(self) -> None:
        """Raises ContractError for the first key that nothing here reads."""
        for key in self.values:
            if key not in self.asked:
                self.fail(key, f"unknown key{did_you_mean(key, self.asked)}")

    def raw(self, key: str) -> Any:
        self.asked.add(key)
        return self.values.get(key)

    def _typed(self, key: str, wanted: type | tuple[type, ...], name: str, required: bool) -> Any:
        value = self.raw(key)
        if value is None:
            if required:
                self.fail(key, f"missing; give {name}")
            return None
        if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
            self.fail(key, f"must be {name}, not {kind_of(value)}")
        return value

    def text(self, key: str, *, max_length: int = MAX_TEXT) -> str | None:
        """A string that is not empty, or None when the key is absent."""
        value: str | None = self._typed(key, str, "a string", False)
        if value is not None and not value.strip():
            self.fail(key, "is empty; leave the key out instead")
        if value is not None and len(value) > max_length:
            self.fail(key, f"longer than {max_length} characters")
        return value

    def required_text(self, key: str, what: str, *, max_length: int = MAX_TEXT) -> str:
        value = self.text(key, max_length=max_length)
        if value is None:
            self.fail(key, f"missing; give {what}")
        return value

    def choice(self, key: str, allowed: Iterable[str], default: str) -> str:
        value = self.text(key)
        options = tuple(allowed)
        if value is not None and value not in options:
            self.fail(key, f'"{value}" is not one of {", ".join(options)}{_hint(value, options)}')
        return default if value is None else value

    def flag(self, key: str, default: bool = False) -> bool:
        value: bool | None = self._typed(key, bool, "true or false", False)
        return default if value is None else value

    def whole(self, key: str, *, least: int, most: int) -> int | None:
        value: int | None = self._typed(key, int, "a whole number", False)
        if value is not None and not least <= value <= most:
            self.fail(key, f"{value} is outside {least} to {most}")
        return value

    def required_whole(self, key: str, *, least: int, most: int) -> int:
        value = self.whole(key, least=least, most=most)
        if value is None:
            self.fail(key, f"missing; give a whole number from {least} to {most}")
        return value

    def number(self, key: str, *, least: float, most: float) -> float | None:
        value = self._typed(key, (int, float), "a number", False)
        if value is not None and not (math.isfinite(value) and least <= value <= most):
            self.fail(key, f"{value} is outside {least:g} to {most:g}")
        return None if value is None else float(value)

    def span(self, key: str, *, least: int = 1, most: int = MAX_SPAN) -> int | None:
        """ms of `"1h30m"`, `"500ms"`, or a number of seconds."""
        value = self._typed(key, (str, int, float), 'a span like "30s" or "1h30m", or a number of seconds', False)
        if value is None:
            return None
        if isinstance(value, str):
            if not _SPAN.fullmatch(value):
                self.fail(key, f'"{value}" is no span; write it like "500ms", "30s", "1h30m", "7d"')
            ms = sum(int(count) * _UNITS[unit] for count, unit in _PART.findall(value))
        elif not math.isfinite(value):
            self.fail(key, f"{value} is no span")
        else:
            ms = round(min(value, 1e12) * SECOND)
        if not least <= ms <= most:
            written = value if isinstance(value, str) else f"{value} s"
            self.fail(key, f"{written} is outside {span_text(least)} to {span_text(most)}")
        return ms

    def texts(self, key: str) -> tuple[str, ...]:
        values = self.array(key)
        for value in values:
            if not isinstance(value, str) or not value or len(value) > MAX_TEXT:
                self.fail(key, f"must list strings that are not empty, not {kind_of(value)}")
        return tuple(values)

    def array(self, key: str) -> list[Any]:
        value: list[Any] | None = self._typed(key, list, "an array", False)
        if value is not None and len(value) > MAX_ITEMS:
            self.fail(key, f"more than {MAX_ITEMS} entries")
        return value or []

    def pairs(self, key: str) -> dict[str, Any]:
        value: dict[str, Any] | None = self._typed(key, dict, "a table", False)
        return value or {}

    def table(self, key: str) -> Table | None:
        value = self._typed(key, dict, "a table", False)
        return None if value is None else Table(self.document, (*self.path, key), value)

    def tables(self, key: str) -> list[Table]:
        found = []
        for n, value in enumerate(self.array(key)):
            if not isinstance(value, dict):
                self.fail(key, f"must be an array of tables, not of {kind_of(value)}")
            found.append(Table(self.document, (*self.path, key, n), value))
        return found

    def made(self, key: str, make: Callable[[str], T]) -> T | None:
        """A string turned into something by *make*; its ValueError becomes an error at this key."""
        value = self.text(key)
        if value is None:
            return None
        try:
            return make(value)
        except ValueError as error:
            self.fail(key, str(error))


def _hint(word: str, known: tuple[str, ...]) -> str:
    hint = did_you_mean(word, known)
    return hint if "did you mean" in hint else ""


def span_text(ms: int) -> str:
    """`90 s`, `40 min`, `24 h`, `7 d`: the largest unit that fits evenly, for messages."""
    for size, unit in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")):
        if ms >= size and ms % size == 0:
            return f"{ms // size} {unit}"
    return f"{ms} ms" if ms < SECOND else f"{ms / SECOND:g} s"
