"""Integers beyond 64 bits: read exactly, written exactly, whatever they stand for; and no field that nobody names."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.reading.helpers import answer, contract, look, moment, operation

from pollcore.facts import Instant, Memory, StopDetail, Verdict
from pollcore.reading import explain, reread
from pollcore.reading.strict_json import MAX_DIGITS

UINT64 = 2**64 - 1
UINT256 = 2**256 - 1
LARGE = st.integers(2**63, 10**MAX_DIGITS - 1) | st.integers(1 - 10**MAX_DIGITS, -(2**63) - 1)
EVERYWHERE = contract(
    """
[[success.requires]]
path = "body.output"
type = "integer"
[[success.requires]]
path = "body.text"
format = "integer-text"
[success]
fields = { extra = "body.extra" }
[identity]
job_id = "body.id"
attempt = "body.attempt"
[error]
code = "body.code"
[progress]
value = "body.done"
total = "body.total"
[[hints]]
path = "body.poll_after"
unit = "seconds"
cap = "1h"
[[expiry]]
path = "body.expires_at"
unit = "unix_seconds"
[status.remember]
build = "body.build"
"""
)


@pytest.mark.rule("S10", "H7")
@given(LARGE)
def test_a_large_integer_that_nobody_names_changes_nothing(number: int) -> None:
    seen, memory = look(contract(), answer(200, {"status": "running", "nobody": [number], "n": {"o": number}}))
    assert (seen.verdict, seen.state, seen.detail) == (Verdict.WAITING, "running", None)
    assert memory.last_state == "running"


@pytest.mark.rule("S2", "H7")
@pytest.mark.parametrize("number", [UINT64, UINT64 + 1, UINT256, -UINT256])
def test_a_large_integer_that_is_the_state_is_told_as_it_is(number: int) -> None:
    seen, _ = look(contract(), answer(200, {"status": number}))
    assert (seen.verdict, seen.state) == (Verdict.UNKNOWN, str(number))


@pytest.mark.rule("S4", "S6", "S10", "H7")
@given(LARGE)
def test_a_large_integer_is_exact_wherever_a_contract_reads_it(number: int) -> None:
    body: dict[str, Any] = dict.fromkeys(("output", "extra", "id", "attempt", "done", "total", "build"), number)
    got = answer(200, {"status": "succeeded", "text": str(number), **body})
    seen, memory = look(EVERYWHERE, got, job_id=str(number))
    assert (seen.verdict, seen.explanation) == (Verdict.SUCCEEDED, None)
    assert seen.result is not None
    assert seen.result.fields == {"output": number, "text": str(number), "extra": number}
    assert (memory.attempt, memory.progress, memory.values["build"]) == (str(number), f"{number}/{number}", number)
    assert msgspec.json.decode(msgspec.json.encode(memory), type=Memory) == memory
    assert explain(EVERYWHERE, operation(job_id=str(number)), got).observation.result == seen.result
    again = reread(EVERYWHERE, operation(memory, job_id=str(number)), seen.envelope, moment())
    assert again.whole
    assert again.observation.result == seen.result
    other, _ = look(EVERYWHERE, got, job_id=str(number + 1))
    assert other.detail is StopDetail.WRONG_JOB


@pytest.mark.rule("T4", "S5", "H7")
@given(LARGE)
def test_a_large_integer_is_no_time(number: int) -> None:
    got = answer(200, {"status": "running", "poll_after": number, "expires_at": number, "code": number})
    seen, memory = look(EVERYWHERE, got, Memory(first_seen_at=Instant(0)))
    assert (seen.verdict, seen.guidance, seen.provider_expires_at) == (Verdict.WAITING, None, None)
    assert [fault.name for fault in seen.hint_faults] == ["body.poll_after"]
    assert memory.polls == 1


@pytest.mark.rule("H7", "X5")
def test_beyond_the_named_number_of_digits_an_integer_is_refused_in_words() -> None:
    seen, _ = look(contract(), answer(200, b'{"status":"running","n":' + b"9" * (MAX_DIGITS + 1) + b"}"))
    assert (seen.verdict, seen.detail) == (Verdict.INTEGRATION, StopDetail.UNREADABLE)
    assert seen.explanation == "an integer is too large: more than 78 digits"
