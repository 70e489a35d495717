"""Settling, granted checks, chains, answers read again, and causes."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.rules.make import (
    NOW,
    POLICY,
    T0,
    answer,
    fault,
    memory,
    operation,
    retry_after,
    stopped,
    waits,
)

from pollcore import decide
from pollcore.facts import (
    Fault,
    Instant,
    Observation,
    Policy,
    Schedule,
    Status,
    StopDetail,
    StopReason,
    Verdict,
    Wait,
)

SETTLES = Policy(schedule=Schedule(settle_delay=30_000))


@pytest.mark.rule("X8")
def test_a_failed_answer_is_final_unless_the_contract_wants_it_confirmed() -> None:
    failed = answer(Verdict.FAILED, "failed")
    assert stopped(operation(), failed).status is Status.FAILED
    first = waits(operation(), failed, policy=SETTLES)
    assert first.delay_ms == 30_000
    confirmed = stopped(operation(memory=memory(settling="failed:failed")), failed, policy=SETTLES)
    assert (confirmed.status, confirmed.reason) == (Status.FAILED, StopReason.JOB_FAILED)


@pytest.mark.rule("X8")
@pytest.mark.parametrize(
    "second", [answer(), answer(Verdict.FAILED, "crashed"), answer(Verdict.SUCCEEDED, "succeeded")]
)
def test_a_second_answer_that_differs_is_a_terminal_contradiction(second: Observation) -> None:
    found = stopped(operation(memory=memory(settling="failed:failed")), second, policy=SETTLES)
    assert (found.reason, found.detail) == (StopReason.INTEGRATION_FAILURE, StopDetail.TERMINAL_CONTRADICTION)


@pytest.mark.rule("X8")
def test_a_timeout_while_settling_neither_confirms_nor_contradicts() -> None:
    op = operation(memory=memory(settling="failed:failed"))
    assert waits(op, fault(), policy=SETTLES)
    assert waits(op, answer(Verdict.TRANSPORT_FAILURE, None, code=503), policy=SETTLES)


@pytest.mark.rule("X8", "X3")
def test_an_end_that_cannot_be_confirmed_inside_the_limits_stops_on_the_limit_and_says_so() -> None:
    found = stopped(operation(status_requests_used=20), answer(Verdict.FAILED, "failed"), policy=SETTLES)
    assert (found.status, found.reason) == (Status.ESCALATED, StopReason.REQUEST_BUDGET_EXHAUSTED)
    assert found.explanation is not None
    assert "failed:failed" in found.explanation


CHECK: dict[str, Any] = {
    "check_once": True,
    "stop_reason": StopReason.UNKNOWN_STATE,
    "stop_explanation": "compiling",
    "last_known_state": "compiling",
}


@pytest.mark.rule("E2", "S2")
def test_a_check_once_goes_on_only_with_a_known_answer_and_limits_left() -> None:
    assert waits(operation(**CHECK), answer())
    assert stopped(operation(**CHECK), answer(Verdict.UNKNOWN, "linking")).reason is StopReason.UNKNOWN_STATE
    spent = stopped(operation(**CHECK, status_requests_used=20), answer())
    assert spent.reason is StopReason.REQUEST_BUDGET_EXHAUSTED


@pytest.mark.rule("E2")
@pytest.mark.parametrize("reading", [fault(), answer(Verdict.RATE_LIMITED, None, code=429)])
def test_a_check_once_that_brings_nothing_about_the_job_is_the_stop_again(reading: Observation | Fault) -> None:
    found = stopped(operation(**CHECK), reading)
    assert (found.reason, found.explanation) == (StopReason.UNKNOWN_STATE, "compiling")
    assert found.cause == "unknown_state:acme:compiling"


@pytest.mark.rule("O7", "B3")
def test_a_further_step_of_a_chain_goes_out_at_once_but_never_against_guidance_or_budget() -> None:
    assert waits(operation(), answer(state=None, continues=True)).delay_ms == 0
    guided = waits(operation(), answer(state=None, continues=True, guidance=retry_after(9_000)))
    assert guided.delay_ms >= 9_000
    spent = stopped(operation(status_requests_used=20), answer(state=None, continues=True))
    assert spent.reason is StopReason.REQUEST_BUDGET_EXHAUSTED


@pytest.mark.rule("B2", "B4")
def test_a_stored_answer_read_again_spends_nothing_and_keeps_open_guidance() -> None:
    op = operation(transport_failures_used=2, guidance_until=Instant(T0 + 90_000))
    found = decide.decide(op, answer(Verdict.TRANSPORT_FAILURE), policy=POLICY, now=NOW, draw=0.0, counted=False)
    assert isinstance(found, Wait)
    assert found.next_poll_at >= T0 + 90_000


@pytest.mark.rule("E10")
def test_causes_stay_short_and_apart_however_long_a_state_is() -> None:
    one = decide.cause_of(operation(), StopReason.UNKNOWN_STATE, state="x" * 10_000)
    other = decide.cause_of(operation(), StopReason.UNKNOWN_STATE, state="x" * 10_001)
    assert len(one) < 200
    assert one != other
    assert decide.cause_of(operation(), StopReason.DEADLINE_EXCEEDED) == "deadline_exceeded:op_1"
    locked = decide.cause_of(operation(), StopReason.CREDENTIAL_UNAVAILABLE, StopDetail.KEYRING_LOCKED)
    assert locked == "keyring_locked"


@pytest.mark.rule("K4", "E10")
def test_a_cause_holds_neither_user_nor_query_of_an_address() -> None:
    op = operation(memory=memory(next_url="https://user:pw@h.example.test:8443?sig=abc"))
    assert decide.cause_of(op, StopReason.PROVIDER_FAILURE) == "origin_down:https://h.example.test:8443"


@pytest.mark.rule("X1")
@pytest.mark.parametrize("draw", [-0.1, 1.0, float("nan")])
def test_a_draw_out_of_range_is_our_error(draw: float) -> None:
    with pytest.raises(ValueError, match="draw must be"):
        decide.decide(operation(), answer(), policy=POLICY, now=NOW, draw=draw)
