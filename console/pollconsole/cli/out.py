"""What leaves on standard output and standard error.

Job: one JSON document or people's text on stdout, notes on stderr; no byte that a terminal obeys on either.
Must not know: what is said.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

from pollconsole.safe import safe

MIN_WIDTH = 20
"""Columns of a terminal under which lines are left to it."""
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
    """Print lines for people; on a terminal none of them breaks inside a word."""
    width = _columns(sys.stdout)
    for line in block.split("\n"):
        for part in folded(safe(line, MAX_LINE), width):
            _write(part)


def _columns(stream: Any) -> int:
    """Of the terminal that *stream* is; 0: it is none, or does not say."""
    try:
        return os.get_terminal_size(stream.fileno()).columns if stream.isatty() else 0
    except (OSError, ValueError, AttributeError):
        return 0


def folded(line: str, width: int) -> Iterator[str]:
    """*line* in parts of at most *width* characters (0: whole), broken at spaces, indented by two more; a word that is
    longer stays whole."""
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    while width > MIN_WIDTH and len(line) > width:
        least = len(line) - len(line.lstrip()) + 1
        cut = line.rfind(" ", least, width + 1)
        cut = line.find(" ", least) if cut < 0 else cut
        if cut < 0:
            break
        yield line[:cut].rstrip()
        line = indent + line[cut:].lstrip()
    yield line


def note(block: str) -> None:
    """Say something beside the answer, on stderr."""
    width = _columns(sys.stderr)
    for line in block.split("\n"):
        for part in folded(safe(line, MAX_LINE), width):
            _write(part, err=True)


def prepare_streams() -> None:
    """Let no character fail to be encoded (a terminal in ISO 8859-1, `PYTHONIOENCODING=ascii`)."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
