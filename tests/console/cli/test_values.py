"""Flags: spans, times, counts, texts; what they accept and what they say when they do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollconsole.cli import values
from pollcore.facts import DAY, HOUR, MINUTE, SECOND

HOSTILE = (
    "\x1b[31m",
    "\x1bP$qm\x1b\\",
    "\x9b2J",
    "a\x00b",
    "line\nline",
    "\rover",
    "\udcff",
    "\ud800",
    "\u2028",
    "x" * 2_000_000,
    "",
    "   ",
)


@pytest.mark.parametrize(
    ("text", "ms"),
    [("90s", 90 * SECOND), ("40m", 40 * MINUTE), ("2h", 2 * HOUR), ("1d", DAY), ("1h30m", HOUR + 30 * MINUTE)],
)
def test_spans_are_read_in_the_written_unit(text: str, ms: int) -> None:
    assert values.check_span(text) == ms


@pytest.mark.parametrize(
    "text", ["", "40", "m", "-5m", "1.5h", "40 m", "30m1h", "٤m", "0s", "1e3s", "9999999999s", "1w"]
)
def test_what_is_no_span_is_refused_in_words(text: str) -> None:
    with pytest.raises(ValueError, match=r"span|longer than 0"):
        values.check_span(text)


def test_a_zero_span_is_allowed_only_where_it_means_something() -> None:
    assert values.check_span("0s", zero=True) == 0


@pytest.mark.rule("B1")
@pytest.mark.parametrize(
    "text", ["2026-03-02T10:40:00", "2026-03-02", "tomorrow", "1999-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00"]
)
def test_a_time_without_a_zone_or_beyond_measure_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="2026-03-02T10:40:00Z"):
        values.check_instant(text)


def test_a_time_with_any_zone_is_the_same_instant() -> None:
    assert values.check_instant("2026-03-02T12:40:00+02:00") == values.check_instant("2026-03-02T10:40:00Z")


def test_when_is_a_span_or_an_instant() -> None:
    assert values.check_when("40m") == (40 * MINUTE, None)
    assert values.check_when("2026-03-02T10:40:00Z") == (None, 1772448000000)


@pytest.mark.rule("B1")
@pytest.mark.parametrize("text", ["0", "-1", "1.5", "1_000", "+5", "nan", "inf", "", "٣", "1e3", "9" * 5_000, " 5"])
def test_a_count_that_is_no_whole_number_from_one_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"whole number|below 1|absurd"):
        values.check_count(text)


@pytest.mark.parametrize("text", HOSTILE)
def test_texts_with_control_characters_broken_utf8_or_endless_length_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        values.check_text(text)


@given(st.text())
def test_an_accepted_text_holds_no_control_character(text: str) -> None:
    try:
        accepted = values.check_text(text)
    except ValueError:
        return
    assert not [c for c in accepted if ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 or 0xD800 <= ord(c) <= 0xDFFF]


@given(st.text(max_size=30))
def test_any_text_is_a_time_a_span_or_a_clear_refusal(text: str) -> None:
    for check in (values.check_when, values.check_instant, values.check_span, values.check_count):
        told = "accepted"
        try:
            check(text)
        except ValueError as error:
            told = str(error)
        assert told
