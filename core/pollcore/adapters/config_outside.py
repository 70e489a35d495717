"""Checks of the tables of `config.toml` that look outward: notices, metrics, log, screen.

Job: value -> checked value, or ValueError with words that can be shown; checked values -> settings. Must not know:
files, lines, who uses the settings. Addresses of notices are secrets and are refused here (K1).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from pollcore.adapters.config_checks import Checks, as_text, is_loopback, parse_span
from pollcore.facts import DAY, HOUR, MINUTE, SECOND
from pollcore.notices import NoticeKind, Rules

MAX_TO: Final = 20
MAX_PER_HOUR: Final = 200
MAX_GROUP_MS: Final = HOUR
MIN_LOG_BYTES: Final = 64 * 1024
MAX_LOG_BYTES: Final = 1024 * 1024 * 1024
MAX_COPIES: Final = 20
_HOURS: Final = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]):([0-5][0-9])", re.ASCII)
_ZONE: Final = re.compile(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+){0,2}", re.ASCII)
_SIZE: Final = re.compile(r"([0-9]{1,7}) ?(KiB|MiB|GiB)", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)
_UNITS: Final = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


class LogSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`[log]`: the file that `run` writes. None: none. *copies*: older ones that are kept beside it."""

    file: Path | None = None
    max_size: int = 10 * 1024 * 1024
    copies: int = 3


class ScreenSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`[screen]`: what the console does to the terminal beside drawing."""

    bell: bool = False
    title: bool = True


def parse_listen(text: str) -> tuple[str, int]:
    """Read `127.0.0.1:9464` or `[::1]:9464`; return (host, port). Raises ValueError: not that, or not loopback."""
    host, colon, port = text.rpartition(":")
    if not colon or not (port.isascii() and port.isdecimal()) or not 1 <= int(port) <= 65_535:
        raise ValueError('must be HOST:PORT, like "127.0.0.1:9464"')
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not bare or not is_loopback(f"http://{f'[{bare}]' if ':' in bare else bare}"):
        raise ValueError(f"{host or 'that'} is not this machine alone; listen on 127.0.0.1, [::1] or localhost")
    return bare, int(port)


def as_listen(value: object) -> tuple[str, int]:
    return parse_listen(as_text(value))


def _events(value: object) -> tuple[NoticeKind, ...]:
    known = [kind.value for kind in NoticeKind]
    found = _texts(value, "must be a list of events")
    for text in found:
        if text not in known:
            from difflib import get_close_matches

            near = get_close_matches(text, known, n=1)
            raise ValueError(f"{text!r} is no event; " + (f"did you mean {near[0]}?" if near else ", ".join(known)))
    return tuple(NoticeKind(text) for text in dict.fromkeys(found))


def _names(value: object) -> tuple[str, ...]:
    found = _texts(value, "must be a list of names of addresses")
    for text in found:
        if "://" in text:
            raise ValueError(
                "holds an address; addresses are secrets: 'pollconsole notice set NAME', and its name here"
            )
        if not _NAME.fullmatch(text):
            raise ValueError("a name is 1-64 letters, digits, '.', '_' and '-'")
    return tuple(dict.fromkeys(found))


def _texts(value: object, what: str) -> list[str]:
    if not isinstance(value, list) or len(value) > MAX_TO or not all(isinstance(each, str) for each in value):
        raise ValueError(f"{what}, at most {MAX_TO}")
    return value


def _quiet(value: object) -> tuple[int, int]:
    match = _HOURS.fullmatch(as_text(value))
    if match is None:
        raise ValueError('must be hours of the day like "22:00-07:00"')
    start, end = int(match[1]) * 60 + int(match[2]), int(match[3]) * 60 + int(match[4])
    if start == end:
        raise ValueError("begins when it ends; leave it out for no quiet hours")
    return start, end


def _zone(value: object) -> str:
    from zoneinfo import ZoneInfo

    text = as_text(value)
    try:
        if not _ZONE.fullmatch(text):
            raise ValueError
        ZoneInfo(text)
    except (ValueError, OSError):  # ZoneInfoNotFoundError is a KeyError
        raise ValueError(f"{text!r} is no time zone; write one like Europe/Berlin or UTC") from None
    except KeyError:
        raise ValueError(f"{text!r} is no time zone that this machine knows; write one like Europe/Berlin") from None
    return text


def _between(least: int, most: int, words: str) -> Callable[[object], int]:
    def check(value: object) -> int:
        if not isinstance(value, str):
            raise ValueError('must be a span of time like "30s", in quotes')
        ms = parse_span(value)
        if not least <= ms <= most:
            raise ValueError(f"must be {words}")
        return ms

    return check


def _whole(least: int, most: int) -> Callable[[object], int]:
    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"must be a whole number from {least} to {most}")
        return value

    return check


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _size(value: object) -> int:
    match = _SIZE.fullmatch(as_text(value))
    found = 0 if match is None else int(match[1]) * _UNITS[match[2]]
    if not MIN_LOG_BYTES <= found <= MAX_LOG_BYTES:
        raise ValueError('must be a size like "10 MiB", from 64 KiB to 1 GiB')
    return found


NOTICES: Checks = {
    "events": _events,
    "to": _names,
    "quiet": _quiet,
    "time_zone": _zone,
    "group": _between(0, MAX_GROUP_MS, "at most 1h"),
    "per_hour": _whole(1, MAX_PER_HOUR),
    "deadline_lead": _between(MINUTE, DAY, "from 1m to 1d"),
    "expiring_lead": _between(5 * SECOND, 2 * MINUTE, "from 5s to 2m"),
}
METRICS: Checks = {"listen": as_listen}
LOG: Checks = {"file": as_text, "max_size": _size, "copies": _whole(0, MAX_COPIES)}
SCREEN: Checks = {"bell": _flag, "title": _flag}
_RENAMED: Final = {"group": "group_ms", "deadline_lead": "deadline_lead_ms", "expiring_lead": "expiring_lead_ms"}


def rules(values: Mapping[str, Any]) -> Rules:
    """`[notices]` as the core has it."""
    return Rules(**{_RENAMED.get(key, key): value for key, value in values.items()})
