"""Files that the command line reads, and responses saved with `curl -i`.

Job: bounded reading of a file or stdin; status line, headers and body -> Answer. Must not know: contracts, commands.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Final

from pollconsole import bridge
from pollcore.facts import EARLIEST, Answer, Refused

MAX_RESPONSE_BYTES: Final = 2 << 20
"""Of a saved response; the contract's own limit on bodies is checked by the core."""
MAX_HEADERS: Final = 200
MAX_HEADER_BYTES: Final = 64 << 10
MAX_BLOCKS: Final = 20
"""Responses in one file: `curl -i` saves interim ones, a proxy's and followed redirects before the last."""

_STATUS_LINE = re.compile(rb"HTTP/[0-9](?:\.[0-9])? ([0-9]{3})(?: [^\r\n]*)?\r?\n", re.ASCII)
_END_OF_HEADERS = re.compile(rb"\r?\n\r?\n")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)


def read_bytes(name: str, flag: str, limit: int) -> bytes:
    """The bytes of file *name*, or of stdin for `-`.

    Raises:
        Refused: it cannot be read, is no regular file or pipe, or holds more than *limit* bytes; names *flag*.
    """
    try:
        if name == "-":
            data = sys.stdin.buffer.read(limit + 1)
        else:
            with bridge.open_plain(name, pipes=True) as file:
                data = file.read(limit + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not a path"
        raise Refused(f"{flag} {name}: cannot be read: {why}", code="file") from None
    if len(data) > limit:
        raise Refused(f"{flag} {name}: more than {limit} bytes", code="file")
    return data


def parse_response(data: bytes, name: str, flag: str = "--from-response") -> Answer:
    """Read what `curl -i` prints: a status line, headers, an empty line, the body; LF or CR LF, HTTP/1 to HTTP/3.

    Interim responses (1xx), a proxy's `200 Connection established` and followed redirects before the last response are
    passed over. Header values are read as Latin-1, as httpx does. When it was
    received is not in it: both times are EARLIEST, for the caller to replace.

    Raises:
        Refused: it is none, with the line that says why.
    """
    rest = data.removeprefix(b"\xef\xbb\xbf")
    for _ in range(MAX_BLOCKS):
        first = _STATUS_LINE.match(rest)
        if first is None:
            raise Refused(
                f"{flag} {name}: does not begin with a status line like 'HTTP/1.1 202 Accepted'; "
                f"save the response with headers: curl -i ... > FILE",
                code="response",
            )
        end = _END_OF_HEADERS.search(rest, first.end() - 2)
        if end is None:
            head, body = rest[first.end() :], b""
        else:
            head, body = rest[first.end() : end.start()], rest[end.end() :]
        if not _STATUS_LINE.match(body):
            break
        rest = body
    else:
        raise Refused(f"{flag} {name}: more than {MAX_BLOCKS} responses in one file", code="response")
    headers = _headers(head, name, flag)
    if body.startswith(b"\x1f\x8b"):
        raise Refused(f"{flag} {name}: the body is compressed; save it with curl -i --compressed", code="response")
    status = int(first[1])
    if not 200 <= status <= 599:
        raise Refused(f"{flag} {name}: status {status} is no final answer", code="response")
    return Answer(status=status, headers=headers, body=body, sent_at=EARLIEST, answered_at=EARLIEST)


def _headers(head: bytes, name: str, flag: str) -> tuple[tuple[str, str], ...]:
    if len(head) > MAX_HEADER_BYTES:
        raise Refused(f"{flag} {name}: more than {MAX_HEADER_BYTES} bytes of headers", code="response")
    found: list[tuple[str, str]] = []
    for number, line in enumerate(head.decode("latin-1").split("\n"), 2):
        text = line.rstrip("\r")
        if not text:
            continue
        key, colon, value = text.partition(":")
        if not colon or not _HEADER_NAME.fullmatch(key):
            raise Refused(f"{flag} {name}: line {number} is no header; a header is 'Name: value'", code="response")
        found.append((key.lower(), value.strip(" \t")))
        if len(found) > MAX_HEADERS:
            raise Refused(f"{flag} {name}: more than {MAX_HEADERS} headers", code="response")
    return tuple(found)


def writable(path: str) -> Path:
    """A target that does not exist yet, in a folder that does. Raises Refused: nothing is overwritten."""
    target = target_folder(path)
    if os.path.lexists(target):
        raise Refused(f"{path}: exists already; nothing is overwritten, name another file", code="file")
    return target


def target_folder(path: str) -> Path:
    """A target in a folder that exists; whether it exists itself is not asked. Raises Refused."""
    target = Path(path)
    try:
        os.path.lexists(target)
        if not target.parent.is_dir():
            raise Refused(f"{path}: the folder {target.parent} does not exist", code="file")
    except (OSError, ValueError):
        raise Refused(f"{path}: not a usable path", code="file") from None
    return target
