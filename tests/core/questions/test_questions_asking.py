"""Asking and lowering: what agents and the command line can do, and that it never gives anything."""

from __future__ import annotations

import msgspec
import pytest
from tests.core.questions import made

from pollcore import grants
from pollcore.facts import (
    LOWERS_AUTHORITY,
    MINUTE,
    ChoiceKind,
    EventName,
    Instant,
    PollconsoleError,
    Refused,
    Status,
    StopReason,
)

K = ChoiceKind
R = StopReason


def ask(op, question=None, *, minutes=15, checks=4, policy=made.POLICY, now=made.NOW):
    return grants.request_extension(
        op,
        question,
        minutes=minutes,
        checks=checks,
        because="large",
        by="agent-7",
        policy=policy,
        now=now,
        new_id="esc-9",
    )


@pytest.mark.rule("G5", "E7")
def test_an_agents_request_opens_a_question_and_changes_no_limit():
    op = made.operation()
    done = ask(op)
    assert done.opened.reason is R.EXTENSION_REQUESTED
    assert (done.opened.minutes, done.opened.checks, done.opened.asked_by) == (15, 4, "agent-7")
    assert done.operation.status is Status.WAITING
    assert (done.operation.deadline_at, done.operation.max_status_requests) == (op.deadline_at, op.max_status_requests)
    assert (done.operation.next_poll_at, done.opened.version) == (op.next_poll_at, done.operation.version)
    assert done.events[0].event is EventName.EXTENSION_REQUESTED


@pytest.mark.rule("G5", "E4")
@pytest.mark.parametrize(
    ("op", "question", "size", "says"),
    [
        (made.operation(), None, (20, 4), "15 min / 4 checks, 60 min / 10 checks"),
        (made.operation(extensions_used=3), None, (15, 4), "max_extensions"),
        (made.stopped(R.UNKNOWN_STATE), made.question(R.UNKNOWN_STATE, made.stopped(R.UNKNOWN_STATE)), (15, 4), "open"),
        (made.stopped(R.UNKNOWN_STATE), None, (15, 4), "escalated"),
        (made.operation(), made.question(R.EXTENSION_REQUESTED, made.operation()), (15, 4), "open"),
        (made.operation(status=Status.SUCCEEDED), None, (15, 4), "has ended"),
    ],
)
def test_a_request_out_of_bounds_is_refused_and_says_why(op, question, size, says):
    with pytest.raises(Refused, match=says):
        ask(op, question, minutes=size[0], checks=size[1])


@pytest.mark.rule("E7")
def test_an_operator_opens_one_question_on_a_running_wait_which_goes_on():
    op = made.operation()
    done = grants.open_operator_question(op, None, operator=made.ALICE, now=made.NOW, new_id="esc-5")
    assert done.operation.status is Status.WAITING
    assert done.opened.reason is R.OPERATOR_REQUEST
    with pytest.raises(Refused, match="open"):
        grants.open_operator_question(op, done.opened, operator=made.ALICE, now=made.NOW, new_id="esc-6")
    with pytest.raises(Refused):
        grants.open_operator_question(made.stopped(R.JOB_FAILED), None, operator="x", now=made.NOW, new_id="e")


@pytest.mark.rule("G5")
@pytest.mark.parametrize("kind", sorted(set(ChoiceKind) - LOWERS_AUTHORITY - {ChoiceKind.END_HOLD}))
def test_nothing_that_gives_authority_can_be_done_by_lowering(kind):
    with pytest.raises(Refused, match="keypress"):
        grants.lower(made.operation(), None, kind, policy=made.POLICY, now=made.NOW, by="cli", because=None, new_id="e")


@pytest.mark.rule("G5", "E8")
def test_the_command_line_closes_and_holds_a_running_wait_without_a_question():
    give = {"policy": made.POLICY, "now": made.NOW, "by": "bob", "because": "not needed", "new_id": "e"}
    closed = grants.lower(made.operation(), None, K.CLOSE, **give)
    assert closed.operation.status is Status.CLOSED
    assert closed.closed is None
    held = grants.lower(made.operation(), None, K.HOLD, **give)
    assert held.operation.status is Status.HELD
    assert held.opened.reason is R.OPERATOR_REQUEST
    ended = grants.lower(held.operation, held.opened, K.END_HOLD, **give)
    assert ended.operation.status is Status.WAITING


@pytest.mark.rule("B2", "G5")
def test_the_command_line_rejects_only_what_was_asked():
    give = {"policy": made.POLICY, "now": made.NOW, "by": "bob", "because": "no", "new_id": "e"}
    op = made.stopped(R.EXTENSION_REQUESTED)
    done = grants.lower(op, made.question(R.EXTENSION_REQUESTED, op), K.REJECT, **give)
    assert done.closed.operator == "bob"
    with pytest.raises(Refused, match="no open question"):
        grants.lower(op, None, K.REJECT, **give)
    stop = made.stopped(R.DEADLINE_EXCEEDED)
    with pytest.raises(Refused, match="permits: close"):
        grants.lower(stop, made.question(R.DEADLINE_EXCEEDED, stop), K.DENY, **give)


@pytest.mark.rule("E7")
def test_a_taken_over_question_is_settled_and_takes_no_decision_any_more():
    op = made.stopped(R.EXTENSION_REQUESTED)
    choice = made.offered(R.EXTENSION_REQUESTED, op)["reject"]
    gone = grants.supersede(made.question(R.EXTENSION_REQUESTED, op), made.NOW)
    assert gone.decision == "superseded"
    with pytest.raises(PollconsoleError, match="already decided"):
        grants.apply(op, gone, choice, policy=made.POLICY, now=made.NOW, operator="x", because=None, new_id="e")


@pytest.mark.rule("T6")
def test_a_time_missed_during_a_hold_is_not_made_up_for():
    missed = Instant(made.NOW.wall - 5 * MINUTE)
    op = made.operation(status=Status.HELD, hold_until=made.NOW.wall, next_poll_at=missed)
    assert grants.end_of_hold(op, None, now=made.NOW, new_id="e").operation.next_poll_at == made.NOW.wall
    guided = msgspec.structs.replace(op, guidance_until=made.DEADLINE)
    assert grants.end_of_hold(guided, None, now=made.NOW, new_id="e").operation.next_poll_at == made.DEADLINE
