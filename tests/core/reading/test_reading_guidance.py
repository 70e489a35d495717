"""Provider guidance: Retry-After in all its forms, hints with unit and cap, dates against the answer's own clock."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.reading.helpers import START, answer, contract, look, moment, operation

from pollcore.contract.parts import Unit
from pollcore.decide import decide
from pollcore.facts import (
    HOUR,
    MAX_SPAN,
    MINUTE,
    SECOND,
    DelaySource,
    Escalate,
    Instant,
    StopReason,
    Wait,
    from_datetime,
    iso,
    parse_instant,
)
from pollcore.reading import times

PLAIN = contract()
RUNNING = {"status": "running"}


def guided(headers: list[tuple[str, str]], body: object = None, *, after: int = 5_000, more: str = "") -> object:
    seen, _ = look(contract(more) if more else PLAIN, answer(200, body or RUNNING, headers, after=after))
    return seen


@pytest.mark.rule("T3")
@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("0", 0),
        ("120", 120_000),
        ("999999999", 999_999_999_000),
        (" 7 ", 7_000),
        ("1.5", 2_000),
        ("0.1", 1_000),
        ("2.0", 2_000),
        ("1000000000", times.MAX_RETRY_AFTER),
        ("1772445605", times.MAX_RETRY_AFTER),
        ("999999999.5", times.MAX_RETRY_AFTER),
        ("1000000000.25", times.MAX_RETRY_AFTER),
        ("9" * times.MAX_RETRY_AFTER_TEXT, times.MAX_RETRY_AFTER),
        ("0" * 500 + "7", 7_000),
        ("3.0000000000001", 4_000),
    ],
)
def test_retry_after_in_seconds_and_decimals_rounded_up(text: str, ms: int) -> None:
    seen, _ = look(PLAIN, answer(200, RUNNING, {"Retry-After": text}))
    assert seen.guidance is not None
    assert (seen.guidance.delay_ms, seen.guidance.is_retry_after) == (ms, True)
    assert seen.hint_faults == ()


@pytest.mark.rule("T4")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("-1", "negative"),
        ("+5", "not a date"),
        ("1_000", "not a date"),
        ("1e9", "not a date"),
        ("9" * (times.MAX_RETRY_AFTER_TEXT + 1), "not a date"),
        ("٣", "not a date"),
        ("３", "not a date"),
        ("", "not a date"),
        ("soon", "not a date"),
        ("1.", "not a date"),
        ("Mon, 02 Mar 1970 10:02:00 GMT", "2000-2100"),
        ("Thu, 01 Jan 9999 00:00:00 GMT", "2000-2100"),
        ("Mon, 02 Mar 2026 10:02:00 -0000", "not a date"),
        ("Mon, 02 Mar 2026 10:02:61 GMT", "no such time"),
        ("Mon, 31 Feb 2026 10:02:00 GMT", "no such day"),
        ("Mon, 02 Mar 2026 09:00:00 GMT", "in the past"),
    ],
)
def test_what_is_no_valid_retry_after_is_refused_with_the_reason(text: str, why: str) -> None:
    seen, _ = look(PLAIN, answer(429, None, {"Retry-After": text}))
    assert seen.guidance is None
    assert len(seen.hint_faults) == 1
    assert why in seen.hint_faults[0].why
    assert any(note.startswith("hint_invalid: retry-after") for note in seen.notes)


@pytest.mark.rule("T3")
@pytest.mark.parametrize(
    "text", ["Mon, 02 Mar 2026 10:02:00 GMT", "Monday, 02-Mar-26 10:02:00 GMT", "Mon Mar  2 10:02:00 2026"]
)
def test_the_three_date_forms_are_one_time_in_gmt(text: str) -> None:
    assert times.http_date(text, START) == parse_instant("2026-03-02T10:02:00Z")
    seen, _ = look(PLAIN, answer(200, RUNNING, {"Retry-After": text}, after=0))
    assert seen.guidance is not None
    assert seen.guidance.delay_ms == 120_000


@pytest.mark.rule("T3", "T4")
@pytest.mark.parametrize(
    ("text", "year"),
    [
        ("Saturday, 02-Mar-76 10:02:00 GMT", 2076),
        ("Monday, 02-Mar-26 10:02:00 GMT", 2026),
        ("Thursday, 02-Mar-00 10:02:00 GMT", 2000),
        ("Wednesday, 02-Mar-77 10:02:00 GMT", None),
        ("Sunday, 06-Nov-94 08:49:37 GMT", None),
    ],
)
def test_a_year_of_two_digits_is_at_most_fifty_years_ahead_and_else_long_ago(text: str, year: int | None) -> None:
    seen, _ = look(PLAIN, answer(200, RUNNING, {"Retry-After": text}, after=0))
    if year is None:
        assert (seen.guidance, seen.hint_faults[0].why) == (None, "time outside 2000-2100")
    else:
        assert iso(times.http_date(text, START)).startswith(f"{year}-03-02T10:02:00")


@pytest.mark.rule("T3")
def test_a_leap_second_is_the_second_after_59() -> None:
    assert times.http_date("Wed, 31 Dec 2025 23:59:60 GMT", START) == parse_instant("2026-01-01T00:00:00Z")


@pytest.mark.rule("T3")
def test_of_several_headers_the_largest_valid_one_counts() -> None:
    headers = [("Retry-After", "5"), ("retry-after", "-1"), ("Retry-After", "90"), ("Retry-After", "30")]
    seen, _ = look(PLAIN, answer(503, None, headers))
    assert seen.guidance is not None
    assert seen.guidance.delay_ms == 90_000
    assert [fault.why for fault in seen.hint_faults] == ["negative"]


@pytest.mark.rule("T3")
@given(st.integers(-7_200, 7_200), st.integers(0, 999), st.integers(0, 3_600))
def test_a_date_is_never_reached_early_by_the_providers_clock_and_skew_is_recorded(
    skew: int, ms: int, wait: int
) -> None:
    """The provider meant `wait` seconds after its own Date, whatever our clock says."""
    at = START + 5_000 + ms
    date_s = (at // SECOND) + skew
    headers = {"Date": _http(date_s), "Retry-After": _http(date_s + wait)}
    got = answer(200, RUNNING, headers, after=at - START)
    seen, _ = look(PLAIN, got)
    assert seen.guidance is not None
    assert seen.guidance.delay_ms >= wait * SECOND
    if abs(skew) <= 1:
        assert got.answered_at + seen.guidance.delay_ms >= (date_s + wait) * SECOND
        assert seen.clock_skew_ms is None
    if abs(skew) >= 4:
        assert seen.guidance.delay_ms == wait * SECOND
        assert seen.clock_skew_ms is not None
        assert abs(seen.clock_skew_ms - skew * SECOND) <= 1_100
        assert any("clock_skew" in note for note in seen.notes)


def _http(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")


HINTS = """
[[hints]]
name = "after"
path = "body.after"
unit = "{unit}"
cap = "1h"
when = "http.status == `200`"
"""


@pytest.mark.rule("T3", "T4")
@pytest.mark.parametrize(
    ("unit", "value", "ms"),
    [
        ("seconds", 30, 30_000),
        ("seconds", "30", 30_000),
        ("seconds", 1.25, 1_250),
        ("milliseconds", 1_500, 1_500),
        ("minutes", 2, 120_000),
        ("unix_seconds", START // 1_000 + 65, 60_000),
        ("unix_milliseconds", START + 65_001, 60_001),
        ("iso", "2026-03-02T10:01:05Z", 60_000),
        ("iso", "2026-03-02T11:01:05.123456789+01:00", 60_123),
        ("http_date", "Mon, 02 Mar 2026 10:01:05 GMT", 60_000),
        ("seconds", 0, 0),
    ],
)
def test_hints_have_their_units(unit: str, value: object, ms: int) -> None:
    seen, _ = look(contract(HINTS.replace("{unit}", unit)), answer(200, {**RUNNING, "after": value}))
    assert seen.hint_faults == ()
    assert seen.guidance is not None
    assert (seen.guidance.delay_ms, seen.guidance.name, seen.guidance.is_retry_after) == (ms, "after", False)


@pytest.mark.rule("T4")
@pytest.mark.parametrize(
    ("unit", "value", "why"),
    [
        ("seconds", -1, "negative"),
        ("seconds", 1e306, "absurdly large"),
        ("unix_seconds", 1e306, "absurdly large"),
        ("seconds", True, "not a number"),
        ("seconds", "1e3", "not a number"),
        ("seconds", 3_601, "3601 s is beyond its cap of 3600 s: not believed, local backoff instead"),
        ("seconds", 3_600.25, "3600.25 s is beyond its cap of 3600 s"),
        ("seconds", [1], "not a number"),
        ("seconds", 1e300, "absurdly"),
        ("iso", "2026-03-02T11:00:00", "without a zone"),
        ("iso", "2026-03-02", "not an ISO"),
        ("iso", 5, "not a date"),
        ("iso", "2026-03-02T09:00:00Z", "in the past"),
        ("iso", "9999-12-31T23:59:59-12:00", "2000-2100"),
        ("unix_seconds", 5, "2000-2100"),
        ("unix_seconds", START, "2000-2100"),
        ("iso", "2026-02-30T10:00:00Z", "no such"),
    ],
)
def test_bad_hints_are_refused_with_the_reason(unit: str, value: object, why: str) -> None:
    seen, _ = look(contract(HINTS.replace("{unit}", unit)), answer(200, {**RUNNING, "after": value}))
    assert seen.guidance is None
    assert [fault.name for fault in seen.hint_faults] == ["after"]
    assert why in seen.hint_faults[0].why


@pytest.mark.rule("T5", "T4")
def test_retry_after_goes_before_hints_hints_have_conditions_and_max_hint_holds() -> None:
    made = contract(HINTS.replace("{unit}", "seconds") + '[schedule]\nmax_hint = "1m"\n')
    seen, _ = look(made, answer(200, {**RUNNING, "after": 50}, {"Retry-After": "3"}))
    assert seen.guidance is not None
    assert (seen.guidance.name, seen.guidance.delay_ms) == ("Retry-After", 3_000)
    assert look(made, answer(503, {"after": 50}))[0].guidance is None
    beyond, _ = look(made, answer(200, {**RUNNING, "after": 61}))
    assert "beyond its cap of 60 s" in beyond.hint_faults[0].why
    assert look(made, answer(200, {**RUNNING, "after": None}))[0].hint_faults == ()
    far = answer(200, RUNNING, {"Retry-After": str(30 * 24 * 3600)})
    assert look(made, far)[0].guidance is not None


@pytest.mark.rule("T4")
@given(st.integers(3_600, 10**60), st.sampled_from([200, 429, 503]))
def test_a_retry_after_beyond_the_deadline_stops_at_once_however_many_digits_it_has(seconds: int, status: int) -> None:
    seen, _ = look(PLAIN, answer(status, RUNNING, {"Retry-After": str(seconds)}))
    made = decide(operation(), seen, policy=PLAIN.policy, now=moment(), draw=0.5)
    assert isinstance(made, Escalate)
    assert made.reason is StopReason.GUIDANCE_BEYOND_DEADLINE


@pytest.mark.rule("T4")
def test_the_longest_retry_after_is_beyond_every_deadline_and_still_a_time_that_can_be_written() -> None:
    now = from_datetime(datetime(2026, 11, 30, tzinfo=UTC))
    assert times.MAX_RETRY_AFTER > 4 * MAX_SPAN
    assert iso(Instant(now + times.MAX_RETRY_AFTER)).startswith("2058-")


@pytest.mark.rule("T4", "T5")
def test_a_hint_above_its_cap_is_refused_and_local_backoff_holds_not_the_cap() -> None:
    made = contract(HINTS.replace("{unit}", "seconds"))
    seen, _ = look(made, answer(200, {**RUNNING, "after": 3_601}))
    waits = decide(operation(), seen, policy=made.policy, now=moment(), draw=0.5)
    assert isinstance(waits, Wait)
    assert waits.source is DelaySource.LOCAL_BACKOFF
    assert waits.delay_ms <= made.policy.schedule.max_delay
    assert "hint_invalid: after 3601 s is beyond its cap of 3600 s: not believed, local backoff instead" in seen.notes


@given(st.text(max_size=40))
def test_no_text_makes_a_time_raise_anything_but_a_value_error(text: str) -> None:
    for unit in Unit:
        try:
            if unit in times.SPANS:
                times.span(text, unit)
            else:
                times.instant(text, unit, START)
        except ValueError:
            continue
    assert times.span(1, Unit.MINUTES) == MINUTE
    assert HOUR == 60 * MINUTE
