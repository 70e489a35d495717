"""One TOML text and the errors that point into it.

Job: text -> tables whose every key is either read or refused, with `file:line: key: what, and the way out`.
Must not know: what a contract means.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from pollcore.contract.lines import Path, key_lines
from pollcore.facts import ContractError

MAX_BYTES: Final = 256 * 1024
MAX_LINE: Final = 4_096
MAX_DEPTH: Final = 12
MAX_VALUES: Final = 5_000


class Document:
    """The parsed text with the lines of its keys."""

    def __init__(self, text: str, filename: str) -> None:
        """Raises ContractError: too large, not TOML, too deep, too many values."""
        self.filename = filename
        self.text = text
        if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
            raise ContractError(f"{filename}: larger than {MAX_BYTES // 1024} KiB; a contract is a few pages")
        for number, line in enumerate(text.split("\n"), 1):
            if len(line) > MAX_LINE:
                raise ContractError(f"{filename}:{number}: line longer than {MAX_LINE} characters", line=number)
        try:
            self.root: dict[str, Any] = tomllib.loads(text)
        except RecursionError:
            raise ContractError(f"{filename}: nested deeper than {MAX_DEPTH} levels") from None
        except ValueError as error:
            at = _line_of(str(error))
            where = f":{at}" if at else ""
            raise ContractError(f"{filename}{where}: not TOML: {error}", line=at) from None
        self._measure()
        self.lines = key_lines(text.replace("\r\n", "\n"))

    def _measure(self) -> None:
        left = MAX_VALUES
        level: list[Any] = [self.root]
        for _ in range(MAX_DEPTH):
            inner: list[Any] = []
            for value in level:
                inner.extend(value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
            left -= len(inner)
            if left < 0:
                raise ContractError(f"{self.filename}: more than {MAX_VALUES} values")
            level = inner
        if any(isinstance(value, dict | list) for value in level):
            raise ContractError(f"{self.filename}: nested deeper than {MAX_DEPTH} levels")

    def line(self, path: Path) -> int | None:
        """The line of the key, or of the nearest key around it."""
        while path:
            if path in self.lines:
                return self.lines[path]
            path = path[:-1]
        return None

    def fail(self, path: Path, message: str) -> NoReturn:
        """Raise ContractError `acme.toml:12: states.waiting: ...`."""
        line, key = self.line(path), dotted(path)
        where = f":{line}" if line else ""
        what = f"{key}: " if key else ""
        raise ContractError(f"{self.filename}{where}: {what}{message}", line=line, key=key or None)


def dotted(path: Path) -> str:
    """`rules[2].when`; keys that are no bare words stay quoted."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part + 1}]"
        else:
            word = part if part.replace("-", "").replace("_", "").isalnum() else f'"{part}"'
            text += f".{word}" if text else word
    return text


def _line_of(message: str) -> int | None:
    digits = message.rpartition("(at line ")[2].partition(",")[0]
    return int(digits) if digits.isdigit() and len(digits) < 9 else None


def kind_of(value: object) -> str:
    """The TOML name of a value's type, for messages."""
    if isinstance(value, bool):
        return "a boolean"
    names: Mapping[type, str] = {int: "an integer", float: "a float", str: "a string", list: "an array"}
    return names.get(type(value), "a table" if isinstance(value, dict) else "a date or time")
