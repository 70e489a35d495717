"""Grants: what each choice beside an extension does, and what the audit says of it."""

from __future__ import annotations

import msgspec
import pytest
from tests.core.questions import made

from pollcore import grants
from pollcore.decide import decide
from pollcore.escalation import FirstUse, choices
from pollcore.facts import (
    MINUTE,
    ActionKind,
    ChoiceKind,
    ContractUse,
    CredentialMode,
    EventName,
    Instant,
    Memory,
    Policy,
    Refused,
    ResultPointer,
    Schedule,
    Stale,
    Status,
    StopReason,
    Succeed,
    Verdict,
    Wait,
)

K = ChoiceKind
R = StopReason


@pytest.mark.rule("E7", "E4")
def test_a_check_once_is_marked_and_takes_no_extension_while_there_is_time():
    after = made.decide(R.UNKNOWN_STATE, "check once").operation
    assert after.check_once
    assert after.extensions_used == 0
    late = made.decide(R.UNKNOWN_STATE, "check once, with 15 min / 4 checks", now=made.at("11:05:00")).operation
    assert late.check_once
    assert late.extensions_used == 1


@pytest.mark.rule("E5")
def test_a_cancel_brings_its_confirm_window_and_is_no_extension():
    done = made.decide(R.DEADLINE_EXCEEDED, "cancel at provider", now=made.at("11:30:00"))
    after = done.operation
    assert done.action is ActionKind.CANCEL
    assert after.status is Status.WAITING
    assert after.cancel_granted
    assert after.deadline_at == made.at("11:35:00").wall
    assert (after.max_status_requests, after.extensions_used) == (14, 0)


@pytest.mark.rule("E6")
def test_a_resubmit_closes_a_stop_and_leaves_an_end_alone():
    open_one = made.decide(R.DELIVERY_AMBIGUOUS, "resubmit")
    assert (open_one.action, open_one.operation.status) == (ActionKind.RESUBMIT, Status.CLOSED)
    ended = made.decide(R.JOB_FAILED, "resubmit")
    assert (ended.action, ended.operation.status) == (ActionKind.RESUBMIT, Status.FAILED)
    assert ended.settled


@pytest.mark.rule("T4", "E5", "E3")
@pytest.mark.parametrize("reason", [R.OPERATOR_REQUEST, R.UNKNOWN_STATE])
def test_a_cancel_under_guidance_beyond_its_confirm_window_is_sent_and_asks_at_once_what_now(reason):
    far = Instant(made.DEADLINE + 24 * 60 * MINUTE)
    op = made.operation() if reason is R.OPERATOR_REQUEST else made.stopped(reason)
    op = msgspec.structs.replace(op, guidance_until=far)
    shown = made.offered(reason, op)["cancel at provider"]
    assert shown.leads_to.endswith("no check can see what became of it, and a new question follows.")
    assert any(warning.startswith("no check could go out: the provider's guidance") for warning in shown.warnings)
    done = made.decide(reason, "cancel at provider", op)
    assert (done.action, done.operation.cancel_granted) == (ActionKind.CANCEL, True)
    assert (done.operation.status, done.operation.next_poll_at) == (Status.ESCALATED, None)
    assert done.operation.stop_reason is done.opened.reason is R.GUIDANCE_BEYOND_DEADLINE
    assert done.operation.deadline_at == made.DEADLINE + 5 * MINUTE


@pytest.mark.rule("E8")
def test_close_ends_a_stop_and_settles_the_card_of_an_end():
    assert made.decide(R.DEADLINE_EXCEEDED, "close").operation.status is Status.CLOSED
    done = made.decide(R.JOB_EXPIRED, "close")
    assert done.operation.status is Status.EXPIRED
    assert done.closed.decision == "close"
    assert done.opened is None


@pytest.mark.rule("E2", "E7")
def test_a_hold_on_a_stop_ends_in_the_same_question_anew():
    held = made.decide(R.UNKNOWN_STATE, "hold up to 30 min")
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
    held = made.decide(R.OPERATOR_REQUEST, "hold up to 30 min", now=made.at("10:30:00"))
    assert held.operation.hold_until == made.at("11:00:00").wall
    back = grants.end_of_hold(held.operation, held.opened, now=made.at("10:40:00"), new_id="e")
    assert back.operation.status is Status.WAITING
    assert back.opened is None
    assert back.operation.next_poll_at == held.operation.next_poll_at
    with pytest.raises(Stale):
        grants.end_of_hold(back.operation, None, now=made.NOW, new_id="e")


@pytest.mark.rule("E2", "E7")
def test_a_granted_check_that_is_held_goes_on_after_the_hold_as_its_card_says():
    early = made.at("10:30:00")
    granted = made.decide(R.UNKNOWN_STATE, "check once", now=early).operation
    held = made.decide(R.OPERATOR_REQUEST, "hold up to 30 min", granted, now=early)
    shown = made.offered(R.OPERATOR_REQUEST, granted, now=early)["hold up to 30 min"]
    assert "then the wait goes on inside its limits" in shown.leads_to
    ends = made.offered(R.OPERATOR_REQUEST, held.operation, now=early)["end the hold"]
    assert ends.leads_to == "The wait goes on inside its limits, as it was before the hold."
    back = grants.end_of_hold(held.operation, held.opened, now=made.at("10:40:00"), new_id="e")
    assert (back.operation.status, back.operation.check_once, back.opened) == (Status.WAITING, True, None)
    assert back.operation.stop_reason is R.UNKNOWN_STATE


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
    done = made.decide(R.UNKNOWN_STATE, "adopt the changed contract", op, observation=seen, memory=Memory(polls=6))
    after = done.operation
    # S6: what is no answer about this job names no state of it
    state = op.last_known_state if verdict in (Verdict.INTEGRATION, Verdict.DENIED) else "compiling"
    assert (after.status, after.contract_digest, after.last_known_state) == (status, "sha-new", state)
    assert (done.opened.reason if done.opened else None) == asks
    assert (after.deadline_at, after.max_status_requests) == (op.deadline_at, op.max_status_requests)
    assert after.memory.polls == 6
    assert done.action is None


def adopts(seen, op, *, policy=made.POLICY, now=made.NOW, memory=None, reason=R.UNKNOWN_STATE):
    """What comes of adopting a contract with *policy* that reads the stored answer as *seen*; the choice's sentence."""
    changed = msgspec.structs.replace(made.CHANGED, reads_as=seen, memory=memory, policy=policy)
    facts = msgspec.structs.replace(made.EVERYTHING, changed_contract=changed)
    choice = made.offered(reason, op, now=now, facts=facts)["adopt the changed contract"]
    more = {"observation": seen, "memory": memory, "adopts": policy}
    return made.decide(reason, choice.label, op, now=now, facts=facts, **more), choice.leads_to


@pytest.mark.rule("S8", "E3")
@pytest.mark.parametrize("clock", ["10:58:00", "11:05:00"])
@pytest.mark.parametrize("settles", [None, 30_000])
@pytest.mark.parametrize("verdict", list(Verdict))
def test_an_adopted_answer_decides_as_a_live_one_would_and_the_card_says_so(verdict, settles, clock):
    policy = msgspec.structs.replace(made.POLICY, schedule=Schedule(settle_delay=settles))
    seen, now = made.observation(verdict, result=ResultPointer({"url": "https://x.test/r"})), made.at(clock)
    op = made.stopped(R.UNKNOWN_STATE)
    live = decide(op, seen, policy=policy, now=now, draw=0.5, counted=False)
    done, sentence = adopts(seen, op, policy=policy, now=now, memory=Memory())
    after, asked = done.operation, done.opened
    if isinstance(live, Wait):
        assert (after.status, asked) == (Status.WAITING, None)
        assert "the wait goes on. " in sentence
    elif isinstance(live, Succeed):
        assert (after.status, after.result, asked) == (Status.SUCCEEDED, live.result, None)
        assert "the operation ends succeeded. " in sentence
    else:
        assert (after.status, after.stop_reason, after.stop_detail) == (live.status, live.reason, live.detail)
        assert (asked.reason, asked.cause) == (live.reason, live.cause)
        assert f"{live.reason.value}, and a new question follows. " in sentence
    assert after.status_requests_used == op.status_requests_used


@pytest.mark.rule("X8", "S8")
def test_an_end_that_is_adopted_is_confirmed_by_one_more_answer_after_the_settling_delay():
    policy = msgspec.structs.replace(made.POLICY, schedule=Schedule(settle_delay=30_000))
    seen = made.observation(Verdict.FAILED)
    for op in (made.stopped(R.UNKNOWN_STATE), made.operation()):
        running = op.status is Status.WAITING
        reason = R.OPERATOR_REQUEST if running else R.UNKNOWN_STATE
        # what settles already was said by this very answer, under the old contract
        for before in (Memory(), Memory(settling="failed:compiling"), Memory(settling="cancelled:compiling")):
            done, sentence = adopts(
                seen, msgspec.structs.replace(op, memory=before), policy=policy, memory=before, reason=reason
            )
            assert "a second answer is to confirm it" in sentence
            after = done.operation
            assert (after.status, after.memory.settling) == (Status.WAITING, "failed:compiling")
            if before.settling != after.memory.settling:
                assert after.next_poll_at == made.NOW.wall + 30_000
            confirmed = decide(after, seen, policy=policy, now=made.at("10:59:00"), draw=0.5)
            assert confirmed.reason is R.JOB_FAILED


@pytest.mark.rule("S5", "S8")
def test_an_expiry_that_the_adopted_contract_reads_is_kept_for_the_wait():
    expiry = Instant(made.NOW.wall + 30 * MINUTE)
    for op, reason in ((made.stopped(R.UNKNOWN_STATE), R.UNKNOWN_STATE), (made.operation(), R.OPERATOR_REQUEST)):
        done, _ = adopts(made.observation(Verdict.WAITING, provider_expires_at=expiry), op, reason=reason)
        assert (done.operation.status, done.operation.provider_expires_at) == (Status.WAITING, expiry)


@pytest.mark.rule("S8", "E7")
def test_an_adopted_contract_has_no_say_in_the_size_that_its_card_offered():
    late, new = made.at("11:05:00"), msgspec.structs.replace(made.POLICY, extend=(), max_extensions=0)
    changed = msgspec.structs.replace(made.CHANGED, has_stored_answer=False, policy=new)
    facts = msgspec.structs.replace(made.EVERYTHING, changed_contract=changed)
    op = made.stopped(R.INTEGRATION_FAILURE)
    label = "adopt the changed contract and check once, with 15 min / 4 checks"
    done = made.decide(R.INTEGRATION_FAILURE, label, op, now=late, facts=facts, adopts=new)
    assert (done.operation.status, done.operation.contract_digest) == (Status.WAITING, "sha-new")
    assert done.operation.extensions_used == op.extensions_used + 1


@pytest.mark.rule("S8", "X2")
def test_adopting_after_the_deadline_gives_no_time():
    now = made.at("11:05:00")
    seen = made.observation(Verdict.WAITING)
    done = made.decide(R.UNKNOWN_STATE, "adopt the changed contract", now=now, observation=seen)
    assert done.operation.status is Status.ESCALATED
    assert done.opened.reason is R.DEADLINE_EXCEEDED
    assert done.operation.deadline_at == made.DEADLINE


@pytest.mark.rule("E5")
def test_an_adopted_cancelled_end_asks_nothing_when_an_operator_granted_the_cancel():
    op = made.stopped(R.UNKNOWN_STATE, cancel_granted=True)
    done = made.decide(
        R.UNKNOWN_STATE, "adopt the changed contract", op, observation=made.observation(Verdict.CANCELLED)
    )
    assert done.operation.status is Status.CANCELLED
    assert done.opened is None


@pytest.mark.rule("E2")
def test_accepting_an_unvalidated_result_says_that_it_was_not_validated():
    done = made.decide(R.INTEGRATION_FAILURE, "accept the unvalidated result")
    assert done.operation.status is Status.SUCCEEDED
    assert done.operation.result.validated is False
    assert done.operation.next_poll_at is None
    assert done.operation.due_boot is None


@pytest.mark.rule("E2", "G2")
def test_another_credential_replaces_the_present_one_and_nothing_else():
    op = made.stopped(R.AUTHORIZATION_DENIED)
    after = made.decide(R.AUTHORIZATION_DENIED, "use credential acme-second", op).operation
    assert after.credential == "acme-second"
    assert after.submitted == op.submitted
    assert after.status is Status.WAITING


@pytest.mark.rule("G6", "E2")
def test_a_denied_call_stops_with_approval_denied_and_can_be_asked_again():
    denied = made.decide(R.CALL_APPROVAL, "deny")
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
    once = made.decide(R.CALL_APPROVAL, "approve once")
    assert once.approves is K.APPROVE_ONCE
    assert once.operation.status is Status.WAITING
    session = made.decide(R.SESSION_APPROVAL, "approve session, 480 min / 200 calls")
    assert session.approves is K.APPROVE_SESSION
    assert session.operation.max_status_requests == 12
    assert session.operation.deadline_at == made.DEADLINE


@pytest.mark.rule("X7")
def test_first_use_is_answered_as_read_only_or_as_an_action():
    for label, use in (
        ("approve: it is read-only", ContractUse.READ_ONLY),
        ("approve as an action: each request asks", ContractUse.ACTION),
    ):
        applied = made.decide(R.FIRST_USE, label)
        assert (applied.use, applied.operation.status, applied.settled) == (use, Status.WAITING, True)
        assert made.offered(R.FIRST_USE)[label].grants
    rejected = made.decide(R.FIRST_USE, "reject")
    assert (rejected.use, rejected.operation.status, rejected.operation.next_poll_at) == (None, Status.CLOSED, None)
    assert not made.offered(R.FIRST_USE)["reject"].grants


@pytest.mark.rule("X7", "E7")
@pytest.mark.parametrize("use", list(ContractUse))
def test_what_was_said_once_of_a_contract_is_the_only_answer_that_is_left(use):
    facts = msgspec.structs.replace(made.EVERYTHING, first_use=FirstUse(decided=use))
    offered = made.offered(R.FIRST_USE, facts=facts).values()
    left = [c for c in offered if c.kind is ChoiceKind.APPROVE and c.unavailable is None]
    assert [e.after for c in left for e in c.effects] == [use.value]
    refused = next(c for c in offered if c.kind is ChoiceKind.APPROVE and c.unavailable is not None)
    with pytest.raises(Refused):
        made.decide(R.FIRST_USE, refused.label, facts=facts)


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
    event = made.decide(R.REQUEST_BUDGET_EXHAUSTED, "extend 15 min / 4 checks", notes=("card abc",)).events[0]
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
