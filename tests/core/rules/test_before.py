"""The checks before a request, and the waits that other operations cause."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.rules.make import NOW, POLICY, T0, operation

from pollcore import decide, outcome
from pollcore.card.group_lines import happened
from pollcore.facts import (
    HOUR,
    BootMs,
    DelaySource,
    Escalate,
    Instant,
    Moment,
    Policy,
    Schedule,
    Status,
    StopDetail,
    StopReason,
    Wait,
)

DUE_IN_30: dict[str, Any] = {"next_poll_at": Instant(T0 + 30_000), "due_boot": BootMs(NOW.boot + 30_000)}


def check(now: Moment = NOW, **changes: Any) -> decide.Before:
    return decide.before(operation(**changes), now=now)


@pytest.mark.rule("O7")
@pytest.mark.parametrize("status", [s for s in Status if s.is_end])
def test_an_end_is_left_alone_even_when_every_limit_has_passed(status: Status) -> None:
    assert check(NOW.after(9 * HOUR), status=status) == decide.Leave("final")


@pytest.mark.rule("O7", "T6")
def test_a_request_goes_out_at_its_time_and_not_before() -> None:
    assert check(NOW.after(29_999), **DUE_IN_30) == decide.Leave("not_due")
    assert check(NOW.after(30_000), **DUE_IN_30) == decide.Due()


@pytest.mark.rule("T6", "B3", "X2")
@pytest.mark.parametrize("status", [Status.WAITING, Status.HELD, Status.AWAITING_APPROVAL])
def test_after_any_sleep_the_deadline_is_looked_at_first(status: Status) -> None:
    found = check(NOW.after(8 * HOUR), status=status, status_requests_used=20, hold_until=Instant(T0 + 9 * HOUR))
    assert isinstance(found, Escalate)
    assert found.reason is StopReason.DEADLINE_EXCEEDED


@pytest.mark.rule("B5", "O7")
def test_usefulness_ends_a_wait_also_while_it_is_held() -> None:
    for status in (Status.WAITING, Status.HELD):
        found = check(NOW.after(60_000), status=status, useful_until=Instant(T0 + 60_000), hold_until=T0)
        assert isinstance(found, Escalate)
        assert found.reason is StopReason.USEFULNESS_ENDED


@pytest.mark.rule("B3", "X3")
def test_a_spent_request_budget_stops_before_the_schedule_is_looked_at() -> None:
    found = check(status_requests_used=20, **DUE_IN_30)
    assert isinstance(found, Escalate)
    assert found.reason is StopReason.REQUEST_BUDGET_EXHAUSTED


@pytest.mark.rule("X1", "B4")
def test_a_spent_failure_budget_lets_nothing_out_but_a_granted_check() -> None:
    found = check(transport_failures_used=3)
    assert isinstance(found, Escalate)
    assert found.reason is StopReason.PROVIDER_FAILURE
    assert check(transport_failures_used=3, check_once=True) == decide.Due()


@pytest.mark.rule("T9")
def test_a_wall_clock_set_back_during_a_wait_neither_lengthens_it_nor_the_deadline() -> None:
    at_30 = Moment(Instant(T0 - HOUR), BootMs(NOW.boot + 30_000), "boot-1")
    assert check(at_30, **DUE_IN_30) == decide.Due()
    at_end = Moment(Instant(T0 - HOUR), BootMs(NOW.boot + HOUR), "boot-1")
    found = check(at_end, **DUE_IN_30)
    assert isinstance(found, Escalate)
    assert found.reason is StopReason.DEADLINE_EXCEEDED


@pytest.mark.rule("T9", "B5")
def test_a_useful_time_that_has_come_by_elapsed_time_counts_though_the_wall_was_set_back() -> None:
    back = Moment(Instant(T0 - HOUR), BootMs(NOW.boot + 60_000), "boot-1")
    due = BootMs(NOW.boot + 60_000)
    found = check(back, next_poll_at=Instant(T0 + 90_000), useful_until=Instant(T0 + 60_000), due_boot=due)
    assert isinstance(found, Escalate)
    assert found.reason is StopReason.USEFULNESS_ENDED


@pytest.mark.rule("T9", "T5")
def test_a_wall_clock_set_forward_does_not_cut_guidance_short() -> None:
    forward = Moment(Instant(T0 + 60_000), BootMs(NOW.boot + 10_000), "boot-1")
    assert check(forward, **DUE_IN_30) == decide.Leave("not_due")


@pytest.mark.rule("O7", "E2")
def test_a_hold_lets_nothing_out_until_its_time_and_then_ends() -> None:
    held: dict[str, Any] = {
        "status": Status.HELD,
        "hold_until": Instant(T0 + 60_000),
        "due_boot": BootMs(NOW.boot + 60_000),
    }
    assert check(NOW.after(59_999), **held) == decide.Leave("held")
    assert check(NOW.after(60_000), **held) == decide.EndHold()
    stepped = Moment(Instant(T0 + HOUR // 2), BootMs(NOW.boot + 10_000), "boot-1")
    assert check(stepped, **held) == decide.Leave("held")


@pytest.mark.rule("E7")
def test_a_limit_that_passes_while_a_card_is_open_is_told_once_and_stops_nothing() -> None:
    card: dict[str, Any] = {"status": Status.ESCALATED, "stop_reason": StopReason.UNKNOWN_STATE}
    assert check(NOW, **card, due_boot=BootMs(NOW.boot + HOUR)) == decide.Leave("escalated")
    found = check(NOW.after(HOUR), **card, due_boot=BootMs(NOW.boot + HOUR))
    assert found == decide.LimitPassed(StopReason.DEADLINE_EXCEEDED)
    assert check(NOW.after(HOUR), **card, due_boot=None) == decide.Leave("escalated")


@pytest.mark.rule("G7", "O7")
def test_a_wait_for_approval_sends_nothing_while_its_deadline_runs() -> None:
    found = check(NOW.after(60_000), status=Status.AWAITING_APPROVAL, due_boot=BootMs(NOW.boot + HOUR))
    assert found == decide.Leave("awaiting_approval")


def wait_for(left: int, *, policy: Policy = POLICY, now: Moment = NOW, **given: Any) -> Wait | Escalate:
    source = given.pop("source", DelaySource.SHARED_COOLDOWN)
    changes = given.pop("record", {})
    return decide.shared_wait(operation(**changes), left, policy=policy, now=now, draw=0.9, source=source, **given)


@pytest.mark.rule("T9", "O7")
@pytest.mark.parametrize("status", [Status.HELD, Status.ESCALATED, Status.AWAITING_APPROVAL])
def test_a_record_that_a_new_boot_looks_at_early_is_armed_again_and_nothing_else_happens(status: Status) -> None:
    op = operation(status=status, hold_until=Instant(T0 + 60_000), due_boot=NOW.boot, stop_reason=None, version=4)
    assert decide.before(op, now=NOW) == decide.Rearm()
    armed = outcome.after_rearm(op, now=NOW)
    assert (armed.status, armed.version) == (status, 4)
    assert isinstance(decide.before(armed, now=NOW), decide.Leave)


@pytest.mark.rule("T8")
def test_a_cool_down_holds_back_spread_and_stops_what_it_carries_past_its_deadline() -> None:
    found = wait_for(600_000)
    assert isinstance(found, Wait)
    assert 600_000 < found.delay_ms <= 660_000
    assert (found.source, found.guidance_until) == (DelaySource.SHARED_COOLDOWN, T0 + 600_000)
    late = wait_for(HOUR)
    assert isinstance(late, Escalate)
    assert late.reason is StopReason.GUIDANCE_BEYOND_DEADLINE
    assert late.cause == "shared_cooldown:acme:main:acme-key"


@pytest.mark.rule("T8", "B5")
def test_a_cool_down_beyond_useful_until_ends_the_usefulness() -> None:
    found = wait_for(60_000, record={"useful_until": Instant(T0 + 60_000)})
    assert isinstance(found, Escalate)
    assert found.reason is StopReason.USEFULNESS_ENDED


@pytest.mark.rule("T11")
def test_an_origin_that_is_down_lets_the_deadline_run_and_names_itself_when_it_comes() -> None:
    found = wait_for(HOUR, source=DelaySource.ORIGIN_DOWN)
    assert isinstance(found, Wait)
    assert found.next_poll_at == T0 + HOUR
    stop = check(NOW.after(HOUR), delay_source=DelaySource.ORIGIN_DOWN)
    assert isinstance(stop, Escalate)
    assert stop.cause == "origin_down:https://api.example.test"


@pytest.mark.rule("T8", "T4")
def test_a_pause_is_no_guidance_and_is_cut_at_the_deadline() -> None:
    found = wait_for(2 * HOUR, source=DelaySource.PAUSED, notes=("paused",))
    assert isinstance(found, Wait)
    assert (found.next_poll_at, found.guidance_until, found.notes) == (T0 + HOUR, None, ("paused",))


@pytest.mark.rule("E10", "E3")
@pytest.mark.parametrize(
    ("source", "cause", "words"),
    [
        (DelaySource.SHARED_COOLDOWN, "shared_cooldown:acme:main:acme-key", "the provider asked for a pause"),
        (DelaySource.ORIGIN_DOWN, "origin_down:https://api.example.test", "the provider's origin stopped answering"),
        (DelaySource.PAUSED, "paused:acme", "the provider was paused by hand"),
        (DelaySource.CAPPED, "capped:acme", "the caps of the provider left no room"),
        (DelaySource.TOKEN_PENDING, None, None),
        (DelaySource.LOCAL_BACKOFF, None, None),
    ],
)
def test_what_kept_operations_waiting_until_their_deadline_is_the_cause_that_they_share(
    source: DelaySource, cause: str | None, words: str | None
) -> None:
    stop = check(NOW.after(HOUR), delay_source=source)
    assert isinstance(stop, Escalate)
    assert stop.cause == (cause or f"deadline_exceeded:{operation().operation_id}")
    assert happened(stop.cause).startswith(words or "deadline_exceeded:")


@pytest.mark.rule("T10")
def test_a_wait_for_others_tells_the_risk_of_the_longest_interval() -> None:
    found = wait_for(60_000, policy=Policy(schedule=Schedule(max_interval=30_000)))
    assert isinstance(found, Wait)
    assert any("max_interval" in note for note in found.notes)


@pytest.mark.rule("E1", "E10")
def test_every_reason_that_stops_an_operation_has_one_status() -> None:
    never = {StopReason.OPERATOR_REQUEST, StopReason.MODE_CHANGE}
    assert set(decide.STATUS_OF) == set(StopReason) - never
    stop = decide.stop(operation(), StopReason.CREDENTIAL_UNAVAILABLE, StopDetail.CREDENTIAL_MISSING)
    assert (stop.status, stop.cause) == (Status.ESCALATED, "credential_missing:acme-key")
