"""The record and the audit after a decision."""

from __future__ import annotations

import pytest
from tests.core.rules.make import NOW, POLICY, RESULT, T0, answer, fault, memory, operation, retry_after

from pollcore import decide, outcome
from pollcore.facts import (
    HOUR,
    AuditEvent,
    BootMs,
    DelaySource,
    Escalate,
    EventName,
    Fault,
    FaultKind,
    Instant,
    Memory,
    Moment,
    Observation,
    Operation,
    Policy,
    Schedule,
    Status,
    StopDetail,
    StopReason,
    Verdict,
    Wait,
)

SETTLES = Policy(schedule=Schedule(settle_delay=30_000))


def step(
    op: Operation,
    reading: Observation | Fault,
    *,
    policy: Policy = POLICY,
    now: Moment = NOW,
    seen: Memory | None = None,
) -> tuple[Operation, AuditEvent]:
    decision = decide.decide(op, reading, policy=policy, now=now, draw=0.0)
    after = outcome.after_reading(op, reading, seen or op.memory, decision, policy=policy, now=now)
    (event,) = outcome.reading_events(op, after, reading, decision, now=now)
    return after, event


@pytest.mark.rule("G4", "O1")
def test_a_poll_in_a_wait_that_goes_on_keeps_the_version() -> None:
    after, _ = step(operation(version=7), answer(state="half"))
    assert (after.version, after.status, after.last_known_state) == (7, Status.WAITING, "half")
    assert (after.completed_polls, after.delay_source) == (1, DelaySource.LOCAL_BACKOFF)
    assert after.next_poll_at == T0 + 5_000
    assert after.due_boot == NOW.boot + 5_000


@pytest.mark.rule("S1")
def test_the_exchange_and_the_job_are_recorded_apart() -> None:
    after, _ = step(operation(last_known_state="running"), answer(Verdict.TRANSPORT_FAILURE, "<html>", code=502))
    assert after.last_http is not None
    assert (after.last_http.code, after.last_known_state) == (502, "running")
    lost, _ = step(after, fault(FaultKind.RESET))
    assert (lost.last_fault, lost.last_http, lost.last_known_state) == ("reset", after.last_http, "running")
    again, _ = step(lost, answer())
    assert (again.last_fault, again.last_fault_at, again.last_fault_may_have_been_sent) == (None, None, False)


@pytest.mark.rule("S6")
def test_another_jobs_state_is_not_recorded_as_this_jobs() -> None:
    reading = answer(Verdict.INTEGRATION, "failed", detail=StopDetail.WRONG_JOB)
    after, _ = step(operation(last_known_state="running"), reading)
    assert (after.status, after.last_known_state) == (Status.ESCALATED, "running")
    contradicted = answer(Verdict.INTEGRATION, "succeeded", detail=StopDetail.SUCCESS_CONTRADICTED)
    assert step(operation(), contradicted)[0].last_known_state == "succeeded"


@pytest.mark.rule("S9", "O1")
def test_a_success_is_stored_with_its_result_in_the_record_that_ends() -> None:
    after, event = step(operation(version=3), answer(Verdict.SUCCEEDED, "succeeded"))
    assert (after.status, after.result, after.version) == (Status.SUCCEEDED, RESULT, 4)
    assert (after.next_poll_at, after.due_boot, after.stop_reason) == (None, None, None)
    assert (event.decision, event.state) == ("succeed", "succeeded")


@pytest.mark.rule("O2", "S9")
@pytest.mark.parametrize("status", [s for s in Status if s.is_end])
def test_a_late_answer_changes_nothing_after_an_end(status: Status) -> None:
    ended = operation(status=status)
    for reading in (answer(Verdict.FAILED, "failed"), answer(), fault()):
        assert step(ended, reading)[0] is ended


@pytest.mark.rule("S9", "E2")
def test_a_held_record_keeps_its_hold_through_an_answer_and_ends_by_a_final_one() -> None:
    held = operation(
        status=Status.HELD, hold_until=Instant(T0 + 60_000), due_boot=BootMs(NOW.boot + 60_000), next_poll_at=None
    )
    stepped = Moment(Instant(T0 + 7_000), NOW.boot, "boot-1")
    after, _ = step(held, answer(), now=stepped)
    assert (after.status, after.hold_until, after.due_boot) == (Status.HELD, held.hold_until, held.due_boot)
    assert step(held, answer(Verdict.SUCCEEDED, "done"))[0].status is Status.SUCCEEDED


@pytest.mark.rule("B2", "B4")
def test_each_reading_is_charged_to_its_own_budget_alone() -> None:
    def used(reading: Observation | Fault) -> tuple[int, int, int]:
        after, _ = step(operation(rate_limited_in_a_row=1), reading)
        return after.transport_failures_used, after.rate_limited_used, after.rate_limited_in_a_row

    assert used(answer()) == (0, 0, 0)
    assert used(answer(Verdict.TRANSPORT_FAILURE, None, code=503)) == (1, 0, 0)
    assert used(answer(Verdict.RATE_LIMITED, None, code=429)) == (0, 1, 2)
    assert used(answer(Verdict.QUOTA_EXHAUSTED, None, code=429)) == (0, 1, 2)
    assert used(fault(FaultKind.CUT_OFF)) == (1, 0, 1)
    for kind in (FaultKind.NOT_SENT, FaultKind.ANSWER_LOST, FaultKind.TOO_LARGE, FaultKind.FOREIGN_ORIGIN):
        assert used(fault(kind)) == (0, 0, 1)


@pytest.mark.rule("B2", "B4")
def test_a_granted_check_never_raises_a_spent_counter_above_its_maximum() -> None:
    spent = operation(transport_failures_used=3, rate_limited_used=3, check_once=True)
    assert step(spent, fault())[0].transport_failures_used == 3
    assert step(spent, answer(Verdict.RATE_LIMITED, None, code=429))[0].rate_limited_used == 3


@pytest.mark.rule("B2")
def test_what_no_request_brought_is_not_counted() -> None:
    op = operation(completed_polls=4)
    reading = answer(Verdict.TRANSPORT_FAILURE, None, code=503)
    decision = decide.decide(op, reading, policy=POLICY, now=NOW, draw=0.0, counted=False)
    after = outcome.after_reading(op, reading, op.memory, decision, policy=POLICY, now=NOW, counted=False)
    assert (after.completed_polls, after.transport_failures_used) == (4, 0)


@pytest.mark.rule("T5")
def test_guidance_stays_open_through_a_stop_so_that_no_grant_asks_before_it() -> None:
    after, _ = step(operation(), answer(Verdict.UNKNOWN, "compiling", guidance=retry_after(60_000)))
    assert (after.status, after.guidance_until) == (Status.ESCALATED, T0 + 60_000)
    fresh, _ = step(operation(guidance_until=Instant(T0 - 1)), answer())
    assert fresh.guidance_until is None


@pytest.mark.rule("E7")
def test_an_escalated_record_sends_nothing_and_is_due_again_when_its_deadline_passes() -> None:
    after, _ = step(operation(), answer(Verdict.UNKNOWN, "compiling"))
    assert (after.next_poll_at, after.due_boot) == (None, NOW.boot + HOUR)
    assert (after.stop_reason, after.version) == (StopReason.UNKNOWN_STATE, 2)
    at_end = NOW.after(HOUR)
    passed = decide.before(after, now=at_end)
    assert isinstance(passed, decide.LimitPassed)
    later, (event,) = outcome.after_limit(after, passed, now=at_end)
    assert (later.version, later.status, later.due_boot) == (3, Status.ESCALATED, None)
    assert event.notes == ("the deadline passed while the question was open",)
    assert decide.before(later, now=at_end) == decide.Leave("escalated")


@pytest.mark.rule("E7", "B5")
@pytest.mark.parametrize("useful", [HOUR // 2, HOUR, 2 * HOUR])
def test_each_limit_that_passes_while_a_question_is_open_is_told_once_by_its_own_name(useful: int) -> None:
    op, _ = step(operation(useful_until=Instant(T0 + useful)), answer(Verdict.UNKNOWN, "compiling"))
    told = []
    for minutes in range(0, 180, 15):
        now = NOW.after(minutes * 60_000)
        passed = decide.before(op, now=now)
        if isinstance(passed, decide.LimitPassed):
            op, (event,) = outcome.after_limit(op, passed, now=now)
            told.append((minutes, event.notes[0].removesuffix(" passed while the question was open")))
    ends = {HOUR // 60_000: "the deadline"} | ({} if useful == HOUR else {useful // 60_000: "useful_until"})
    assert told == sorted(ends.items())


@pytest.mark.rule("X8")
def test_a_final_answer_waits_for_its_confirmation_through_faults_and_limits() -> None:
    failed = answer(Verdict.FAILED, "failed")
    first, _ = step(operation(), failed, policy=SETTLES, seen=memory(polls=1))
    assert first.memory == memory(polls=1, settling="failed:failed")
    through, _ = step(first, fault(), policy=SETTLES)
    assert through.memory.settling == "failed:failed"
    last, _ = step(through, failed, policy=SETTLES)
    assert (last.status, last.memory.settling) == (Status.FAILED, None)
    spent, _ = step(operation(status_requests_used=20), failed, policy=SETTLES)
    assert (spent.status, spent.memory.settling) == (Status.ESCALATED, "failed:failed")
    differs, _ = step(first, answer(), policy=SETTLES)
    assert (differs.stop_detail, differs.memory.settling) == (StopDetail.TERMINAL_CONTRADICTION, None)


@pytest.mark.rule("E2")
def test_a_granted_check_is_used_up_by_its_answer_and_clears_the_stop_when_it_goes_on() -> None:
    op = operation(check_once=True, stop_reason=StopReason.UNKNOWN_STATE, stop_explanation="compiling")
    after, _ = step(op, answer())
    assert (after.check_once, after.stop_reason, after.stop_explanation) == (False, None, None)
    assert after.version == op.version + 1
    again, _ = step(op, answer(Verdict.UNKNOWN, "linking"))
    assert (again.check_once, again.stop_reason, again.status) == (False, StopReason.UNKNOWN_STATE, Status.ESCALATED)
    chained, _ = step(op, answer(state=None, continues=True))
    assert chained.check_once


@pytest.mark.rule("T8", "T11")
def test_moving_the_next_request_changes_the_plan_alone() -> None:
    op = operation(version=5)
    wait = Wait(next_poll_at=Instant(T0 + 9_000), delay_ms=9_000, source=DelaySource.ORIGIN_DOWN)
    after = outcome.after_schedule(op, wait, now=NOW)
    (event,) = outcome.schedule_events(op, after, wait, now=NOW)
    assert (after.version, after.next_poll_at, after.delay_source) == (5, T0 + 9_000, DelaySource.ORIGIN_DOWN)
    assert (after.status_requests_used, after.completed_polls) == (op.status_requests_used, op.completed_polls)
    assert (event.event, event.delay_source, event.next_poll_at) == (
        EventName.SCHEDULED,
        DelaySource.ORIGIN_DOWN,
        T0 + 9_000,
    )


@pytest.mark.rule("X2", "A1")
def test_a_stop_without_a_request_is_recorded_with_its_reason() -> None:
    op = operation(last_known_state="running", version=2)
    at_end = NOW.after(HOUR)
    found = decide.before(op, now=at_end)
    assert isinstance(found, Escalate)
    after = outcome.after_stop(op, found, now=at_end)
    (event,) = outcome.stop_events(op, after, found, now=at_end)
    assert (after.status, after.stop_reason, after.version) == (Status.ESCALATED, StopReason.DEADLINE_EXCEEDED, 3)
    assert (event.event, event.reason, event.state_before) == (EventName.STOPPED, "deadline_exceeded", "running")


@pytest.mark.rule("G7")
def test_a_wish_for_approval_keeps_the_plan_and_runs_to_the_deadline() -> None:
    op = operation()
    ask = decide.stop(op, StopReason.CALL_APPROVAL)
    after = outcome.after_stop(op, ask, now=NOW)
    (event,) = outcome.stop_events(op, after, ask, now=NOW)
    assert (after.status, after.stop_reason, after.next_poll_at) == (Status.AWAITING_APPROVAL, None, op.next_poll_at)
    assert (after.due_boot, event.event) == (NOW.boot + HOUR, EventName.QUESTION_OPENED)


@pytest.mark.rule("A1", "A2")
def test_the_event_of_an_answer_holds_all_that_a_story_line_needs() -> None:
    op = operation(last_known_state="running", next_poll_at=Instant(T0 - 300), status_requests_used=4)
    reading = answer(Verdict.TRANSPORT_FAILURE, None, code=503, guidance=retry_after(120_000))
    _, event = step(op, reading)
    assert event == AuditEvent(
        at=T0,
        event=EventName.POLLED,
        operation_id="op_1",
        state_before="running",
        http=503,
        request_id="req-1",
        planned_at=Instant(T0 - 300),
        sent_at=Instant(T0 - 200),
        delay_source=DelaySource.PROVIDER_RETRY_AFTER,
        next_poll_at=Instant(T0 + 120_000),
        retry_after="Retry-After 120",
        requests_used=4,
        max_requests=20,
        deadline_at=Instant(T0 + HOUR),
        decision="wait",
    )


@pytest.mark.rule("A1", "B4")
def test_a_lost_answer_and_a_fault_are_told_apart() -> None:
    assert step(operation(), fault(FaultKind.ANSWER_LOST))[1].event is EventName.ANSWER_LOST
    _, event = step(operation(), fault(FaultKind.DNS))
    assert (event.event, event.fault, event.http) == (EventName.FAULTED, "dns", None)


@pytest.mark.rule("A1", "E5")
def test_an_end_that_asks_nothing_is_told_as_a_stop() -> None:
    _, event = step(operation(cancel_granted=True), answer(Verdict.CANCELLED, "canceled"))
    assert (event.decision, event.reason) == ("stop", "job_cancelled")


@pytest.mark.rule("B5", "S10")
def test_the_providers_expiry_is_a_fact_of_its_own_and_moves_no_limit() -> None:
    after, _ = step(operation(), answer(provider_expires_at=Instant(T0 + 2 * HOUR)))
    assert after.provider_expires_at == T0 + 2 * HOUR
    assert (after.deadline_at, after.useful_until, after.version) == (T0 + HOUR, None, 1)
