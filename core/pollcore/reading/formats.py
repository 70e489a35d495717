"""Bytes of an answer -> the value of `body`, by the format that the contract names.

Job: JSON, JSON lines, XML, form fields, plain text: one tree for expressions, each with hard limits. Must not know:
states, statuses, headers (a Content-Type changes nothing, H7). Source: contract need R24.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import parse_qsl

from pollcore.contract.parts import BodyFormat
from pollcore.reading import strict_json, strict_xml
from pollcore.reading.strict_json import MAX_STRING, Unreadable

MAX_LINES: Final = 5_000
"""Documents of an NDJSON answer."""
MAX_FIELDS: Final = 1_000
"""Fields of a form answer."""


def decode(body: bytes, form: BodyFormat) -> Any:
    """The value of `body`.

    Raises:
        Unreadable: not of that format, or beyond a limit; in our words, never the provider's.
    """
    match form.name:
        case "json":
            return strict_json.decode(body)
        case "xml":
            return strict_xml.decode(body, form.lists)
        case "ndjson":
            return _lines(body)
        case "form":
            return _form(body)
        case "text":
            return _text(body)
    raise AssertionError(f"no format is called {form.name}")


def _lines(body: bytes) -> list[Any]:
    """A list of the documents, one a line; blank lines do not count."""
    lines = [line for line in body.split(b"\n", MAX_LINES + 1) if line and not line.isspace()]
    if not lines:
        raise Unreadable("the body is empty")
    if len(lines) > MAX_LINES:
        raise Unreadable(f"more than {MAX_LINES} lines")
    strict_json.measure(body)
    found = []
    for number, line in enumerate(lines, 1):
        try:
            found.append(strict_json.decode(line))
        except Unreadable as error:
            raise Unreadable(f"line {number}: {error}") from None
    return found


def _form(body: bytes) -> dict[str, Any]:
    """Fields by name, all as texts; a name that comes several times is a list."""
    text = _text(body)
    try:
        pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=True, errors="strict", max_num_fields=MAX_FIELDS)
    except UnicodeDecodeError:
        raise Unreadable("a form field is not UTF-8") from None
    except ValueError:
        many = text.count("&") >= MAX_FIELDS
        raise Unreadable(f"more than {MAX_FIELDS} fields" if many else "the body is no form (a=b&c=d)") from None
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name not in found:
            found[name] = value
        elif isinstance(found[name], list):
            found[name].append(value)
        else:
            found[name] = [found[name], value]
    return found


def _text(body: bytes) -> str:
    """The text without white space around it."""
    if len(body) > MAX_STRING:
        raise Unreadable(f"a text is longer than {MAX_STRING // 1024} KiB")
    try:
        text = body.decode("utf-8").strip()
    except UnicodeDecodeError:
        raise Unreadable("the body is not UTF-8") from None
    if not text:
        raise Unreadable("the body is empty")
    return text
