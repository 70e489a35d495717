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
    Choice,
    ChoiceKind,
    DelaySource,
    EventName,
    Instant,
    Refused,
    Stale,
    Status,
    StopDetail,
    StopReason,
)

K = ChoiceKind
R = StopReason


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
    after = made.decide(R.REQUEST_BUDGET_EXHAUSTED, "extend 15 min / 4 checks").operation
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
    assert made.decide(R.GUIDANCE_BEYOND_DEADLINE, "extend 15 min / 4 checks", op).operation.next_poll_at == until


@pytest.mark.rule("T9", "E4")
def test_a_grant_moves_both_clocks_also_after_a_reboot():
    now = msgspec.structs.replace(made.NOW, boot_id="boot-2", boot=1_000)
    after = made.decide(R.REQUEST_BUDGET_EXHAUSTED, "extend 15 min / 4 checks", now=now).operation
    assert after.boot_id == "boot-2"
    assert after.deadline_boot - now.boot == after.deadline_at - now.wall == 17 * MINUTE


@pytest.mark.rule("B5")
def test_a_grant_beyond_useful_until_moves_it():
    op = made.stopped(R.USEFULNESS_ENDED, useful_until=Instant(made.NOW.wall - SECOND))
    after = made.decide(R.USEFULNESS_ENDED, "extend 15 min / 4 checks", op).operation
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
    after = made.decide(R.EXTENSION_REQUESTED, "extend 15 min / 4 checks", op).operation
    assert (after.max_status_requests, after.status) == (16, Status.WAITING)
    rejected = made.decide(R.EXTENSION_REQUESTED, "reject", op)
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
