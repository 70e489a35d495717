"""What a Python caller gives of a submission, checked before the core sees it.

Job: datetimes, spans and texts -> the fields of a SubmitSpec, with errors that name the argument. Must not know: the
store, contracts, limits of providers (the core refuses those).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final, TypedDict

from pollcore.facts import MAX_SPAN, Instant, Refused, from_datetime

MAX_TEXT: Final = 1_024
"""Characters of an id, a label, a name; as on the command line."""
MAX_URL: Final = 8_192
MAX_PARAMS: Final = 100


class Terms(TypedDict, total=False):
    """What may be given beside provider and job; meanings and units: `Client.submit`."""

    operation_id: str | None
    params: Mapping[str, Any] | None
    status_url: str | None
    deadline: timedelta | datetime | float | None
    max_requests: int | None
    max_transport_failures: int | None
    max_rate_limited: int | None
    useful_until: datetime | None
    started_at: datetime | None
    account: str | None
    label: str | None
    caller: str | None


def refuse(name: str, why: str) -> Refused:
    """The refusal of one argument."""
    return Refused(f"{name}: {why}", code="usage")


def text(name: str, value: str | None, limit: int = MAX_TEXT) -> str | None:
    """One line of text, or None. Raises Refused."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise refuse(name, f"must be a text, not {type(value).__name__}")
    if not value.strip():
        raise refuse(name, "must not be empty; leave it out instead")
    if len(value) > limit:
        raise refuse(name, f"is {len(value)} characters long; at most {limit}")
    for character in value:
        if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp"):
            raise refuse(name, f"holds the control character U+{ord(character):04X}; give one line of plain text")
    return value


def count(name: str, value: int | None) -> int | None:
    """A whole number from 1, or None; how many are allowed is the core's to say. Raises Refused."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise refuse(name, f"must be a whole number, not {type(value).__name__}")
    if value < 1:
        raise refuse(name, f"{value} is below 1")
    return value


def instant(name: str, value: datetime | None) -> Instant | None:
    """An aware datetime, or None. Raises Refused."""
    if value is None:
        return None
    if not isinstance(value, datetime):
        raise refuse(name, f"must be a datetime with a time zone, not {type(value).__name__}")
    try:
        return from_datetime(value)
    except ValueError as error:
        raise refuse(name, f"{error}; give an aware datetime, such as datetime.now(UTC) + timedelta(hours=1)") from None


def span_ms(name: str, value: timedelta | float | None, *, zero: bool = False) -> int | None:
    """A timedelta or a number of seconds, or None, in ms. Raises Refused."""
    if value is None:
        return None
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
    elif isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    else:
        raise refuse(name, f"must be a timedelta or seconds, not {type(value).__name__}")
    if not seconds <= MAX_SPAN / 1000:  # not a number is refused, too
        raise refuse(name, f"is longer than {MAX_SPAN // 86_400_000} days")
    if seconds < 0 or (seconds == 0 and not zero):
        raise refuse(name, "must be longer than 0")
    return max(0 if zero else 1, round(seconds * 1000))


def params(value: Mapping[str, Any] | None) -> dict[str, Any]:
    """Parameters by name; their values are the contract's to check. Raises Refused."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise refuse("params", "must be a mapping of names to values")
    if len(value) > MAX_PARAMS:
        raise refuse("params", f"holds {len(value)} parameters; at most {MAX_PARAMS}")
    for key, item in value.items():
        if isinstance(item, str) and item:
            text(f"params[{key!r}]", item, MAX_URL)
        elif item is not None and not isinstance(item, str | int | float | bool):
            raise refuse(f"params[{key!r}]", "must be a text, a number, True, False or None")
    return dict(value)
