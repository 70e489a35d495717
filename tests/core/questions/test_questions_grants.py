"""Grants: the effect of every choice, once, and nothing else."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.core.questions import made

from pollcore import grants, schedule
from pollcore.escalation import added_by, choices, permitted
from pollcore.facts import (
    LOWERS_AUTHORITY,
    MINUTE,
    SECOND,
    TRANSITIONS,
    ActionKind,
    Choice,
    ChoiceKind,
    CredentialMode,
    DelaySource,
    EventName,
    Instant,
    Memory,
    Policy,
    PollconsoleError,
    Refused,
    ResultPointer,
    Stale,
    Status,
    StopDetail,
    StopReason,
    Verdict,
)

K = ChoiceKind
R = StopReason


def decide(reason, label, op=None, *, now=made.NOW, policy=made.POLICY, facts=made.EVERYTHING, **more):
    op = op or made.stopped(reason)
    choice = made.offered(reason, op, now=now, policy=policy, facts=facts)[label]
    asked = made.question(reason, op)
    return grants.apply(
        op, asked, choice, policy=policy, now=now, operator=made.ALICE, because="seen", new_id="esc-2", **more
    )


# --- for every record, reason and choice ------------------------------------------------------------------------------


@pytest.mark.rule("E7", "G4")
@given(st.data(), made.reasons, made.policies(), made.circumstances(), made.moments())
def test_every_choice_has_one_bounded_effect_and_is_refused_the_second_time(data, reason, policy, facts, now):
    op = data.draw(made.records(reason))
    asked = made.question(reason, op)
    found = choices(op, asked, policy=policy, now=now, circumstances=facts)
    for choice in found:
        give = {"policy": policy, "now": now, "operator": made.ALICE, "because": None, "new_id": "esc-2"}
        if choice.kind is K.ADOPT_CONTRACT and facts.changed_contract is not None:
            give["observation"] = facts.changed_contract.reads_as
        if not choice.decides or choice.unavailable:
            with pytest.raises(Refused):
                grants.apply(op, asked, choice, **give)
            continue
        done = grants.apply(op, asked, choice, **give)
        after = done.operation
        assert after is not None
        # never a way that the table of transitions does not know
        assert after.status is op.status or after.status in TRANSITIONS[op.status]
        assert after.version == op.version + 1
        # I3: limits change by what the choice says and by nothing else
        added = added_by(choice)
        assert after.max_status_requests == op.max_status_requests + added.checks
        assert after.max_transport_failures == op.max_transport_failures + added.transport_failures
        assert after.max_rate_limited == op.max_rate_limited + added.rate_limited
        if added.minutes:
            assert after.deadline_at == max(op.deadline_at, now.wall) + added.minutes * MINUTE
        else:
            assert after.deadline_at == op.deadline_at
        # B2: counters are never touched
        assert (
            after.status_requests_used,
            after.transport_failures_used,
            after.rate_limited_used,
            after.completed_polls,
        ) == (
            op.status_requests_used,
            op.transport_failures_used,
            op.rate_limited_used,
            op.completed_polls,
        )
        if not choice.grants:
            assert added.checks == added.minutes == 0
        # I11: one question is closed, at most one is open
        assert done.closed is not None
        assert done.closed.decision == choice.kind.value
        assert done.opened is None or done.opened.version == after.version
        assert done.events[0].operator == str(made.ALICE)
        # single use: neither on the record after it, nor on the question as it was closed
        with pytest.raises(Stale):
            grants.apply(after, asked, choice, **give)
        with pytest.raises(Stale):
            grants.apply(op, done.closed, choice, **give)


@pytest.mark.rule("E2", "G2")
@given(st.data(), made.reasons, st.sampled_from(ChoiceKind))
def test_a_kind_that_the_reason_does_not_permit_is_refused(data, reason, kind):
    op = data.draw(made.records(reason))
    assume(kind not in permitted(reason, op.status))
    choice = Choice(key="1", kind=kind, label="forged", grants=True, minutes=60, checks=100)
    with pytest.raises(Refused, match="does not permit"):
        grants.apply(
            op,
            made.question(reason, op),
            choice,
            policy=made.POLICY,
            now=made.NOW,
            operator=made.ALICE,
            because=None,
            new_id="esc-2",
        )


@pytest.mark.rule("G5")
@given(st.data(), made.reasons, made.moments(), st.sampled_from(sorted(LOWERS_AUTHORITY)))
def test_lowering_never_adds_anything(data, reason, now, kind):
    op = data.draw(made.records(reason))
    asked = data.draw(st.sampled_from((None, made.question(reason, op))))
    try:
        done = grants.lower(op, asked, kind, policy=made.POLICY, now=now, by="cli", because="why", new_id="esc-2")
    except Refused:
        return
    after = done.operation
    assert after.deadline_at == op.deadline_at
    assert after.max_status_requests == op.max_status_requests
    assert done.action is None
    assert done.approves is None


# --- extensions -------------------------------------------------------------------------------------------------------


@pytest.mark.rule("T5", "E4")
def test_the_first_check_after_a_grant_is_due_at_grant_time_plus_min_delay():
    after = decide(R.REQUEST_BUDGET_EXHAUSTED, "extend 15 min / 4 checks").operation
    assert after.status is Status.WAITING
    assert after.next_poll_at == made.NOW.wall + schedule.min_delay(made.POLICY.schedule)
    assert after.delay_source is DelaySource.MANUAL_EXTENSION
    assert after.extensions_used == 1
    assert after.stop_reason is None
    assert after.due_boot == made.NOW.boot + schedule.min_delay(made.POLICY.schedule)
    assert (after.max_status_requests, after.status_requests_used) == (16, 12)


@pytest.mark.rule("T5")
def test_a_grant_does_not_go_around_open_guidance():
    until = Instant(made.NOW.wall + 10 * MINUTE)
    op = made.stopped(R.GUIDANCE_BEYOND_DEADLINE, guidance_until=until)
    assert decide(R.GUIDANCE_BEYOND_DEADLINE, "extend 15 min / 4 checks", op).operation.next_poll_at == until


@pytest.mark.rule("T9", "E4")
def test_a_grant_moves_both_clocks_also_after_a_reboot():
    now = msgspec.structs.replace(made.NOW, boot_id="boot-2", boot=1_000)
    after = decide(R.REQUEST_BUDGET_EXHAUSTED, "extend 15 min / 4 checks", now=now).operation
    assert after.boot_id == "boot-2"
    assert after.deadline_boot - now.boot == after.deadline_at - now.wall == 17 * MINUTE


@pytest.mark.rule("B5")
def test_a_grant_beyond_useful_until_moves_it():
    op = made.stopped(R.USEFULNESS_ENDED, useful_until=Instant(made.NOW.wall - SECOND))
    after = decide(R.USEFULNESS_ENDED, "extend 15 min / 4 checks", op).operation
    assert after.useful_until == after.deadline_at == made.DEADLINE + 15 * MINUTE


@pytest.mark.rule("E7", "G4")
def test_an_extension_shown_before_the_deadline_is_stale_after_it():
    op = made.stopped(R.REQUEST_BUDGET_EXHAUSTED)
    choice = made.offered(R.REQUEST_BUDGET_EXHAUSTED, op)["extend 15 min / 4 checks"]
    with pytest.raises(Stale, match="limit has passed"):
        grants.apply(
            op,
            made.question(R.REQUEST_BUDGET_EXHAUSTED, op),
            choice,
            policy=made.POLICY,
            now=made.at("11:00:01"),
            operator=made.ALICE,
            because=None,
            new_id="esc-2",
        )


@pytest.mark.rule("E7")
def test_a_check_shown_before_the_deadline_is_stale_after_it():
    op = made.stopped(R.UNKNOWN_STATE)
    choice = made.offered(R.UNKNOWN_STATE, op)["check once"]
    asked = made.question(R.UNKNOWN_STATE, op)
    with pytest.raises(Stale):
        grants.apply(
            op,
            asked,
            choice,
            policy=made.POLICY,
            now=made.at("11:00:01"),
            operator="x",
            because=None,
            new_id="e",
        )


@pytest.mark.rule("G4")
def test_a_grant_on_another_version_than_was_shown_is_stale():
    op = made.stopped(R.UNKNOWN_STATE)
    choice = made.offered(R.UNKNOWN_STATE, op)["check once"]
    moved = msgspec.structs.replace(op, version=op.version + 1)
    asked = made.question(R.UNKNOWN_STATE, op)
    give = {"policy": made.POLICY, "now": made.NOW, "operator": "x", "because": None, "new_id": "e"}
    with pytest.raises(Stale, match="version 3, now 4"):
        grants.apply(moved, asked, choice, **give)
    with pytest.raises(Stale):
        grants.apply(op, asked, choice, shown_version=2, **give)
    assert grants.apply(moved, asked, choice, shown_version=4, **give).operation.version == 5


@pytest.mark.rule("E4", "G2")
@pytest.mark.parametrize(("minutes", "checks"), [(16, 4), (15, 5), (600, 400)])
def test_a_size_that_the_contract_does_not_list_is_refused(minutes, checks):
    op = made.stopped(R.DEADLINE_EXCEEDED)
    forged = Choice(key="1", kind=K.EXTEND, label="extend", grants=True, minutes=minutes, checks=checks)
    with pytest.raises(Refused, match="no size of the contract"):
        grants.apply(
            op,
            made.question(R.DEADLINE_EXCEEDED, op),
            forged,
            policy=made.POLICY,
            now=made.NOW,
            operator="x",
            because=None,
            new_id="e",
        )


@pytest.mark.rule("E7")
def test_an_approved_request_goes_on_and_a_rejected_one_leaves_the_wait_as_it_was():
    op = made.stopped(R.EXTENSION_REQUESTED)
    after = decide(R.EXTENSION_REQUESTED, "extend 15 min / 4 checks", op).operation
    assert (after.max_status_requests, after.status) == (16, Status.WAITING)
    rejected = decide(R.EXTENSION_REQUESTED, "reject", op)
    same = msgspec.structs.replace(op, version=op.version + 1, due_boot=rejected.operation.due_boot)
    assert rejected.operation == same
    assert rejected.events[0].event is EventName.REJECTED


@pytest.mark.rule("B2")
def test_a_second_submission_waits_for_its_first_limits_or_is_closed():
    op = made.operation(
        status=Status.ESCALATED,
        stop_reason=R.EXTENSION_REQUESTED,
        stop_detail=StopDetail.SECOND_SUBMISSION,
        status_requests_used=12,
    )
    asked = made.question(R.EXTENSION_REQUESTED, op, detail="second_submission", minutes=0, checks=8)
    by_kind = {c.kind: c for c in choices(op, asked, policy=made.POLICY, now=made.NOW)}
    give = {"policy": made.POLICY, "now": made.NOW, "operator": "x", "because": None, "new_id": "e"}
    granted = grants.apply(op, asked, by_kind[K.EXTEND], **give).operation
    assert (granted.status, granted.max_status_requests, granted.status_requests_used) == (Status.WAITING, 20, 12)
    assert granted.extensions_used == 0
    assert grants.apply(op, asked, by_kind[K.REJECT], **give).operation.status is Status.CLOSED


# --- the other choices ------------------------------------------------------------------------------------------------


@pytest.mark.rule("E7", "E4")
def test_a_check_once_is_marked_and_takes_no_extension_while_there_is_time():
    after = decide(R.UNKNOWN_STATE, "check once").operation
    assert after.check_once
    assert after.extensions_used == 0
    late = decide(R.UNKNOWN_STATE, "check once, with 15 min / 4 checks", now=made.at("11:05:00")).operation
    assert late.check_once
    assert late.extensions_used == 1


@pytest.mark.rule("E5")
def test_a_cancel_brings_its_confirm_window_and_is_no_extension():
    done = decide(R.DEADLINE_EXCEEDED, "cancel at provider", now=made.at("11:30:00"))
    after = done.operation
    assert done.action is ActionKind.CANCEL
    assert after.status is Status.WAITING
    assert after.cancel_granted
    assert after.deadline_at == made.at("11:35:00").wall
    assert (after.max_status_requests, after.extensions_used) == (14, 0)


@pytest.mark.rule("E6")
def test_a_resubmit_closes_a_stop_and_leaves_an_end_alone():
    open_one = decide(R.DELIVERY_AMBIGUOUS, "resubmit")
    assert (open_one.action, open_one.operation.status) == (ActionKind.RESUBMIT, Status.CLOSED)
    ended = decide(R.JOB_FAILED, "resubmit")
    assert (ended.action, ended.operation.status) == (ActionKind.RESUBMIT, Status.FAILED)
    assert ended.settled


@pytest.mark.rule("E8")
def test_close_ends_a_stop_and_settles_the_card_of_an_end():
    assert decide(R.DEADLINE_EXCEEDED, "close").operation.status is Status.CLOSED
    done = decide(R.JOB_EXPIRED, "close")
    assert done.operation.status is Status.EXPIRED
    assert done.closed.decision == "close"
    assert done.opened is None


@pytest.mark.rule("E2", "E7")
def test_a_hold_on_a_stop_ends_in_the_same_question_anew():
    held = decide(R.UNKNOWN_STATE, "hold up to 30 min")
    op = held.operation
    assert op.status is Status.HELD
    assert op.hold_until == made.DEADLINE  # cut at the deadline
    assert held.opened.reason is R.OPERATOR_REQUEST
    assert held.events[0].event is EventName.HELD
    back = grants.end_of_hold(op, held.opened, now=made.at("10:59:00"), new_id="esc-3")
    assert back.operation.status is Status.ESCALATED
    assert (back.opened.reason, back.opened.cause) == (R.UNKNOWN_STATE, "unknown_state:acme")
    assert back.closed.decision == "superseded"
    assert back.operation.status_requests_used == op.status_requests_used


@pytest.mark.rule("E2")
def test_a_hold_on_a_running_wait_ends_by_itself_inside_its_limits():
    held = decide(R.OPERATOR_REQUEST, "hold up to 30 min", now=made.at("10:30:00"))
    assert held.operation.hold_until == made.at("11:00:00").wall
    back = grants.end_of_hold(held.operation, held.opened, now=made.at("10:40:00"), new_id="e")
    assert back.operation.status is Status.WAITING
    assert back.opened is None
    assert back.operation.next_poll_at == held.operation.next_poll_at
    with pytest.raises(Stale):
        grants.end_of_hold(back.operation, None, now=made.NOW, new_id="e")


@pytest.mark.rule("S8", "E2")
@pytest.mark.parametrize(
    ("verdict", "status", "asks"),
    [
        (Verdict.WAITING, Status.WAITING, None),
        (Verdict.SUCCEEDED, Status.SUCCEEDED, None),
        (Verdict.FAILED, Status.FAILED, R.JOB_FAILED),
        (Verdict.CANCELLED, Status.CANCELLED, R.JOB_CANCELLED),
        (Verdict.EXPIRED, Status.EXPIRED, R.JOB_EXPIRED),
        (Verdict.UNKNOWN, Status.ESCALATED, R.UNKNOWN_STATE),
        (Verdict.NEEDS_HUMAN, Status.ESCALATED, R.NEEDS_HUMAN),
        (Verdict.INTEGRATION, Status.ESCALATED, R.INTEGRATION_FAILURE),
        (Verdict.DENIED, Status.ESCALATED, R.AUTHORIZATION_DENIED),
    ],
)
def test_adopting_a_contract_goes_by_what_the_stored_answer_now_says(verdict, status, asks):
    seen = made.observation(verdict, result=ResultPointer({"url": "https://x.test/r"}))
    op = made.stopped(R.UNKNOWN_STATE)
    done = decide(R.UNKNOWN_STATE, "adopt the changed contract", op, observation=seen, memory=Memory(polls=6))
    after = done.operation
    assert (after.status, after.contract_digest, after.last_known_state) == (status, "sha-new", "compiling")
    assert (done.opened.reason if done.opened else None) == asks
    assert (after.deadline_at, after.max_status_requests) == (op.deadline_at, op.max_status_requests)
    assert after.memory.polls == 6
    assert done.action is None


@pytest.mark.rule("S8", "X2")
def test_adopting_after_the_deadline_gives_no_time():
    now = made.at("11:05:00")
    seen = made.observation(Verdict.WAITING)
    done = decide(R.UNKNOWN_STATE, "adopt the changed contract", now=now, observation=seen)
    assert done.operation.status is Status.ESCALATED
    assert done.opened.reason is R.DEADLINE_EXCEEDED
    assert done.operation.deadline_at == made.DEADLINE


@pytest.mark.rule("E5")
def test_an_adopted_cancelled_end_asks_nothing_when_an_operator_granted_the_cancel():
    op = made.stopped(R.UNKNOWN_STATE, cancel_granted=True)
    done = decide(R.UNKNOWN_STATE, "adopt the changed contract", op, observation=made.observation(Verdict.CANCELLED))
    assert done.operation.status is Status.CANCELLED
    assert done.opened is None


@pytest.mark.rule("E2")
def test_accepting_an_unvalidated_result_says_that_it_was_not_validated():
    done = decide(R.INTEGRATION_FAILURE, "accept the unvalidated result")
    assert done.operation.status is Status.SUCCEEDED
    assert done.operation.result.validated is False
    assert done.operation.next_poll_at is None
    assert done.operation.due_boot is None


@pytest.mark.rule("E2", "G2")
def test_another_credential_replaces_the_present_one_and_nothing_else():
    op = made.stopped(R.AUTHORIZATION_DENIED)
    after = decide(R.AUTHORIZATION_DENIED, "use credential acme-second", op).operation
    assert after.credential == "acme-second"
    assert after.submitted == op.submitted
    assert after.status is Status.WAITING


@pytest.mark.rule("G6", "E2")
def test_a_denied_call_stops_with_approval_denied_and_can_be_asked_again():
    denied = decide(R.CALL_APPROVAL, "deny")
    op = denied.operation
    assert (op.status, op.stop_reason) == (Status.ESCALATED, R.APPROVAL_DENIED)
    assert denied.opened.reason is R.APPROVAL_DENIED
    again = choices(op, denied.opened, policy=made.POLICY, now=made.NOW)
    ask = next(choice for choice in again if choice.kind is K.ASK_AGAIN)
    asked = grants.apply(
        op, denied.opened, ask, policy=made.POLICY, now=made.NOW, operator="x", because=None, new_id="esc-3"
    )
    assert asked.operation.status is Status.AWAITING_APPROVAL
    assert asked.opened.reason is R.CALL_APPROVAL


@pytest.mark.rule("G6", "G7")
def test_approvals_add_nothing_to_the_operations_limits():
    once = decide(R.CALL_APPROVAL, "approve once")
    assert once.approves is K.APPROVE_ONCE
    assert once.operation.status is Status.WAITING
    session = decide(R.SESSION_APPROVAL, "approve session, 480 min / 200 calls")
    assert session.approves is K.APPROVE_SESSION
    assert session.operation.max_status_requests == 12
    assert session.operation.deadline_at == made.DEADLINE


@pytest.mark.rule("X7")
def test_first_use_is_answered_as_read_only_or_as_an_action():
    assert decide(R.FIRST_USE, "approve: it is read-only").read_only is True
    assert decide(R.FIRST_USE, "reject: it is an action").read_only is False


@pytest.mark.rule("G6", "G2")
def test_a_mode_change_gives_exactly_the_mode_that_was_shown():
    asked = made.question(R.MODE_CHANGE, None)
    found = choices(None, asked, policy=Policy(), now=made.NOW, circumstances=made.EVERYTHING)
    give = {"policy": Policy(), "now": made.NOW, "operator": made.ALICE, "because": None, "new_id": "e"}
    assert grants.apply(None, asked, found[0], **give).mode is CredentialMode.STANDING
    rejected = grants.apply(None, asked, found[1], **give)
    assert rejected.mode is None
    assert rejected.closed.decision == "reject"
    with pytest.raises(Stale):
        grants.apply(None, rejected.closed, found[0], **give)


@pytest.mark.rule("A1")
def test_the_event_of_a_decision_holds_limits_operator_time_reason_and_what_was_shown():
    event = decide(R.REQUEST_BUDGET_EXHAUSTED, "extend 15 min / 4 checks", notes=("card abc",)).events[0]
    assert (event.event, event.at, event.operator) == (EventName.GRANTED, made.NOW.wall, "alice@ops-1 (pts/3)")
    assert (event.detail, event.reason, event.text) == ("extend 15 min / 4 checks", "request_budget_exhausted", "seen")
    assert (event.max_requests, event.deadline_at) == (16, made.DEADLINE + 15 * MINUTE)
    assert "card abc" in event.notes
    assert "status_requests 12 -> 16" in event.notes


@pytest.mark.rule("G8")
def test_a_refused_grant_is_an_event_too():
    op = made.stopped(R.UNKNOWN_STATE)
    choice = made.offered(R.UNKNOWN_STATE, op)["check once"]
    event = grants.refused_event(
        op, made.question(R.UNKNOWN_STATE, op), choice, made.NOW, "alice", "the card has changed"
    )
    assert (event.event, event.text, event.detail) == (EventName.GRANT_REFUSED, "the card has changed", "check once")


# --- asking and lowering ----------------------------------------------------------------------------------------------


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
