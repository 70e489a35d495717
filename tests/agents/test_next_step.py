"""What a waiter concludes, and the sentence that tells a caller what it may do: pure parts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollcore.facts import Instant, ResultPointer, Status, StopReason
from pollcore.waiting import CODES, ENDS, START_GRACE_MS, WORST_FIRST, WaitEnd, next_step, wait_end, worst
from tests.console.cli.conftest import HOSTILE, NOW, make_operation

RUNNING, NONE_EVER = 0, None


@pytest.mark.rule("S3", "G5")
@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("silent", [RUNNING, NONE_EVER])
def test_every_status_has_one_sentence_that_says_what_not_and_quotes_no_provider(
    status: Status, silent: int | None
) -> None:
    operation = make_operation(
        status=status,
        last_known_state=HOSTILE,
        stop_reason=StopReason.UNKNOWN_STATE,
        stop_explanation=HOSTILE,
        hold_until=Instant(NOW.wall + 60_000),
        result=ResultPointer(fields={"url": HOSTILE}, permits="fetch_result", qualifiers=(HOSTILE,)),
    )
    said = next_step(operation, silent)
    assert "you may not" in said
    assert said.endswith(".")
    assert said.count(". ") == 0
    assert said.isprintable()
    assert "click" not in said


@pytest.mark.rule("S3")
def test_a_wait_that_goes_on_permits_a_later_observation_alone() -> None:
    said = next_step(make_operation(), RUNNING)
    for never in ("ask the provider yourself", "fetch anything", "start what depends", "submit it again"):
        assert never in said


@pytest.mark.rule("S4")
def test_a_success_names_its_one_action_and_what_is_doubtful_in_it() -> None:
    plain = make_operation(status=Status.SUCCEEDED, result=ResultPointer(fields={}, permits="fetch_result"))
    doubtful = ResultPointer(fields={}, permits="fetch_result", validated=False, qualifiers=("partial",))
    assert "fetch_result, once" in next_step(plain, RUNNING)
    said = next_step(make_operation(status=Status.SUCCEEDED, result=doubtful), RUNNING)
    assert "failed validation" in said
    assert "qualifiers" in said


@pytest.mark.rule("S3", "G5")
@pytest.mark.parametrize("status", [Status.FAILED, Status.CANCELLED, Status.EXPIRED])
def test_a_bad_end_promises_no_resubmission_that_the_contract_may_not_have(status: Status) -> None:
    said = next_step(make_operation(status=status), RUNNING)
    assert said.endswith("you may not submit the job again.")
    assert "operator can" not in said


@given(st.lists(st.sampled_from(sorted(set(CODES.values()))), max_size=8))
def test_the_worst_of_several_codes_does_not_depend_on_their_order(codes: list[int]) -> None:
    assert worst(codes) == worst(sorted(codes, key=str))
    assert worst(codes) == (next(code for code in WORST_FIRST if code in codes) if codes else 0)
    assert set(WORST_FIRST) == set(CODES.values())


@pytest.mark.rule("O8")
@given(st.sampled_from(Status), st.one_of(st.none(), st.integers(0, 10**6)), st.integers(0, 10**6))
def test_only_a_status_the_timeout_or_a_missing_core_ends_a_wait(
    status: Status, silent: int | None, waited: int
) -> None:
    end = wait_end(status, silent, waited_ms=waited, timeout_ms=None)
    if status in ENDS:
        assert end is ENDS[status]
    elif end is not None:
        assert end is WaitEnd.NO_CORE
        assert waited >= START_GRACE_MS
