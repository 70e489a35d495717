"""What an answer or a fault itself says: one promise a test."""

from __future__ import annotations

import pytest
from tests.core.rules.make import (
    RESULT,
    T0,
    answer,
    decided,
    fault,
    operation,
    stopped,
    waits,
)

from pollcore.facts import (
    DelaySource,
    Fault,
    FaultKind,
    Instant,
    Observation,
    ResultPointer,
    Status,
    StopDetail,
    StopReason,
    Succeed,
    Verdict,
    Wait,
)


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


@pytest.mark.rule("S4", "S9")
@pytest.mark.parametrize("verdict", [Verdict.FAILED, Verdict.CANCELLED, Verdict.EXPIRED])
def test_what_qualifies_an_end_that_is_no_success_is_told_with_the_stop(verdict: Verdict) -> None:
    found = stopped(operation(), answer(verdict, "ended", explanation="it was stopped", qualifiers=("partial",)))
    assert found.explanation == "it was stopped; partial results may exist (partial)"
    found = stopped(operation(), answer(verdict, "ended", qualifiers=("did_not_run", "empty")))
    assert found.explanation == "it did not run (did_not_run); it has no results (empty)"


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
