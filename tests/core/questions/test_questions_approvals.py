"""Leave to use a credential: who is asked, what a leave is bound to, how long a question stands, what ends it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.questions.made import NOW, POLICY, operation, question

from pollcore import grants
from pollcore.escalation import Approval, approval_needed, call_digest, choices
from pollcore.escalation.approvals import (
    ANSWER_MS,
    CONSOLE_BEAT_MS,
    CONSOLE_FRESH_MS,
    FETCH,
    STATUS,
    STRICTNESS,
    answer_left,
    session_digest,
    stricter,
)
from pollcore.facts import (
    ChoiceKind,
    ContractUse,
    CredentialMode,
    EventName,
    Instant,
    Request,
    Slot,
    Status,
    StopReason,
)

MODES = st.sampled_from(list(CredentialMode))
PURPOSES = ("status", "cancel", "resubmit", "fetch_result")
ASKED = NOW.wall


# --- which leave ------------------------------------------------------------------------------------------------------


@pytest.mark.rule("G6")
@given(MODES, MODES)
def test_of_mode_and_least_mode_the_stricter_one_asks(mode: CredentialMode, least: CredentialMode) -> None:
    strict = max(mode, least, key=STRICTNESS.index)
    assert stricter(mode, least.value) is strict
    found = approval_needed(mode, least.value, ContractUse.READ_ONLY)
    assert found is {"standing": Approval.NONE, "per_session": Approval.SESSION, "per_call": Approval.CALL}[strict]


@pytest.mark.rule("X7")
@given(st.none() | MODES, MODES)
def test_an_action_is_asked_for_each_request_whatever_the_credential(mode: Any, least: CredentialMode) -> None:
    assert approval_needed(mode, least.value, ContractUse.ACTION) is Approval.CALL


@pytest.mark.rule("G1", "G6")
@given(MODES)
def test_a_request_without_a_credential_that_is_read_only_asks_nothing(least: CredentialMode) -> None:
    assert approval_needed(None, least.value, ContractUse.READ_ONLY) is Approval.NONE


@pytest.mark.rule("G6")
@pytest.mark.parametrize("purpose", PURPOSES[1:])
def test_an_action_of_ours_has_no_session_and_needs_leave_of_its_own(purpose: str) -> None:
    use = ContractUse.READ_ONLY
    assert approval_needed(CredentialMode.PER_SESSION, "standing", use, purpose) is Approval.CALL
    assert approval_needed(CredentialMode.STANDING, "standing", ContractUse.ACTION, purpose) is Approval.NONE


# --- what it is bound to ----------------------------------------------------------------------------------------------

REQUEST = Request(
    method="GET",
    url="https://acme.example:443/v1/jobs/7?sig=1",
    headers=(("Accept", "application/json"),),
    slot=Slot("key", "bearer"),
    origins=("https://acme.example:443",),
)


@pytest.mark.rule("G4", "G7")
@pytest.mark.parametrize(
    "changes",
    [
        {"method": "POST"},
        {"url": "https://acme.example:443/v1/jobs/7?sig=2"},
        {"url": "https://acme.example:443/v1/jobs/8?sig=1"},
        {"headers": ()},
        {"body": b"x"},
        {"slot": Slot("other", "bearer")},
        {"slot": None},
        {"origins": ("https://evil.example:443",)},
        {"allow_http": True},
    ],
)
def test_another_request_has_another_digest(changes: dict[str, Any]) -> None:
    op, other = operation(), msgspec.structs.replace(REQUEST, **changes)
    bound = {"purpose": STATUS, "binding": "b"}
    assert call_digest(op, REQUEST, **bound) != call_digest(op, other, **bound)


@pytest.mark.rule("G4", "G7", "B2")
@pytest.mark.parametrize(
    "changes",
    [
        {"status_requests_used": 6},
        {"max_status_requests": 99},
        {"deadline_at": Instant(ASKED + 1)},
        {"contract_digest": "another"},
        {"credential": "another"},
        {"operation_id": "another"},
    ],
)
def test_a_leave_for_one_request_serves_no_other_number_limit_contract_or_operation(changes: dict[str, Any]) -> None:
    op = operation()
    moved = msgspec.structs.replace(op, **changes)
    bound = {"purpose": STATUS, "binding": "b"}
    assert call_digest(op, REQUEST, **bound) != call_digest(moved, REQUEST, **bound)
    assert call_digest(op, REQUEST, **bound) == call_digest(op, REQUEST, **bound)


@pytest.mark.rule("G4", "K5")
def test_another_purpose_or_another_secret_behind_the_name_has_another_digest() -> None:
    op = operation()
    found = {call_digest(op, REQUEST, purpose=p, binding=b) for p in PURPOSES for b in ("b", "c", None)}
    assert len(found) == len(PURPOSES) * 3
    one = session_digest("key", "b", "run-1", 30, 3)
    others = [("key", "c", "run-1", 30, 3), ("key", "b", "run-2", 30, 3), ("key", "b", "run-1", 31, 3)]
    assert all(session_digest(*other) != one for other in others)


# --- how long a question stands ---------------------------------------------------------------------------------------


@pytest.mark.rule("G7")
@given(
    st.lists(st.tuples(st.integers(-500_000, 500_000), st.integers(0, 500_000)), max_size=5), st.integers(0, 600_000)
)
def test_the_time_of_a_question_is_never_longer_than_its_span_nor_shorter_than_what_is_left(
    consoles: list[tuple[int, int]], later: int
) -> None:
    now = Instant(ASKED + later)
    known = [(Instant(ASKED + at), min(now, Instant(ASKED + at + span))) for at, span in consoles if at <= later]
    left = answer_left(Instant(ASKED), known, now)
    assert 0 <= left <= ANSWER_MS
    assert left >= ANSWER_MS - later
    assert left <= answer_left(Instant(ASKED), known[:1], now)


@pytest.mark.rule("G7")
def test_a_console_that_went_silent_counts_as_closed_one_beat_after_its_last() -> None:
    beat = Instant(ASKED + 30_000)
    fresh, silent = Instant(beat + CONSOLE_FRESH_MS), Instant(beat + CONSOLE_FRESH_MS + 1)
    assert answer_left(Instant(ASKED), [(Instant(ASKED), beat)], fresh) == ANSWER_MS - (fresh - ASKED)
    assert answer_left(Instant(ASKED), [(Instant(ASKED), beat)], silent) == ANSWER_MS - 30_000 - CONSOLE_BEAT_MS
    assert answer_left(Instant(ASKED), [], Instant(ASKED + 10 * ANSWER_MS)) == ANSWER_MS


# --- what ends it -----------------------------------------------------------------------------------------------------


def awaiting(**changes: Any) -> Any:
    return operation(status=Status.AWAITING_APPROVAL, **changes)


@pytest.mark.rule("G7", "G8")
@pytest.mark.parametrize(("seen", "how"), [(None, "unseen"), (Instant(ASKED), "seen and not answered")])
def test_an_expiry_is_no_denial_and_asks_anew_under_a_new_version(seen: Instant | None, how: str) -> None:
    op = awaiting()
    asked = msgspec.structs.replace(question(StopReason.CALL_APPROVAL, op), seen_at=seen)
    applied = grants.expire(op, asked, now=NOW, new_id="esc-new")
    assert applied.operation is not None
    assert applied.closed is not None
    assert applied.opened is not None
    after = applied.operation
    assert (after.status, after.version) == (op.status, op.version + 1)
    assert (after.status_requests_used, after.deadline_at) == (op.status_requests_used, op.deadline_at)
    assert (applied.closed.decision, applied.closed.decision_text, applied.closed.operator) == ("expired", how, None)
    new = applied.opened
    assert (new.escalation_id, new.reason, new.cause) == ("esc-new", asked.reason, asked.cause)
    assert (new.expires_at, new.seen_at, new.left_ms, new.version) == (None, None, None, after.version)
    assert [event.event for event in applied.events] == [EventName.APPROVAL_EXPIRED, EventName.QUESTION_OPENED]


@pytest.mark.rule("G7")
def test_the_expired_question_of_a_fetch_is_not_asked_anew_by_itself() -> None:
    op = operation(status=Status.SUCCEEDED)
    asked = msgspec.structs.replace(question(StopReason.CALL_APPROVAL, op), detail=FETCH)
    applied = grants.expire(op, asked, now=NOW, new_id="esc-new")
    assert applied.opened is None
    assert applied.operation is not None
    assert applied.operation.status is Status.SUCCEEDED


@pytest.mark.rule("G6")
def test_a_question_that_is_taken_back_gives_nothing_and_looks_again_soon() -> None:
    op = awaiting(next_poll_at=Instant(ASKED - 60_000))
    applied = grants.take_back(op, question(StopReason.SESSION_APPROVAL, op), now=NOW, why="a session covers it")
    after = applied.operation
    assert after is not None
    assert (after.status, after.next_poll_at) == (Status.WAITING, NOW.wall + 1_000)
    limits = ("max_status_requests", "deadline_at", "status_requests_used", "credential")
    assert all(getattr(after, name) == getattr(op, name) for name in limits)
    assert applied.approves is None


@pytest.mark.rule("G4", "G7")
def test_nothing_can_be_approved_that_is_not_shown() -> None:
    op = awaiting()
    for reason, kind in ((StopReason.CALL_APPROVAL, "approve_once"), (StopReason.SESSION_APPROVAL, "approve_session")):
        found = choices(op, question(reason, op), policy=POLICY, now=NOW)
        (choice,) = [each for each in found if each.kind is ChoiceKind(kind)]
        assert choice.unavailable is not None
        assert choice.call is None
