"""The table after an answer or a fault: one promise a test."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.rules.make import NOW, POLICY, RESULT, T0, answer, fault, hint, memory, operation, retry_after

from pollcore import decide
from pollcore.facts import (
    HOUR,
    Decision,
    DelaySource,
    Escalate,
    Fault,
    FaultKind,
    HintFault,
    Instant,
    Moment,
    Observation,
    Operation,
    Policy,
    ResultPointer,
    Schedule,
    Status,
    StopDetail,
    StopReason,
    Succeed,
    Verdict,
    Wait,
)

SETTLES = Policy(schedule=Schedule(settle_delay=30_000))


def decided(op: Operation, reading: Observation | Fault, *, policy: Policy = POLICY, now: Moment = NOW) -> Decision:
    return decide.decide(op, reading, policy=policy, now=now, draw=0.5)


def stopped(op: Operation, reading: Observation | Fault, *, policy: Policy = POLICY, now: Moment = NOW) -> Escalate:
    found = decided(op, reading, policy=policy, now=now)
    assert isinstance(found, Escalate), found
    return found


def waits(op: Operation, reading: Observation | Fault, *, policy: Policy = POLICY, now: Moment = NOW) -> Wait:
    found = decided(op, reading, policy=policy, now=now)
    assert isinstance(found, Wait), found
    return found


@pytest.mark.rule("S3", "T1")
def test_a_waiting_state_permits_one_later_observation_and_nothing_else() -> None:
    found = waits(operation(), answer())
    assert found.source is DelaySource.LOCAL_BACKOFF
    assert 5_000 <= found.delay_ms <= 10_000


@pytest.mark.rule("S4")
def test_a_success_with_its_result_names_what_it_permits() -> None:
    found = decided(operation(), answer(Verdict.SUCCEEDED, "succeeded"))
    assert found == Succeed(result=RESULT)
    assert RESULT.permits == "fetch_result"


@pytest.mark.rule("S4")
@pytest.mark.parametrize("result", [None, ResultPointer({"url": 7}, validated=False)])
def test_a_success_without_a_valid_result_is_an_integration_failure(result: ResultPointer | None) -> None:
    found = stopped(operation(), answer(Verdict.SUCCEEDED, "succeeded", result=result))
    assert (found.status, found.reason) == (Status.ESCALATED, StopReason.INTEGRATION_FAILURE)
    assert found.detail is StopDetail.SUCCEEDED_WITHOUT_RESULT
    assert found.result == result


@pytest.mark.rule("S4")
def test_a_contradicted_success_keeps_its_result_unvalidated_for_a_human() -> None:
    reading = answer(Verdict.INTEGRATION, "succeeded", detail=StopDetail.SUCCESS_CONTRADICTED, result=RESULT)
    found = stopped(operation(), reading)
    assert found.detail is StopDetail.SUCCESS_CONTRADICTED
    assert found.result is not None
    assert not found.result.validated


@pytest.mark.rule("X4", "E1")
@pytest.mark.parametrize(
    ("verdict", "status", "reason"),
    [
        (Verdict.FAILED, Status.FAILED, StopReason.JOB_FAILED),
        (Verdict.CANCELLED, Status.CANCELLED, StopReason.JOB_CANCELLED),
        (Verdict.EXPIRED, Status.EXPIRED, StopReason.JOB_EXPIRED),
    ],
)
def test_a_jobs_end_names_its_fate_and_asks(verdict: Verdict, status: Status, reason: StopReason) -> None:
    found = stopped(operation(), answer(verdict, "x"))
    assert (found.status, found.reason, found.asks) == (status, reason, True)


@pytest.mark.rule("X4")
def test_a_failed_job_keeps_the_providers_error_and_says_when_there_is_none() -> None:
    assert stopped(operation(), answer(Verdict.FAILED, "failed", provider_error="E42")).explanation == "E42"
    bare = stopped(operation(), answer(Verdict.FAILED, "failed", error_details_missing=True))
    assert "error_details_missing" in bare.notes


@pytest.mark.rule("E5", "X4")
def test_a_cancel_that_an_operator_granted_ends_without_a_question() -> None:
    assert not stopped(operation(cancel_granted=True), answer(Verdict.CANCELLED, "canceled")).asks
    assert stopped(operation(cancel_granted=True), answer(Verdict.FAILED, "failed")).asks


@pytest.mark.rule("S2", "E10")
def test_an_unknown_state_stops_and_shares_its_cause_with_others_in_that_state() -> None:
    found = stopped(operation(), answer(Verdict.UNKNOWN, "SUCCEEDED", near_match="succeeded"))
    assert (found.status, found.reason) == (Status.ESCALATED, StopReason.UNKNOWN_STATE)
    assert found.cause == "unknown_state:acme:SUCCEEDED"
    assert "near_match: succeeded" in found.notes


@pytest.mark.rule("S2")
def test_a_state_that_needs_a_human_stops_with_its_own_explanation() -> None:
    found = stopped(operation(), answer(Verdict.NEEDS_HUMAN, "paused", explanation="paused by its owner"))
    assert (found.reason, found.explanation) == (StopReason.NEEDS_HUMAN, "paused by its owner")


@pytest.mark.rule("S5")
def test_a_job_that_waits_past_the_expiry_its_provider_reported_is_an_integration_failure() -> None:
    expiry = Instant(T0 - 1)
    for op, reading in (
        (operation(provider_expires_at=expiry), answer()),
        (operation(), answer(provider_expires_at=expiry)),
    ):
        found = stopped(op, reading)
        assert found.detail is StopDetail.WAITING_PAST_PROVIDER_EXPIRY
    assert waits(operation(provider_expires_at=expiry), answer(provider_expires_at=Instant(T0 + 1)))


@pytest.mark.rule("S9", "O7")
def test_a_final_answer_after_the_deadline_to_a_request_sent_before_it_counts() -> None:
    late = NOW.after(HOUR + 5_000)
    reading = answer(Verdict.SUCCEEDED, "succeeded", at=Instant(T0 + HOUR + 5_000))
    found = decided(operation(status_requests_used=20), reading, now=late)
    assert isinstance(found, Succeed)
    assert found.notes == ("answered 5000 ms after the deadline",)


@pytest.mark.rule("X2", "X1")
def test_the_deadline_stops_whatever_moved_a_moment_ago() -> None:
    found = stopped(operation(), answer(state="half done"), now=NOW.after(HOUR))
    assert found.reason is StopReason.DEADLINE_EXCEEDED
    assert waits(operation(), answer(), now=NOW.after(HOUR - 1)).delay_ms == 1


@pytest.mark.rule("T9")
def test_a_wall_clock_that_was_set_back_gives_no_time() -> None:
    back = Moment(Instant(T0 - HOUR), NOW.after(HOUR).boot, "boot-1")
    assert stopped(operation(), answer(), now=back).reason is StopReason.DEADLINE_EXCEEDED


@pytest.mark.rule("B5")
def test_the_nearer_useful_until_ends_the_wait_earlier() -> None:
    op = operation(useful_until=Instant(T0 + 60_000))
    assert stopped(op, answer(), now=NOW.after(60_000)).reason is StopReason.USEFULNESS_ENDED
    assert stopped(op, answer(), now=NOW.after(HOUR)).reason is StopReason.DEADLINE_EXCEEDED


@pytest.mark.rule("X3")
def test_the_last_permitted_answer_stops_at_once() -> None:
    assert isinstance(decided(operation(status_requests_used=19), answer()), Wait)
    found = stopped(operation(status_requests_used=20), answer())
    assert found.reason is StopReason.REQUEST_BUDGET_EXHAUSTED


@pytest.mark.rule("B4", "X6", "H5")
@pytest.mark.parametrize("reading", [answer(Verdict.TRANSPORT_FAILURE, None, code=500), fault(FaultKind.DNS)])
def test_transport_failures_wait_until_their_budget_is_reached(reading: Observation | Fault) -> None:
    assert isinstance(decided(operation(transport_failures_used=1), reading), Wait)
    found = stopped(operation(transport_failures_used=2), reading)
    assert found.reason is StopReason.PROVIDER_FAILURE
    assert found.cause == "origin_down:https://api.example.test"


@pytest.mark.rule("X6", "B4")
@pytest.mark.parametrize(
    ("reading", "reason"),
    [
        (fault(FaultKind.TIMEOUT), StopReason.DELIVERY_AMBIGUOUS),
        (fault(FaultKind.TIMEOUT, sent=False), StopReason.PROVIDER_FAILURE),
        (fault(FaultKind.RESET), StopReason.PROVIDER_FAILURE),
        (fault(FaultKind.CONNECT_TIMEOUT, sent=False), StopReason.PROVIDER_FAILURE),
    ],
)
def test_only_a_last_request_that_timed_out_after_it_may_have_been_sent_is_ambiguous(
    reading: Fault, reason: StopReason
) -> None:
    assert stopped(operation(transport_failures_used=2), reading).reason is reason


@pytest.mark.rule("B4")
@pytest.mark.parametrize("kind", [FaultKind.NOT_SENT, FaultKind.ANSWER_LOST])
def test_our_own_pause_or_crash_spends_no_failure_of_the_provider(kind: FaultKind) -> None:
    found = waits(operation(transport_failures_used=2), fault(kind))
    assert found.source is DelaySource.LOCAL_BACKOFF
    assert ("answer_lost" in found.notes) == (kind is FaultKind.ANSWER_LOST)


@pytest.mark.rule("X5", "H2", "K3")
@pytest.mark.parametrize(
    ("kind", "detail"),
    [
        (FaultKind.TOO_LARGE, StopDetail.RESPONSE_TOO_LARGE),
        (FaultKind.PROTOCOL, StopDetail.PROTOCOL_VIOLATION),
        (FaultKind.FOREIGN_ORIGIN, StopDetail.FOREIGN_ORIGIN),
        (FaultKind.INSECURE, StopDetail.FOREIGN_ORIGIN),
    ],
)
def test_a_broken_exchange_is_an_integration_failure_at_once(kind: FaultKind, detail: StopDetail) -> None:
    found = stopped(operation(), fault(kind))
    assert (found.reason, found.detail) == (StopReason.INTEGRATION_FAILURE, detail)


@pytest.mark.rule("X5", "S6", "H6")
@pytest.mark.parametrize("detail", [StopDetail.UNREADABLE, StopDetail.WRONG_JOB, StopDetail.UNEXPECTED_STATUS])
def test_an_answer_that_cannot_be_read_is_never_a_failed_job(detail: StopDetail) -> None:
    found = stopped(operation(), answer(Verdict.INTEGRATION, None, detail=detail))
    assert (found.status, found.reason, found.detail) == (Status.ESCALATED, StopReason.INTEGRATION_FAILURE, detail)


@pytest.mark.rule("X5")
def test_an_unreadable_answer_counted_as_a_transport_failure_says_so_when_that_budget_is_spent() -> None:
    reading = answer(Verdict.TRANSPORT_FAILURE, None, detail=StopDetail.UNREADABLE)
    found = stopped(operation(transport_failures_used=2), reading)
    assert (found.reason, found.detail) == (StopReason.PROVIDER_FAILURE, StopDetail.UNREADABLE)


@pytest.mark.rule("H3", "E10")
def test_a_refused_credential_stops_at_once_and_joins_its_operations() -> None:
    found = stopped(operation(), answer(Verdict.DENIED, None, code=403))
    assert found.reason is StopReason.AUTHORIZATION_DENIED
    assert found.cause == "authorization_denied:acme-key:https://api.example.test"
    assert any("submit was accepted" in note for note in found.notes)


@pytest.mark.rule("T7", "H5")
def test_continued_429s_escalate_and_unguided_ones_stretch_the_wait() -> None:
    limited = answer(Verdict.RATE_LIMITED, None, code=429)
    assert 20_000 <= waits(operation(), limited).delay_ms <= 40_000
    assert 80_000 <= waits(operation(rate_limited_used=1, rate_limited_in_a_row=1), limited).delay_ms <= 160_000
    found = stopped(operation(rate_limited_used=2), limited)
    assert (found.reason, found.detail) == (StopReason.RATE_LIMITED, None)


@pytest.mark.rule("T7")
def test_a_guided_429_spends_its_budget_too_and_is_not_stretched() -> None:
    limited = answer(Verdict.RATE_LIMITED, None, code=429, guidance=retry_after(60_000))
    assert 60_000 <= waits(operation(), limited).delay_ms <= 66_000
    assert stopped(operation(rate_limited_used=2), limited).reason is StopReason.RATE_LIMITED


@pytest.mark.rule("H5")
def test_an_exhausted_quota_stops_at_once() -> None:
    found = stopped(operation(), answer(Verdict.QUOTA_EXHAUSTED, None, code=429))
    assert (found.reason, found.detail) == (StopReason.RATE_LIMITED, StopDetail.QUOTA_EXHAUSTED)


@pytest.mark.rule("T5", "T3")
def test_guidance_replaces_local_backoff_and_counts_from_the_answer() -> None:
    found = waits(operation(), answer(guidance=retry_after(120_000)), now=NOW.after(1_000))
    assert found.source is DelaySource.PROVIDER_RETRY_AFTER
    assert T0 + 120_000 <= found.next_poll_at <= T0 + 132_000
    assert found.guidance_until == T0 + 120_000
    assert waits(operation(), answer(guidance=hint(30_000))).source is DelaySource.PROVIDER_POLL_HINT


@pytest.mark.rule("T4")
def test_retry_after_beyond_the_deadline_stops_at_once_and_a_hint_beyond_it_is_refused() -> None:
    assert stopped(operation(), answer(guidance=retry_after(HOUR))).reason is StopReason.GUIDANCE_BEYOND_DEADLINE
    assert isinstance(decided(operation(), answer(guidance=retry_after(HOUR - 1))), Wait)
    found = waits(operation(), answer(guidance=hint(HOUR)))
    assert found.source is DelaySource.LOCAL_BACKOFF
    assert any(note.startswith("hint_invalid") for note in found.notes)


@pytest.mark.rule("T4", "B5")
def test_guidance_beyond_useful_until_ends_the_usefulness() -> None:
    op = operation(useful_until=Instant(T0 + 60_000))
    for guidance in (retry_after(60_000), hint(60_000)):
        assert stopped(op, answer(guidance=guidance)).reason is StopReason.USEFULNESS_ENDED


@pytest.mark.rule("T4")
def test_refused_hints_are_told_with_their_reason() -> None:
    found = waits(operation(), answer(hint_faults=(HintFault("next_check_at", "no time zone"),)))
    assert found.notes == ("hint_invalid: next_check_at no time zone",)


@pytest.mark.rule("T4", "X2")
def test_a_backoff_that_would_pass_the_deadline_wakes_there_and_is_not_shortened_into_a_request() -> None:
    found = waits(operation(completed_polls=9), answer(), now=NOW.after(HOUR - 2_000))
    assert found.next_poll_at == T0 + HOUR
    assert found.notes == ("no further request fits before the deadline",)


@pytest.mark.rule("T10")
def test_guidance_past_the_longest_interval_wins_and_the_risk_is_told() -> None:
    policy = Policy(schedule=Schedule(max_interval=30_000))
    found = waits(operation(), answer(guidance=retry_after(60_000)), policy=policy)
    assert found.delay_ms >= 60_000
    assert any("max_interval 30 s is exceeded" in note for note in found.notes)


ORDER: list[tuple[str, Operation, Observation, StopReason]] = [
    ("said", operation(transport_failures_used=3, deadline_at=T0), answer(Verdict.UNKNOWN), StopReason.UNKNOWN_STATE),
    (
        "failures",
        operation(transport_failures_used=2, deadline_at=T0),
        answer(Verdict.TRANSPORT_FAILURE),
        StopReason.PROVIDER_FAILURE,
    ),
    (
        "rate",
        operation(rate_limited_used=2, transport_failures_used=3, deadline_at=T0),
        answer(Verdict.RATE_LIMITED),
        StopReason.RATE_LIMITED,
    ),
    (
        "deadline",
        operation(deadline_at=T0, useful_until=T0, status_requests_used=20),
        answer(),
        StopReason.DEADLINE_EXCEEDED,
    ),
    ("useful", operation(useful_until=T0, status_requests_used=20), answer(), StopReason.USEFULNESS_ENDED),
    (
        "requests",
        operation(status_requests_used=20),
        answer(guidance=retry_after(9 * HOUR)),
        StopReason.REQUEST_BUDGET_EXHAUSTED,
    ),
    ("guidance", operation(), answer(guidance=retry_after(9 * HOUR)), StopReason.GUIDANCE_BEYOND_DEADLINE),
]


@pytest.mark.rule("O7")
@pytest.mark.parametrize(("op", "reading", "reason"), [row[1:] for row in ORDER], ids=[row[0] for row in ORDER])
def test_after_an_answer_the_first_reason_in_order_is_named(
    op: Operation, reading: Observation, reason: StopReason
) -> None:
    assert stopped(op, reading).reason is reason


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
