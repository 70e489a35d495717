"""A submission becomes a bounded record, or a refusal that names limit, allowed value and way out."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.rules.make import NOW, T0, hint, memory, operation, retry_after, schedules

from pollcore import decide, submission
from pollcore.facts import (
    DAY,
    HOUR,
    MINUTE,
    DelaySource,
    Instant,
    Limits,
    Operation,
    Policy,
    Refused,
    Schedule,
    Status,
    StopDetail,
    StopReason,
    Submitted,
)
from pollcore.submission import Carried, Requested, Terms
from pollcore.submission.pace import FASTEST, MEDIAN, request_time, requests_within

GIVEN = Submitted(provider="acme", account="main", job_id="job-1", os_user="ana")
DEFAULT = Limits(HOUR, 30, 3, 3)
TERMS = Terms(policy=Policy(default=DEFAULT), contract_digest="d1")


def submit(
    terms: Terms = TERMS, given: Submitted = GIVEN, draw: float = 0.0, asked: Requested | None = None, **more: Any
) -> tuple[Operation, tuple[str, ...]]:
    return submission.new_operation(
        given, terms, asked or Requested(), operation_id="op_1", now=NOW, draw=draw, credential="acme-key", **more
    )


def refused(terms: Terms = TERMS, **asked: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        submit(terms, asked=Requested(**asked))
    return caught.value


def with_policy(**fields: Any) -> Terms:
    return Terms(policy=Policy(**({"default": DEFAULT} | fields)), contract_digest="d1")


@pytest.mark.rule("B1", "O1")
def test_a_new_record_holds_every_limit_before_its_first_request() -> None:
    record, warnings = submit()
    assert (record.deadline_at, record.deadline_boot) == (T0 + HOUR, NOW.boot + HOUR)
    assert (record.max_status_requests, record.max_transport_failures, record.max_rate_limited) == (30, 3, 3)
    assert (record.status, record.status_requests_used, record.last_known_state) == (Status.WAITING, 0, None)
    assert (record.next_poll_at, record.due_boot, record.delay_source) == (
        T0 + 2_500,
        NOW.boot + 2_500,
        DelaySource.LOCAL_BACKOFF,
    )
    assert warnings == ()


@pytest.mark.rule("B1")
def test_a_command_may_lower_a_limit_and_is_refused_above_its_ceiling() -> None:
    record, _ = submit(asked=Requested(max_status_requests=10, deadline_in=10 * MINUTE))
    assert (record.max_status_requests, record.deadline_at) == (10, T0 + 10 * MINUTE)
    error = refused(max_status_requests=31)
    assert str(error) == (
        "--max-requests 31 is above limits.default.max_status_requests of the contract (it sets no "
        "limits.max.max_status_requests) = 30: ask for 30 or less; more comes only by an operator's grant"
    )
    assert error.details == {"limit": "max_status_requests", "asked": 31, "allowed": 30}
    assert "40 min" in str(refused(with_policy(ceiling=Limits(deadline=40 * MINUTE)), deadline_in=41 * MINUTE))


@pytest.mark.rule("B1")
def test_default_and_maximum_of_a_contract_are_told_apart_and_the_configuration_fills_in() -> None:
    wide = with_policy(ceiling=Limits(max_status_requests=40))
    assert submit(wide)[0].max_status_requests == 30
    assert submit(wide, asked=Requested(max_status_requests=40))[0].max_status_requests == 40
    bare = Terms(policy=Policy(), contract_digest="d1", ceilings=Limits(max_status_requests=50))
    asked = {"deadline_in": HOUR, "max_transport_failures": 3, "max_rate_limited": 3}
    assert "[ceilings] max_status_requests in config.toml = 50" in str(refused(bare, max_status_requests=51, **asked))


@pytest.mark.rule("B1")
@pytest.mark.parametrize("limit", ["deadline", "max_status_requests", "max_transport_failures", "max_rate_limited"])
def test_a_remote_wait_without_one_of_its_limits_is_refused(limit: str) -> None:
    error = refused(with_policy(default=msgspec.structs.replace(DEFAULT, **{limit: None})))
    assert f"{limit} is missing" in str(error)
    assert "give --" in str(error)


@pytest.mark.rule("B1")
def test_a_local_provider_needs_no_failure_and_rate_maxima() -> None:
    local = Terms(policy=Policy(default=Limits(HOUR, 30)), contract_digest="d1", remote=False)
    record, _ = submit(local)
    assert (record.max_transport_failures, record.max_rate_limited) == (30, 30)


@pytest.mark.rule("B1")
@pytest.mark.parametrize(
    "name", ["deadline_in", "max_status_requests", "max_transport_failures", "max_rate_limited", "useful_until"]
)
@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), 10**18, True, "12", 1.5])
def test_missing_zero_negative_not_finite_and_absurd_values_are_refused(name: str, value: object) -> None:
    open_terms = Terms(policy=Policy(default=DEFAULT, ceiling=Limits(10**20, 10**9, 10**9, 10**9)), contract_digest="d")
    assert str(refused(open_terms, **{name: value})).startswith("--")


@pytest.mark.rule("B1")
@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"deadline_in": 367 * DAY}, "at most 366 d"),
        ({"max_status_requests": 100_001}, "at most 100000"),
        ({"max_transport_failures": 1_001}, "at most 1000"),
        ({"deadline_at": T0}, "already past"),
        ({"deadline_at": Instant(T0 - DAY)}, "already past"),
        ({"useful_until": T0}, "already past"),
        ({"useful_until": Instant(T0 + 367 * DAY)}, "more than 366 days"),
        ({"started_at": Instant(T0 + HOUR)}, "lies ahead of now"),
        ({"started_at": Instant(T0 - 367 * DAY)}, "more than 366 days ago"),
        ({"deadline_at": Instant(T0 + 1), "deadline_in": 5}, "given twice"),
    ],
)
def test_absurd_and_past_values_name_what_is_accepted(asked: dict[str, Any], said: str) -> None:
    wide = Terms(policy=Policy(default=DEFAULT, ceiling=Limits(10**20, 10**9, 10**9, 10**9)), contract_digest="d1")
    assert said in str(refused(wide, **asked))


@pytest.mark.rule("B1")
def test_a_deadline_beyond_retention_is_refused_and_the_last_possible_one_named() -> None:
    terms = with_policy(default=msgspec.structs.replace(DEFAULT, deadline=2 * DAY), retention=DAY)
    assert "2026-03-03T10:00:00Z or earlier" in str(refused(terms))
    assert submit(terms, asked=Requested(deadline_in=DAY))[0].deadline_at == T0 + DAY


@pytest.mark.rule("B6")
def test_relative_deadlines_count_from_the_start_of_the_job() -> None:
    early = Instant(T0 - 20 * MINUTE)
    for record in (submit(asked=Requested(started_at=early))[0], submit(response_date=early)[0]):
        assert (record.started_at, record.deadline_at) == (early, T0 + 40 * MINUTE)
        assert record.deadline_boot == NOW.boot + 40 * MINUTE
    assert "the job started at" in str(refused(started_at=Instant(T0 - 2 * HOUR)))
    assert submit()[0].started_at == T0
    assert submit(response_date=Instant(T0 + DAY))[0].started_at == T0
    both = submit(asked=Requested(started_at=T0), response_date=early)[0]
    assert both.started_at == T0


@pytest.mark.rule("B5")
def test_both_deadlines_are_stored_and_an_earlier_useful_time_is_told() -> None:
    record, warnings = submit(asked=Requested(useful_until=Instant(T0 + 30 * MINUTE)))
    assert (record.useful_until, record.deadline_at) == (T0 + 30 * MINUTE, T0 + HOUR)
    assert any("useful_until 2026-03-02T10:30:00Z is 30 min before the deadline" in one for one in warnings)
    _, warned = submit(provider_expires_at=Instant(T0 + MINUTE))
    assert any("expires at 2026-03-02T10:01:00Z" in one for one in warned)


@pytest.mark.rule("B1")
def test_a_budget_that_cannot_be_used_up_is_warned_of_with_numbers() -> None:
    _, warnings = submit(with_policy(default=Limits(HOUR, 5_000, 3, 3)))
    fit = requests_within(Schedule(), HOUR, FASTEST)
    assert warnings == (
        f"max_status_requests 5000 cannot be used up: at the fastest local pace {fit} requests fit into the 1 h "
        "until the deadline",
    )
    assert request_time(Schedule(), fit, FASTEST) < HOUR <= request_time(Schedule(), fit + 1, FASTEST)


@pytest.mark.rule("B1")
def test_a_budget_that_backoff_spends_in_its_first_tenth_is_warned_of_with_numbers() -> None:
    _, warnings = submit(with_policy(default=Limits(HOUR, 4, 3, 3)))
    assert warnings == (
        "max_status_requests 4 is spent after about 56 s at the local pace, in the first tenth of the 1 h until the "
        "deadline; then nothing is asked",
    )


@pytest.mark.rule("B1")
@given(schedules(), st.integers(1, 400), st.integers(1, 10 * HOUR))
def test_the_pace_arithmetic_agrees_with_counting_one_by_one(plan: Schedule, requests: int, span: int) -> None:
    from pollcore.submission.pace import _delay

    total = sum(_delay(plan, k, MEDIAN) for k in range(requests))
    assert request_time(plan, requests, MEDIAN) == total
    fit = requests_within(plan, total, MEDIAN)
    assert fit == requests - 1


@pytest.mark.rule("B2", "E7")
def test_a_later_operation_for_a_job_goes_on_with_its_counters_and_asks_before_anything() -> None:
    earlier = Carried(12, 2, 1, 12, "running", memory(first_seen_at=T0))
    record, _ = submit(earlier=earlier)
    assert (record.status, record.stop_reason) == (Status.ESCALATED, StopReason.EXTENSION_REQUESTED)
    assert record.stop_detail is StopDetail.SECOND_SUBMISSION
    assert (record.status_requests_used, record.transport_failures_used, record.rate_limited_used) == (12, 2, 1)
    assert (record.requests_left, record.max_transport_failures, record.deadline_at) == (30, 5, T0 + HOUR)
    assert (record.next_poll_at, record.last_known_state, record.memory.first_seen_at) == (None, "running", T0)
    assert decide.before(record, now=NOW.after(1)) == decide.Leave("escalated")
    granted, _ = submit(earlier=earlier, granted=True)
    assert (granted.status, granted.status_requests_used) == (Status.WAITING, 12)


@pytest.mark.rule("B2")
def test_counters_are_carried_from_all_earlier_operations() -> None:
    first = operation(status=Status.CLOSED, status_requests_used=9, last_known_state="queued")
    second = operation(status=Status.CLOSED, status_requests_used=12, transport_failures_used=1)
    found = submission.carried([second, first])
    assert (found.status_requests_used, found.transport_failures_used, found.last_known_state) == (12, 1, "queued")


@pytest.mark.rule("B2", "S7")
def test_an_open_operation_is_a_duplicate_a_final_one_is_returned_a_closed_one_is_neither() -> None:
    for status in Status:
        known = [operation(status=Status.CLOSED), operation(status=status)]
        opened, final = submission.open_for_job(known), submission.final_for_job(known)
        assert (opened is not None) == (not status.is_end)
        assert (final is not None) == (status.is_end and status is not Status.CLOSED)
    error = submission.refuse_duplicate(operation())
    assert error.code == "duplicate_job"
    assert "op_1" in str(error)


@pytest.mark.rule("S7")
def test_the_same_submission_again_is_the_same_and_a_different_one_is_not() -> None:
    record, _ = submit()
    assert submission.same_submission(record, GIVEN, "acme-key")
    assert submission.same_submission(record, msgspec.structs.replace(GIVEN, caller="other", label="x"), "acme-key")
    for other in ({"job_id": "job-2"}, {"account": "b"}, {"request_fingerprint": "ab"}, {"params": {"a": 1}}):
        assert not submission.same_submission(record, msgspec.structs.replace(GIVEN, **other), "acme-key")
    assert not submission.same_submission(record, GIVEN, "other-key")
    fingerprint = msgspec.structs.replace(GIVEN, request_fingerprint="ab")
    assert submission.same_job(GIVEN, fingerprint)
    assert "is taken" in str(submission.refuse_taken(record))


@pytest.mark.rule("S7")
def test_the_account_is_never_empty_for_a_remote_provider() -> None:
    sources = {"command": "a", "instance": "b", "contract": "c", "credential": "d", "host": "e"}
    for name in sources:
        assert submission.account_of(**sources, remote=True) == sources[name]
        sources[name] = ""
    with pytest.raises(Refused, match="--account"):
        submission.account_of(**sources, remote=True)
    assert submission.account_of(**sources, remote=False) == "local"
    with pytest.raises(Refused, match="account is empty"):
        submit(given=msgspec.structs.replace(GIVEN, account=" "))


@pytest.mark.rule("B1")
def test_caps_for_a_caller_are_refused_with_their_numbers() -> None:
    def cap(opened: int, sent: int) -> None:
        submission.check_caps(
            caller="agent-7",
            account="main",
            open_operations=opened,
            requests_last_hour=sent,
            max_open=5,
            max_requests_an_hour=100,
        )

    cap(4, 99)
    with pytest.raises(Refused, match="open_operations = 5"):
        cap(5, 0)
    with pytest.raises(Refused, match="requests_per_hour = 100"):
        cap(0, 100)


@pytest.mark.rule("T5", "T4", "H1")
def test_guidance_in_the_submissions_response_is_obeyed_or_stops_at_once() -> None:
    record, _ = submit(guidance=retry_after(60_000))
    assert (record.next_poll_at, record.delay_source) == (T0 + 60_000, DelaySource.PROVIDER_RETRY_AFTER)
    late, _ = submit(guidance=retry_after(2 * HOUR))
    assert (late.status, late.stop_reason) == (Status.ESCALATED, StopReason.GUIDANCE_BEYOND_DEADLINE)
    assert late.guidance_until == T0 + 2 * HOUR
    assert submit(guidance=hint(2 * HOUR))[0].delay_source is DelaySource.LOCAL_BACKOFF


@pytest.mark.rule("T2", "B6")
@given(schedules(), st.floats(0, 1, exclude_max=True), st.integers(1, 48 * HOUR))
def test_the_first_poll_never_lies_behind_the_end_of_the_wait(plan: Schedule, draw: float, span: int) -> None:
    terms = with_policy(default=Limits(span, 30, 3, 3), schedule=plan)
    record, _ = submit(terms, draw=draw)
    assert record.next_poll_at is not None
    assert T0 < record.next_poll_at <= record.deadline_at
    assert record.due_boot == NOW.boot + record.next_poll_at - T0


@pytest.mark.rule("A1")
def test_a_submission_is_told_with_who_handed_it_over() -> None:
    from pollcore import outcome

    record, _ = submit()
    (event,) = outcome.submitted_events(record, now=NOW, warnings=("w",))
    assert (event.caller, event.text, event.max_requests) == ("unnamed (OS user ana)", "job-1", 30)
    assert (event.decision, event.notes, event.next_poll_at) == ("wait", ("w",), record.next_poll_at)
