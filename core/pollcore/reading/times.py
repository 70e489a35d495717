"""Times that providers write, as ms.

Job: HTTP dates in their three forms, ISO times with a zone, Unix times, spans; exact about what they refuse.
Must not know: contracts, what a time is used for. Source: spec T3, T4; RFC 9110 sections 5.6.7 and 10.2.3;
reliability section 10.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from pollcore.contract.functions import iso_instant
from pollcore.contract.parts import Unit
from pollcore.facts import EARLIEST, LATEST, SECOND, Instant, from_datetime

_MONTH: Final = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_MONTHS: Final = {name: number for number, name in enumerate(_MONTH.split("|"), 1)}
_DAYS: Final = "Mon|Tue|Wed|Thu|Fri|Sat|Sun"
_LONG_DAYS: Final = "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday"
_CLOCK: Final = r"(?P<h>[0-9]{2}):(?P<m>[0-9]{2}):(?P<s>[0-9]{2})"
_FORMS: Final = (
    re.compile(rf"(?:{_DAYS}), (?P<day>[0-9]{{2}}) (?P<month>{_MONTH}) (?P<year>[0-9]{{4}}) {_CLOCK} GMT"),
    re.compile(rf"(?:{_LONG_DAYS}), (?P<day>[0-9]{{2}})-(?P<month>{_MONTH})-(?P<year>[0-9]{{2}}) {_CLOCK} GMT"),
    re.compile(rf"(?:{_DAYS}) (?P<month>{_MONTH}) (?P<day>[ 0-9][0-9]) {_CLOCK} (?P<year>[0-9]{{4}})"),
)
_DELAY: Final = re.compile(r"0*([0-9]+)(?:\.([0-9]+))?")
_NUMBER_TEXT: Final = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,9})?")
_LOOKS_NEGATIVE: Final = re.compile(r"-[0-9]+(?:\.[0-9]+)?")

_IN_MS: Final = {
    Unit.MILLISECONDS: 1,
    Unit.SECONDS: SECOND,
    Unit.MINUTES: 60 * SECOND,
    Unit.UNIX_SECONDS: SECOND,
    Unit.UNIX_MILLISECONDS: 1,
}
SPANS: Final = frozenset({Unit.MILLISECONDS, Unit.SECONDS, Unit.MINUTES})
MAX_SPAN_MS: Final = 10**14
MAX_RETRY_AFTER_TEXT: Final = 1_000
"""Characters of a `Retry-After`; more is no number that anybody wrote."""
MAX_RETRY_AFTER: Final = 999_999_999 * SECOND
"""ms, 31 years: a longer `Retry-After` (often a Unix time by mistake) counts as this. It lies beyond every deadline, so
the wait stops and asks (T4) instead of asking the provider early; and it still is a time before 2100."""


_FAR_YEARS: Final = 50
"""RFC 9110 section 5.6.7: a year of two digits is no later than so many years ahead."""


def http_date(text: str, near: Instant) -> Instant:
    """One of the three forms, all taken as GMT; a leap second counts as the second after 59.

    Args:
        near: When it was written, for a year of two digits.

    Raises:
        ValueError: none of the three forms, no such day, or outside 2000-2100.
    """
    return _http_date(text, datetime.fromtimestamp(near / SECOND, UTC).year)


@lru_cache(maxsize=512)
def _http_date(text: str, this_year: int) -> Instant:
    for form in _FORMS:
        found = form.fullmatch(text)
        if found is not None:
            break
    else:
        raise ValueError("not a date in one of the three HTTP forms")
    year, second = int(found["year"]), int(found["s"])
    if len(found["year"]) == 2:
        year += this_year - this_year % 100
        year += -100 if year > this_year + _FAR_YEARS else 0
    if second > 60:
        raise ValueError("no such time of day")
    try:
        moment = datetime(
            year,
            _MONTHS[found["month"]],
            int(found["day"]),
            int(found["h"]),
            int(found["m"]),
            min(second, 59),
            tzinfo=UTC,
        )
    except ValueError:
        raise ValueError("no such day or time") from None
    return Instant(from_datetime(moment) + (SECOND if second == 60 else 0))


def retry_after_span(text: str) -> int | None:
    """ms of a `Retry-After` in seconds, at most MAX_RETRY_AFTER; None: not a number.

    Digits alone are seconds, however many; plain decimals are rounded up to whole seconds.
    """
    found = _DELAY.fullmatch(text) if len(text) <= MAX_RETRY_AFTER_TEXT else None
    if found is None:
        return None
    whole, part = found[1], found[2] or ""
    if len(whole) > len(str(MAX_RETRY_AFTER)):
        return MAX_RETRY_AFTER
    return min((int(whole) + bool(part.strip("0"))) * SECOND, MAX_RETRY_AFTER)


def is_negative(text: str) -> bool:
    """Whether *text* is a plain negative number."""
    return _LOOKS_NEGATIVE.fullmatch(text) is not None


def number(value: Any) -> float | int:
    """A JSON number, or a text that is a plain decimal.

    Raises:
        ValueError: anything else; booleans are no numbers.
    """
    if isinstance(value, str) and _NUMBER_TEXT.fullmatch(value):
        return float(value) if "." in value else int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("not a number")
    if not math.isfinite(value):
        raise ValueError("not finite")
    return value


def _in_ms(value: Any, unit: Unit) -> int:
    """ms, rounded up (a small negative one as well). Raises ValueError: no number, or one that no time can be."""
    try:
        count = number(value)
        ms = math.ceil(count * _IN_MS[unit])
    except OverflowError:
        raise ValueError("absurdly large") from None
    return min(ms, -1) if count < 0 else ms


def span(value: Any, unit: Unit) -> int:
    """ms of a span in *unit*, rounded up.

    Raises:
        ValueError: not a number, negative, or absurdly long.
    """
    ms = _in_ms(value, unit)
    if ms < 0:
        raise ValueError("negative")
    if ms > MAX_SPAN_MS:
        raise ValueError("absurdly long")
    return ms


def instant(value: Any, unit: Unit, near: Instant) -> Instant:
    """A point in time in *unit* (never a span).

    Args:
        near: When it was written.

    Raises:
        ValueError: not of that form, without a time zone, or outside 2000-2100.
    """
    if unit in (Unit.ISO, Unit.HTTP_DATE):
        if not isinstance(value, str) or len(value) > 64:
            raise ValueError("not a date and time")
        if unit is Unit.HTTP_DATE:
            return http_date(value.strip(" \t"), near)
        return iso_instant(value)
    ms = _in_ms(value, unit)
    if not EARLIEST <= ms <= LATEST:
        raise ValueError("time outside 2000-2100")
    return Instant(ms)
