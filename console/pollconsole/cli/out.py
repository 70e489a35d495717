"""What leaves on standard output and standard error.

Job: one JSON document or people's text on stdout, notes on stderr; no byte that a terminal obeys on either.
Must not know: what is said.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from typing import Any

from pollconsole.safe import safe

MAX_LINE = 4_000
"""Characters of one line of text; JSON is never cut."""


_PRINTED = [0]
"""How often this process printed on standard output."""


class ReaderLeft(Exception):
    """The reader of a pipe went away: nothing is left to be told. No OSError, so that click does not answer for us."""


def printed() -> int:
    """How often something was printed on standard output: more than before a command, and it has no room for errors."""
    return _PRINTED[0]


def _write(line: str, *, err: bool = False) -> None:
    import click  # not before something is said: the console starts without it

    _PRINTED[0] += not err
    try:
        click.echo(line, err=err)
    except BrokenPipeError:
        raise ReaderLeft from None


def document(value: Any) -> None:
    """Print *value* as one JSON document of printable ASCII and line feeds; the strings in it are whole and raw."""
    # ensure_ascii escapes all but the printable ASCII characters, U+007F included
    _write(json.dumps(value, ensure_ascii=True, indent=2, allow_nan=False))


async def long_document(name: str, items: AsyncIterator[Any]) -> None:
    """Print `{NAME: [...]}` as `document` would, item by item: a list of any length takes the memory of one item."""
    held: str | None = None
    async for item in items:
        _write(f'{{\n  "{name}": [' if held is None else f"{held},")
        shown = json.dumps(item, ensure_ascii=True, indent=2, allow_nan=False)
        held = "    " + shown.replace("\n", "\n    ")
    _write(f'{{\n  "{name}": []\n}}' if held is None else f"{held}\n  ]\n}}")


def json_line(value: Any) -> None:
    """Print *value* as JSON on one line."""
    _write(json.dumps(value, ensure_ascii=True, allow_nan=False))


def text(block: str = "") -> None:
    """Print lines for people."""
    for line in block.split("\n"):
        _write(safe(line, MAX_LINE))


def note(block: str) -> None:
    """Say something beside the answer, on stderr."""
    for line in block.split("\n"):
        _write(safe(line, MAX_LINE), err=True)


def prepare_streams() -> None:
    """Let no character fail to be encoded (a terminal in ISO 8859-1, `PYTHONIOENCODING=ascii`)."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
