"""The stronger cancel: a step of cancel_at_provider, after a cancel that was sent, not before its documented time."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.questions import made

from pollcore.card import Asked, card, digest, group
from pollcore.escalation import PERMITTED, Circumstances, CredentialUse, choices
from pollcore.facts import (
    FORCE,
    MINUTE,
    ActionKind,
    Choice,
    ChoiceKind,
    Confirm,
    EventName,
    ExtendSize,
    ForceCancel,
    Instant,
    Operation,
    Policy,
    Refused,
    Status,
    StopReason,
)

K = ChoiceKind
R = StopReason
LABEL = "force-cancel at provider"
SENT_AT = Instant(made.STOPPED_AT - 3 * MINUTE)
FORCED = ForceCancel("it is killed without clean-up", Confirm(7, 3))
SENT = msgspec.structs.replace(
    made.EVERYTHING, cancel_sent_at=SENT_AT, cancel_outcome="done", cancels_taken=((SENT_AT, "done"),)
)
CANCELLABLE = tuple(reason for reason, kinds in PERMITTED.items() if K.CANCEL_AT_PROVIDER in kinds)


def policy(force: ForceCancel | None = FORCED, **changes: object) -> Policy:
    return msgspec.structs.replace(made.POLICY, force_cancel=force, **changes)


def forced(
    reason: StopReason = R.REQUEST_BUDGET_EXHAUSTED,
    facts: Circumstances = SENT,
    force: ForceCancel = FORCED,
    op: Operation | None = None,
    **of_policy: object,
) -> Choice | None:
    return made.offered(reason, op, policy=policy(force, **of_policy), facts=facts).get(LABEL)


@pytest.mark.rule("E2", "E5")
@pytest.mark.parametrize("reason", made.OF_AN_OPERATION)
def test_it_is_offered_for_exactly_the_reasons_that_permit_a_cancel(reason: StopReason) -> None:
    found = forced(reason)
    assert (found is not None) is (reason in CANCELLABLE)
    if found is not None:
        assert (found.kind, found.step, found.grants, found.unavailable) == (K.CANCEL_AT_PROVIDER, FORCE, True, None)
        kept = made.offered(reason, policy=policy(), facts=SENT)["cancel at provider"]
        assert (kept.step, int(found.key)) == (None, int(kept.key) + 1)


@pytest.mark.rule("E5", "O5")
@pytest.mark.parametrize(
    ("taken", "needs_accepted", "there"),
    [
        ((), False, False),
        (((SENT_AT, "unknown"),), False, True),
        (((SENT_AT, "done"),), False, True),
        (((SENT_AT, "unknown"),), True, False),
        (((SENT_AT, "done"), (SENT_AT, "unknown")), True, True),
    ],
)
def test_it_needs_a_cancel_that_was_sent_and_where_the_contract_says_so_an_accepted_one(
    taken: tuple[tuple[Instant, str], ...], needs_accepted: bool, there: bool
) -> None:
    facts = msgspec.structs.replace(SENT, cancels_taken=taken)
    force = ForceCancel("it is killed", Confirm(7, 3), needs_accepted=needs_accepted)
    assert (forced(facts=facts, force=force) is not None) is there


@pytest.mark.rule("E5")
@given(reason=st.sampled_from(CANCELLABLE), data=st.data())
def test_without_a_contract_that_documents_it_or_a_cancel_of_this_operation_nothing_offers_it(
    reason: StopReason, data: st.DataObject
) -> None:
    op, facts = data.draw(made.records(reason)), data.draw(made.circumstances())
    now, plain = data.draw(made.moments()), data.draw(made.policies())
    asked = made.question(reason, op)
    without = msgspec.structs.replace(facts, cancels_taken=())
    for terms, known in ((plain, SENT), (msgspec.structs.replace(plain, force_cancel=FORCED), without)):
        found = choices(op, asked, policy=terms, now=now, circumstances=known)
        assert not any(choice.step is not None for choice in found)
    with_both = msgspec.structs.replace(plain, force_cancel=FORCED)
    found = choices(op, asked, policy=with_both, now=now, circumstances=SENT)
    assert any(choice.step == FORCE for choice in found) is (plain.cancel is not None)


@pytest.mark.rule("E5", "E3", "E8")
def test_it_shows_its_own_consequences_what_was_sent_before_and_its_own_window() -> None:
    force = ForceCancel("it is killed", Confirm(7, 3), irreversible=True, best_effort=True, allowed_states=("running",))
    facts = msgspec.structs.replace(SENT, force_sent_at=SENT_AT, force_outcome="unknown")
    found = forced(facts=facts, force=force)
    assert found is not None
    said = " | ".join(found.warnings)
    assert "consequences, as documented: it is killed" in said
    assert "partial output" not in said, "the ordinary cancel's consequences are not its own"
    assert "irreversible: it deletes a result" in said
    assert "best effort: the provider may finish" in said
    assert "the ordinary cancel was sent at 10:55:00 UTC, its outcome is accepted" in said
    assert "a force-cancel was already sent at 10:55:00 UTC, its outcome is unknown: this sends another" in said
    assert (found.minutes, found.checks) == (7, 3)
    deadline = next(effect for effect in found.effects if effect.what == "deadline")
    assert (deadline.before, deadline.after) == (made.DEADLINE, made.DEADLINE + 7 * MINUTE)
    assert "A force-cancel is sent, which does not mean that the job is cancelled" in found.leads_to


@pytest.mark.rule("E5", "E8")
def test_its_allowed_states_are_its_own() -> None:
    force = ForceCancel("it is killed", Confirm(7, 3), allowed_states=("stopping",))
    found = forced(force=force)
    assert found is not None
    assert "only in the states named" in (found.unavailable or "")
    there = forced(R.UNKNOWN_STATE, force=force, op=made.stopped(R.UNKNOWN_STATE, last_known_state="stopping"))
    assert there is not None
    assert there.unavailable is None


@pytest.mark.rule("E5", "E3")
@pytest.mark.parametrize(
    ("after", "named", "why"),
    [
        (3 * MINUTE, None, None),
        (3 * MINUTE + 1_000, None, "not before 10:58:01 UTC, 3 minutes 1 second after the ordinary cancel was sent"),
        (None, made.STOPPED_AT, None),
        (None, made.STOPPED_AT + 1_000, "not before 10:58:01 UTC, as the provider's last answer says"),
        (10 * MINUTE, made.STOPPED_AT, "not before 11:05:00 UTC, 10 minutes after the ordinary cancel was sent"),
    ],
)
def test_it_waits_for_the_documented_time_and_says_which(after: int | None, named: int | None, why: str | None) -> None:
    force = ForceCancel("it is killed", Confirm(7, 3), after=after, names_time=named is not None)
    facts = msgspec.structs.replace(SENT, force_available_at=None if named is None else Instant(named))
    found = forced(facts=facts, force=force)
    assert found is not None
    assert found.unavailable == why


@pytest.mark.rule("E5")
def test_a_time_that_no_answer_named_has_not_come() -> None:
    found = forced(force=ForceCancel("it is killed", Confirm(7, 3), names_time=True))
    assert found is not None
    assert "does not name the time" in (found.unavailable or "")
    with pytest.raises(Refused, match="cannot be chosen"):
        made.decide(
            R.REQUEST_BUDGET_EXHAUSTED,
            LABEL,
            policy=policy(ForceCancel("x", Confirm(7, 3), names_time=True)),
            facts=SENT,
        )


@pytest.mark.rule("E4", "E5")
def test_where_nine_digits_do_not_suffice_one_cancel_stands_for_both() -> None:
    sizes = tuple(ExtendSize(15 * n, 4) for n in range(1, 5))
    waits = ForceCancel("it is killed", Confirm(7, 3), after=60 * MINUTE)
    for force, kept, gone in ((FORCED, LABEL, "cancel at provider"), (waits, "cancel at provider", LABEL)):
        found = made.offered(R.OPERATOR_REQUEST, policy=policy(force, extend=sizes), facts=SENT)
        assert len(found) == 9
        assert (kept in found, gone in found) == (True, False)
        assert found[kept].warnings[-1] == f"{gone} has no digit left on this card"
    assert {"inspect", "close"} <= {choice.kind.value for choice in found.values()}


@pytest.mark.rule("E5", "O5", "G2")
def test_its_grant_brings_its_window_its_own_action_and_says_which_cancel_it_was() -> None:
    done = made.decide(R.DEADLINE_EXCEEDED, LABEL, now=made.at("11:30:00"), policy=policy(), facts=SENT)
    after = done.operation
    assert after is not None
    assert (done.action, after.status, after.cancel_granted) == (ActionKind.FORCE_CANCEL, Status.WAITING, True)
    assert after.deadline_at == made.at("11:37:00").wall
    assert (after.max_status_requests, after.extensions_used) == (15, 0)
    (told,) = done.events
    assert (told.event, told.decision, told.detail) == (EventName.GRANTED, "cancel_at_provider", LABEL)
    assert done.closed is not None
    assert (done.closed.decision, done.closed.decision_text) == ("cancel_at_provider", "seen")


@pytest.mark.rule("G4")
def test_the_digest_tells_the_stronger_cancel_from_the_ordinary_one() -> None:
    op = made.stopped(R.UNKNOWN_STATE)
    asked = made.question(R.UNKNOWN_STATE, op)

    def drawn(*found: Choice) -> str:
        return digest(card(op, asked, found, now=made.NOW))

    (choice,) = (one for one in made.offered(R.UNKNOWN_STATE, policy=policy(), facts=SENT).values() if one.step)
    plain = msgspec.structs.replace(choice, step=None)
    assert drawn(choice) != drawn(plain)


@pytest.mark.rule("G2", "G6", "G7")
def test_with_a_credential_that_is_asked_for_each_call_the_grant_is_the_approval_of_its_own_request() -> None:
    use = CredentialUse(request=made.REQUEST, purpose="force-cancel request", digest="f" * 64, credential="acme-key")
    other = CredentialUse(request=made.REQUEST, purpose="cancel request", digest="c" * 64, credential="acme-key")
    found = forced(facts=msgspec.structs.replace(SENT, force_use=use, cancel_use=other))
    assert found is not None
    assert found.call == "f" * 64
    assert any("purpose: force-cancel request" in warning for warning in found.warnings)


@pytest.mark.rule("E10")
def test_a_group_names_it_and_decides_it_nowhere_but_on_its_own_card() -> None:
    asked = []
    for n in range(3):
        op = made.stopped(R.UNKNOWN_STATE, operation_id=f"op-{n}")
        facts = SENT if n else msgspec.structs.replace(SENT, cancels_taken=())
        asked.append(Asked(op, made.question(R.UNKNOWN_STATE, op, escalation_id=f"esc-{n}"), policy(), facts))
    (drawn,) = group(asked, now=made.NOW)
    found = {choice.label: choice for choice in drawn.choices}
    assert (found[LABEL].count, found[LABEL].operation_ids) == (0, ())
    assert "decide it on the operation's own card" in (found[LABEL].unavailable or "")
    assert found["cancel at provider"].unavailable == found[LABEL].unavailable
    assert any("cannot force-cancel at provider" in outlier.differs for outlier in drawn.outliers)
