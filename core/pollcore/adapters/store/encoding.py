"""Text and JSON as they go into columns: whatever a provider says, UTF-8 can hold it.

Job: plain strings, JSON text, one canonical form for digests. Must not know: tables, records.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

_encode: Final = msgspec.json.Encoder().encode


def names(text: str) -> tuple[str, ...]:
    """Column names, written as one text."""
    return tuple(text.split())


def text(value: str | None) -> str | None:
    """A plain str that UTF-8 can hold: a provider's lone surrogate must not keep a whole turn from being written."""
    if value is None or (type(value) is str and value.isascii()):
        return value
    # str.encode: an enumeration's member comes out as its plain value
    return str.encode(value, "utf-8", "backslashreplace").decode()


def dump(value: Any) -> str:
    """JSON text of *value*; a lone surrogate inside becomes `\\udXXX` spelled out."""
    try:
        return _encode(value).decode()
    except UnicodeEncodeError:
        return _encode(_clean(msgspec.to_builtins(value))).decode()


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, dict):
        return {text(k) if isinstance(k, str) else k: _clean(v) for k, v in value.items()}
    return [_clean(v) for v in value] if isinstance(value, list | tuple) else value


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(v) for v in value] if isinstance(value, list) else value


def canonical(value: Any) -> bytes:
    """JSON with sorted keys: equal values give equal bytes."""
    return _encode(_sorted(_clean(msgspec.to_builtins(value))))
