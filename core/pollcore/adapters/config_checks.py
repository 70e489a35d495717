"""Checks of single values of `config.toml`.

Job: value -> checked value, or ValueError with words that can be shown. Must not know: files, tables, lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from pollcore.facts import DAY, HOUR, MAX_FAILURES, MAX_REQUESTS, MAX_SPAN, MINUTE, SECOND

MAX_CAP: Final = 100_000
MAX_TEXT: Final = 2_000

_SPAN = re.compile(r"(?:([0-9]{1,9})d)?(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m)?(?:([0-9]{1,9})s)?", re.ASCII)
_UNITS = (DAY, HOUR, MINUTE, SECOND)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)
_BACKEND = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)+", re.ASCII)
_LOOPBACK_NAMES = frozenset({"localhost", "::1"})


def parse_span(text: str) -> int:
    """Read `90s`, `40m`, `2h`, `1d` or a falling row of them (`1h30m`); return ms.

    Raises:
        ValueError: anything else, with a sentence that can be shown.
    """
    match = _SPAN.fullmatch(text)
    if match is None or not text:
        raise ValueError("not a span of time; write 90s, 40m, 2h, 1d or 1h30m")
    return sum(int(digits) * unit for digits, unit in zip(match.groups(), _UNITS, strict=True) if digits)


def is_loopback(url: str) -> bool:
    import ipaddress
    from urllib.parse import urlsplit

    host = urlsplit(url).hostname or ""
    if host in _LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def as_text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("must be a text that is not empty")
    if len(value) > MAX_TEXT or any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 for c in value):
        raise ValueError(f"must be one line of at most {MAX_TEXT} characters without control characters")
    return value


def _name(value: object) -> str:
    text = as_text(value)
    if not _NAME.fullmatch(text):
        raise ValueError("must be 1-64 letters, digits, '.', '_' and '-'")
    return text


def as_backend(value: object) -> str:
    text = as_text(value)
    if not _BACKEND.fullmatch(text):
        raise ValueError("must be the dotted name of a class, like keyring.backends.SecretService.Keyring")
    return text


def as_url(value: object) -> str:
    from urllib.parse import urlsplit

    text = as_text(value)
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ValueError("not a URL") from None
    if parts.scheme not in ("http", "https") or not host or not text.isascii() or " " in text:
        raise ValueError("must be an http:// or https:// URL with a host, in ASCII")
    if "@" in parts.netloc:
        raise ValueError("must not hold a user or password; secrets go into the keyring (pollconsole credential set)")
    if parts.query or parts.fragment:
        raise ValueError("must not have a query or fragment")
    return text


def as_proxy(value: object) -> str:
    text = as_url(value)
    if text.rstrip("/").count("/") > 2:
        raise ValueError("must be scheme, host and port alone")
    return text


def _bool(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _count(most: int) -> Callable[[object], int]:
    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            raise ValueError(f"must be a whole number from 1 to {most}")
        return value

    return check


def _span(value: object) -> int:
    if not isinstance(value, str):
        raise ValueError('must be a span of time like "2h", in quotes')
    ms = parse_span(value)
    if not 0 < ms <= MAX_SPAN:
        raise ValueError("must be longer than 0 and at most 366 days")
    return ms


def _caps(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("must be a table like { concurrency = 4, per_minute = 60 }")
    return value


def _table(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("must be a table of names and URLs")
    return value


Checks = Mapping[str, Callable[[object], Any]]
CAPS: Checks = {"concurrency": _count(MAX_CAP), "per_minute": _count(MAX_CAP)}
INSTANCE: Checks = {
    "contract": _name,
    "base_url": as_url,
    "credential": _name,
    "account": as_text,
    "caps": _caps,
    "urls": _table,
    "allow_http": _bool,
    **CAPS,
}
CEILINGS: Checks = {
    "deadline": _span,
    "max_status_requests": _count(MAX_REQUESTS),
    "max_transport_failures": _count(MAX_FAILURES),
    "max_rate_limited": _count(MAX_FAILURES),
}
POLICY: Checks = {"open_operations": _count(MAX_CAP), "requests_per_hour": _count(MAX_CAP * 10)}
NETWORK: Checks = {"ca_file": as_text, "proxy": as_proxy}
