"""Types of arguments: what a flag accepts, said in words when it does not.

Job: texts, counts, spans, times, key=value. Must not know: commands, limits on budgets (the core's).
The checks are plain functions, used for flags and for the fields of `submit --file` alike.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any, Final

import click

from pollconsole.cli.base import check_path
from pollcore.facts import Instant, parse_instant

MAX_TEXT: Final = 1_024
"""Characters of a name, label, job id."""
MAX_URL: Final = 8_192
MAX_BECAUSE: Final = 2_000
MAX_PARAMS: Final = 100
MAX_DIGITS: Final = 12
_NEGATIVE: Final = re.compile(r"[-\u2212][0-9]")
_DATE: Final = re.compile(r"[0-9]+-")


def check_text(value: str, limit: int = MAX_TEXT) -> str:
    """One line of text: not empty, no control character, no broken UTF-8. Raises ValueError."""
    if not value.strip():
        raise ValueError("must not be empty")
    if len(value) > limit:
        raise ValueError(f"is {len(value)} characters long; at most {limit}")
    for character in value:
        category = unicodedata.category(character)
        if category == "Cs":
            raise ValueError("is not valid UTF-8")
        if category in ("Cc", "Zl", "Zp"):
            raise ValueError(f"holds the control character U+{ord(character):04X}; write one line of plain text")
    return value


def check_count(value: str) -> int:
    """A whole number written in ASCII digits, at least 1. Raises ValueError."""
    digits = value.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"{value!r} is not a whole number")
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits is absurd")
    number = int(value)
    if number < 1:
        raise ValueError(f"{number} is below 1")
    return number


def check_span(value: str, *, zero: bool = False) -> int:
    """`90s`, `40m`, `2h`, `1d`, `1h30m` in ms. Raises ValueError."""
    from pollconsole import bridge

    if zero and value == "0":
        return 0
    if _NEGATIVE.match(value):
        raise ValueError("is negative; a span is like 40m, without a sign")
    ms = bridge.parse_span(value)
    if ms == 0 and not zero:
        raise ValueError("must be longer than 0")
    return ms


def check_instant(value: str) -> Instant:
    """An ISO 8601 time with a zone. Raises ValueError that says what is missing."""
    try:
        return parse_instant(value)
    except (ValueError, OverflowError) as error:
        said = str(error)
        why = said if any(ours in said for ours in ("zone", "time of day", "2100")) else "not a time"
        raise ValueError(f"{why}; write it like 2026-03-02T10:40:00Z or 2026-03-02T12:40:00+02:00") from None


def check_when(value: str) -> tuple[int | None, Instant | None]:
    """A span or an instant: (ms, None) or (None, instant). Raises ValueError."""
    if _NEGATIVE.match(value):
        raise ValueError("is negative; write a span without a sign, like 40m, or an ISO time")
    if value[:1].isdigit() and "-" not in value:
        return check_span(value), None
    if not _DATE.match(value):
        raise ValueError("neither a span like 40m nor a time like 2026-03-02T10:40:00Z")
    try:
        return None, check_instant(value)
    except ValueError as error:
        raise ValueError(f"{error}, or a span like 40m") from None


def check_number(text: str, what: str) -> float:
    """A decimal number; *what* it is stands in the refusal. Raises ValueError."""
    if not text.isascii() or len(text) > 20:
        raise ValueError(f"{what} is not a number; write one like 2.5")
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{what} {text!r} is not a number; write one like 2.5") from None


class _Checked(click.ParamType):  # type: ignore[type-arg]
    """A click type around one check."""

    def _check(self, value: str) -> Any:
        raise NotImplementedError

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self._check(value)
        except ValueError as error:
            return self.fail(str(error), param, ctx)


class Text(_Checked):
    """One line of text of at most *limit* characters."""

    name = "text"

    def __init__(self, limit: int = MAX_TEXT) -> None:
        self.limit = limit

    def _check(self, value: str) -> str:
        return check_text(value, self.limit)


class Count(_Checked):
    """A whole number from 1."""

    name = "n"

    def _check(self, value: str) -> int:
        return check_count(value)


class Span(_Checked):
    """A span of time in ms."""

    name = "span"

    def __init__(self, *, zero: bool = False) -> None:
        self.zero = zero

    def _check(self, value: str) -> int:
        return check_span(value, zero=self.zero)


class Time(_Checked):
    """An instant with a zone."""

    name = "iso-time"

    def _check(self, value: str) -> Instant:
        return check_instant(value)


class When(_Checked):
    """A span or an instant, kept as a pair; see `check_when`."""

    name = "span-or-time"

    def _check(self, value: str) -> tuple[int | None, Instant | None]:
        return check_when(value)


class Listen(_Checked):
    """A loopback address with its port, as (host, port)."""

    name = "host:port"

    def _check(self, value: str) -> tuple[str, int]:
        from pollconsole import bridge

        return bridge.parse_listen(value)


class JobTime(_Checked):
    """How long jobs run: (shape, low ms, high ms, spread)."""

    name = "job-time"

    def _check(self, value: str) -> tuple[str, int, int, float]:
        if ".." in value:
            low, _, high = value.partition("..")
            return "uniform", check_span(low), check_span(high), 1.0
        if "/" in value:
            median, _, spread = value.partition("/")
            return "lognormal", check_span(median), 0, check_number(spread, "the spread")
        return "fixed", check_span(value), 0, 1.0


class Outage(_Checked):
    """When the provider refuses connections: (start ms, span ms)."""

    name = "outage"

    def _check(self, value: str) -> tuple[int, int]:
        start, plus, span = value.partition("+")
        if not plus:
            raise ValueError(f"{value!r} has no '+'; write START+SPAN, like 2h+30m")
        return check_span(start, zero=True), check_span(span)


class Share(_Checked):
    """A share, 0.02 or 2%."""

    name = "share"

    def _check(self, value: str) -> float:
        percent = value.endswith("%")
        number = check_number(value.removesuffix("%"), "the share")
        return number / 100 if percent else number


class Pair(_Checked):
    """`K=V`: the value may be empty and may hold `=`."""

    name = "k=v"

    def _check(self, value: str) -> tuple[str, str]:
        key, equals, text = value.partition("=")
        if not equals:
            raise ValueError(f"{value!r} has no '='; write NAME=VALUE")
        return check_text(key, 200), check_text(text, MAX_URL) if text else text


class File(_Checked):
    """A path of a file, or `-`."""

    name = "file"

    def _check(self, value: str) -> str:
        return check_path(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:  # noqa: ARG002
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]


class OperationId(Text):
    """An operation's id; completes from the newest operations of the store."""

    name = "op"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:  # noqa: ARG002
        from pollconsole.cli.completion import operation_ids

        return operation_ids(ctx, incomplete)


class ProviderName(Text):
    """A contract's or instance's name; completes from both."""

    name = "provider"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:  # noqa: ARG002
        from pollconsole.cli.completion import provider_names

        return provider_names(ctx, incomplete)


caller_option = click.option(
    "--caller",
    type=Text(),
    metavar="TEXT",
    help="The name you give yourself, for the audit; recorded after the OS user, never instead of it.",
)
"""For every command that is recorded as someone's; `submit` has its own, as a field of the record."""
