"""Contract files: the user's folder first, then those that ship inside the package.

Job: names -> texts -> contracts; the only file that reads contract files. Must not know: instances, stores, what a
contract means. A file in `providers/` of the same name wins, and the caller is told so.
"""

from __future__ import annotations

import functools
import re
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

import msgspec

from pollcore.adapters.user_files import TooLarge, read_plain
from pollcore.contract import Contract, parse
from pollcore.contract.document import MAX_BYTES
from pollcore.contract.near import did_you_mean
from pollcore.contract.parse import NAME
from pollcore.facts import ContractError, NotFound, Refused

SHIPPED: Final = "contracts"
MAX_FILES: Final = 1_000
_NAMED: Final = re.compile(r'^name = "([a-z0-9-]{1,64})"$', re.MULTILINE)
"""How a shipped contract says its name."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """One contract file. *source*: its path, or `shipped`. *shadows*: a shipped contract of that name exists too."""

    name: str
    source: str
    shadows: bool = False
    error: str | None = None
    """Why it cannot be used; its line and key are in the text."""


class ContractFiles:
    """The contracts by name. *folder*: `providers` of the home; it need not exist."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._parsed: dict[str, tuple[str, Contract]] = {}

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted({*self._own(), *_shipped()})

    def listing(self) -> list[Found]:
        """Every contract with where it is from and whether it can be used."""
        return [self._found(name) for name in self.names()]

    def _found(self, name: str) -> Found:
        own = name in self._own()
        error = None
        try:
            self.load(name)
        except Refused as problem:
            error = str(problem)
        source = str(self._own()[name]) if own else "shipped"
        return Found(name=name, source=source, shadows=own and name in _shipped(), error=error)

    def load(self, name: str) -> Contract:
        """The contract of that name, parsed again only when its text has changed.

        Raises:
            NotFound: no such file; near names are in the message.
            ContractError: it cannot be read or used.
        """
        text, filename = self.text(name)
        if name in _shipped() and text is _shipped_text(name):
            return _shipped_contract(name)
        known = self._parsed.get(name)
        if known is not None and known[0] == text:
            return known[1]
        contract = _parsed(name, text, filename)
        self._parsed[name] = (text, contract)
        return contract

    def text(self, name: str) -> tuple[str, str]:
        """(text, file name). Raises NotFound, ContractError."""
        if NAME.fullmatch(name):
            path = self._own().get(name)
            if path is not None:
                return read_text(path), path.name
            if name in _shipped():
                return _shipped_text(name), f"{name}.toml"
        known = self.names()
        raise NotFound(f"no contract {name!r}{did_you_mean(name, known)}; `pollconsole provider list` shows all")

    def _own(self) -> dict[str, Path]:
        if self._folder is None:
            return {}
        try:
            files = sorted(self._folder.glob("*.toml"))[:MAX_FILES]
        except OSError:
            return {}
        return {path.stem: path for path in files if NAME.fullmatch(path.stem)}


def _parsed(name: str, text: str, filename: str) -> Contract:
    contract = parse(text, filename)
    if contract.name != name:
        line = contract.lines.get("name")
        raise ContractError(
            f'{filename}{f":{line}" if line else ""}: name: "{contract.name}" is not the file\'s name "{name}"; '
            "make the two the same",
            line=line,
            key="name",
        )
    return contract


def read_text(path: Path) -> str:
    """The text of a contract file, bounded. Raises ContractError: missing, too large, not UTF-8."""
    try:
        data = read_plain(path, MAX_BYTES)
    except TooLarge:
        raise ContractError(f"{path.name}: larger than {MAX_BYTES // 1024} KiB; a contract is a few pages") from None
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise ContractError(f"{path.name}: cannot be read: {why}; make it a file that this user may read") from None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ContractError(f"{path.name}: not UTF-8 at byte {error.start}; save it as UTF-8") from None


def is_shipped(text: str) -> bool:
    """Whether a contract's text is one that ships with this program, whatever it is used under (G5)."""
    named = _NAMED.search(text)
    return named is not None and named[1] in _shipped() and _shipped_text(named[1]) == text


@functools.cache
def _shipped() -> dict[str, Traversable]:
    """The files by name, none of them read: a catalogue costs nothing until one of it is named."""
    folder = resources.files("pollcore") / SHIPPED
    return {entry.name.removesuffix(".toml"): entry for entry in folder.iterdir() if entry.name.endswith(".toml")}


@functools.cache
def _shipped_text(name: str) -> str:
    """Shipped texts never change while a process lives."""
    return _shipped()[name].read_text("utf-8")


@functools.cache
def _shipped_contract(name: str) -> Contract:
    return _parsed(name, _shipped_text(name), f"{name}.toml")
