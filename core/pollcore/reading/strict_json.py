"""Bytes -> one JSON value, or why not.

Job: strict and bounded reading: UTF-8 only, no duplicate keys, no NaN or infinity, no lone surrogates, limits on depth,
nodes, strings and digits. Must not know: contracts, headers (a charset or Content-Type changes nothing, H7).
Source: reliability section 9; RFC 8259.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final, NoReturn

MAX_DEPTH: Final = 64
MAX_NODES: Final = 20_000
MAX_STRING: Final = 64 * 1024
MAX_DIGITS: Final = 78
"""Of an integer: one of 256 bits has no more. It is read exactly, and every JSON that we write holds it exactly."""
MAX_NUMBER: Final = 64

# possessive, and an open string runs to the end: linear in the body, whatever it holds
_TOKENS: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[{]|[\]}]|,', re.DOTALL)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_LONG: Final = re.compile(rb"[0-9]{%d}" % (MAX_DIGITS + 1))


class Unreadable(ValueError):
    """Why the bytes are no JSON value within the limits; in our words, never the provider's."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Unreadable("an object names a key twice")
    return found


def _constant(text: str) -> NoReturn:
    raise Unreadable(f"{text.lstrip('-')} is no JSON number")


def _float(text: str) -> float:
    value = float(text) if len(text) <= MAX_NUMBER else math.inf
    if not math.isfinite(value):
        raise Unreadable("a number is too large or too long")
    return value


def _int(text: str) -> int:
    if len(text.lstrip("-")) > MAX_DIGITS:
        raise Unreadable(f"an integer is too large: more than {MAX_DIGITS} digits")
    return int(text)


_quick: Final = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant, parse_float=_float)
_careful: Final = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_constant=_constant, parse_float=_float, parse_int=_int
)


def decode(body: bytes) -> Any:
    """The value.

    Raises:
        Unreadable: empty, not UTF-8, not exactly one JSON document, or beyond a limit.
    """
    if not body or body.isspace():
        raise Unreadable("the body is empty")
    measure(body)
    try:
        text = body.decode("utf-8")
        value = (_careful if _LONG.search(body) else _quick).decode(text)
    except Unreadable:
        raise
    except UnicodeDecodeError:
        raise Unreadable("the body is not UTF-8") from None
    except (ValueError, RecursionError):
        raise Unreadable(_what_instead(body)) from None
    if len(body) > MAX_STRING or _ESCAPED_SURROGATE.search(body):
        _check_strings(value)
    return value


def measure(body: bytes) -> None:
    """Depth and nodes before anything is built: 4 MB of `[{},...]` would cost a hundred. Raises Unreadable."""
    opened = body.count(b"[") + body.count(b"{")
    if opened <= MAX_DEPTH and opened + body.count(b",") <= MAX_NODES:
        # nothing is deeper than what is opened, nor more than what is opened and parted
        return
    depth = nodes = 0
    for token in _TOKENS.finditer(body):
        first = body[token.start()]
        if first in b"[{":
            depth += 1
            nodes += 1
            if depth > MAX_DEPTH:
                raise Unreadable(f"nested deeper than {MAX_DEPTH} levels")
        elif first in b"]}":
            depth -= 1
        elif first == 44:
            nodes += 1
        if nodes > MAX_NODES:
            raise Unreadable(f"more than {MAX_NODES} values")


def _check_strings(value: Any) -> None:
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            left.extend(part.keys())
            left.extend(part.values())
        elif isinstance(part, list):
            left.extend(part)
        elif isinstance(part, str):
            if len(part) > MAX_STRING:
                raise Unreadable(f"a string is longer than {MAX_STRING // 1024} KiB")
            if _SURROGATE.search(part):
                raise Unreadable("a string holds half a character (a lone surrogate)")


def _what_instead(body: bytes) -> str:
    head = body[:64].lstrip().lower()
    if head.startswith((b"<!doctype", b"<html", b"<?xml", b"<")):
        return "the body is a page or XML, not JSON"
    return "the body is not exactly one JSON document (cut off, or something before or after it)"
