"""A looser mode of a credential: anyone may ask for it, one question a credential, the console alone gives it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollcore import grants
from pollcore.actions import ShownQuestion
from pollcore.adapters.credential_ops import change_mode, remove_credential
from pollcore.card import card, digest
from pollcore.escalation import Circumstances, ModeChange, choices
from pollcore.facts import (
    BootMs,
    Choice,
    ChoiceKind,
    CredentialMode,
    Escalation,
    EventName,
    Instant,
    Moment,
    NotFound,
    Policy,
    Refused,
    Stale,
    StopReason,
)
from tests.controller.house import KEYS, OPERATOR, House, house

M = CredentialMode


async def mode(h: House, name: str = "key") -> CredentialMode:
    found = await h.core.credential_admin.meta.get(name)
    assert found is not None
    return found.mode


async def asked(h: House, wanted: CredentialMode = M.STANDING, now: CredentialMode = M.PER_CALL) -> Escalation:
    """The credential `key` in mode *now*, and the question for *wanted*."""
    await change_mode(h.core.credential_admin.meta, "key", now)
    return await h.core.actions.ask_mode("key", wanted, "agent", "the nightly batch")


async def shown(h: House, question: Escalation) -> ShownQuestion:
    drawn = await h.core.actions.card_of(question.escalation_id)
    assert isinstance(drawn, ShownQuestion)
    return drawn


def pick(drawn: ShownQuestion, kind: ChoiceKind) -> Choice:
    return next(choice for choice in drawn.choices if choice.kind is kind)


async def press(h: House, drawn: ShownQuestion, kind: ChoiceKind, core: Any = None) -> Escalation:
    closed: Escalation = await (core or h.core).actions.decide_question(
        drawn.question.escalation_id, pick(drawn, kind).key, drawn.digest, KEYS, OPERATOR, "agreed"
    )
    return closed


@pytest.mark.rule("G2", "G5", "G6")
async def test_asking_changes_nothing_and_asking_again_is_the_same_question(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        question = await asked(h)
        assert await mode(h) is M.PER_CALL
        assert await h.core.actions.ask_mode("key", M.STANDING, "another", None) == question
        assert [q.escalation_id for q in await h.core.store.credential_questions()] == [question.escalation_id]
        assert (question.operation_id, question.cause) == ("", "mode_change:key")
        assert len(await h.events(EventName.QUESTION_OPENED)) == 1
        assert (await h.core.store.counts())["questions"] == 1


@pytest.mark.rule("G2", "G4", "A1")
async def test_approve_gives_exactly_the_mode_that_was_shown_with_its_grant(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        question = await asked(h, M.PER_SESSION)
        drawn = await shown(h, question)
        text = drawn.card.text()
        assert "Mode: per_call -> per_session" in text
        assert f"Sent to: {h.bank.url}" in text
        assert "Asked by: agent" in text
        closed = await press(h, drawn, ChoiceKind.APPROVE)
        assert await mode(h) is M.PER_SESSION
        assert (closed.decision, closed.operator, closed.decision_text) == ("approve", str(OPERATOR), "agreed")
        assert await h.core.store.credential_questions() == ()
        (told,) = await h.events(EventName.GRANTED)
        assert "credential per_call -> per_session" in told.notes
        assert any(note.startswith("guard: ") for note in told.notes)
        ask = h.core.store._writer.call(
            lambda s: s.conn.execute("SELECT escalation_id, body FROM credential_grant").fetchall()
        )
        ((escalation_id, body),) = ask.result(10)
        assert escalation_id == question.escalation_id
        assert msgspec.json.decode(body)["card_digest"] == drawn.digest


@pytest.mark.rule("G2", "G5")
@pytest.mark.parametrize("way", ["console", "command line", "close"])
async def test_reject_and_close_leave_the_mode_as_it_is(way: str, tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        question = await asked(h)
        if way == "command line":
            closed = await h.core.actions.reject_question(question.escalation_id, "no", "agent")
        else:
            kind = ChoiceKind.REJECT if way == "console" else ChoiceKind.CLOSE
            closed = await press(h, await shown(h, question), kind)
        assert closed.decided_at is not None
        assert await mode(h) is M.PER_CALL
        assert await h.core.store.credential_questions() == ()
        assert not await h.events(EventName.GRANTED)


@pytest.mark.rule("E7", "G8")
async def test_a_second_decision_is_stale_and_told(tmp_path: Path) -> None:
    async with house(tmp_path) as h, h.open() as other:
        drawn = await shown(h, await asked(h))
        both = await asyncio.gather(
            press(h, drawn, ChoiceKind.APPROVE), press(h, drawn, ChoiceKind.REJECT, other), return_exceptions=True
        )
        assert sum(isinstance(one, Stale) for one in both) == 1
        with pytest.raises(Stale):
            await press(h, drawn, ChoiceKind.APPROVE)
        assert await h.events(EventName.GRANT_REFUSED)
        with pytest.raises(Refused) as refused:
            await h.core.actions.card_of(drawn.question.escalation_id)
        assert refused.value.code == "no_question"
        with pytest.raises(NotFound):
            await h.core.actions.card_of("esc-none")


@pytest.mark.rule("G4", "E7")
@pytest.mark.parametrize("change", ["origins", "mode", "removed"])
async def test_a_credential_that_changed_since_makes_the_question_stale(change: str, tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        question = await asked(h, M.STANDING, M.PER_SESSION)
        drawn = await shown(h, question)
        if change == "origins":
            await h.credential(origins=["https://evil.example"])
        elif change == "mode":
            await change_mode(h.core.credential_admin.meta, "key", M.PER_CALL)
        else:
            await remove_credential(h.core.vault, h.core.credential_admin.meta, "key")
        with pytest.raises(Stale):
            await press(h, drawn, ChoiceKind.APPROVE)
        fresh = await shown(h, question)
        assert pick(fresh, ChoiceKind.APPROVE).unavailable is not None
        with pytest.raises(Refused):
            await press(h, fresh, ChoiceKind.APPROVE)
        if change != "removed":
            assert await mode(h) is not M.STANDING
            anew = await h.core.actions.ask_mode("key", M.STANDING, "agent")
            assert anew.escalation_id != question.escalation_id
            assert [q.escalation_id for q in await h.core.store.credential_questions()] == [anew.escalation_id]


@pytest.mark.rule("G4")
async def test_a_change_between_the_look_and_the_commit_gives_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house(tmp_path) as h:
        drawn = await shown(h, await asked(h, M.STANDING, M.PER_SESSION))
        settle = h.core.store.settle_credential

        async def late(*arguments: Any) -> None:
            await change_mode(h.core.credential_admin.meta, "key", M.PER_CALL)
            await settle(*arguments)

        monkeypatch.setattr(h.core.store, "settle_credential", late)
        with pytest.raises(Stale):
            await press(h, drawn, ChoiceKind.APPROVE)
        assert await mode(h) is M.PER_CALL
        assert len(await h.core.store.credential_questions()) == 1
        assert not await h.events(EventName.GRANTED)


@pytest.mark.rule("G2", "O1")
async def test_the_question_survives_a_restart(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        question = await asked(h)
        async with h.open() as other:
            assert await other.store.credential_questions() == (question,)
            drawn = await other.actions.card_of(question.escalation_id)
            await press(h, drawn, ChoiceKind.APPROVE, other)
        assert await mode(h) is M.STANDING


@pytest.mark.rule("A4", "G2")
async def test_what_cannot_be_anchored_gives_no_mode(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        drawn = await shown(h, await asked(h))
        h.keyring.locked = True
        with pytest.raises(Refused) as refused:
            await press(h, drawn, ChoiceKind.APPROVE)
        assert refused.value.code == "unanchored"
        assert await mode(h) is M.PER_CALL
        h.keyring.locked = False
        await press(h, drawn, ChoiceKind.APPROVE)
        assert await mode(h) is M.STANDING


@pytest.mark.rule("G2")
async def test_only_a_looser_mode_is_asked_for(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await change_mode(h.core.credential_admin.meta, "key", M.PER_SESSION)
        for wanted in (M.PER_SESSION, M.PER_CALL):
            with pytest.raises(Refused) as refused:
                await h.core.actions.ask_mode("key", wanted, "agent")
            assert refused.value.code == "not_looser"
        with pytest.raises(NotFound, match="near: key"):
            await h.core.actions.ask_mode("kei", M.STANDING, "agent")


# --- pure -------------------------------------------------------------------------------------------------------------

modes = st.sampled_from(M)
names = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=20)
NOW = Moment(Instant(1_772_445_600_000), BootMs(1_000), "boot")


@st.composite
def changes(draw: st.DrawFn) -> ModeChange:
    return ModeChange(
        credential=draw(names),
        before=draw(modes),
        after=draw(modes),
        kind=draw(st.sampled_from(("bearer", "query:\x1b[2Jk"))),
        origins=tuple(draw(st.lists(st.sampled_from(("https://a.example:443", "https://b.example:443")), max_size=2))),
        problem=draw(st.sampled_from((None, "changed\nsince"))),
    )


def question(change: ModeChange) -> Escalation:
    return Escalation(
        escalation_id="esc-1",
        operation_id="",
        reason=StopReason.MODE_CHANGE,
        detail=None,
        cause=f"mode_change:{change.credential}",
        asked_at=NOW.wall,
        version=0,
    )


@pytest.mark.rule("G2", "G4")
@given(changes(), st.sampled_from((ChoiceKind.APPROVE, ChoiceKind.REJECT, ChoiceKind.CLOSE)))
def test_whatever_is_asked_only_approve_gives_and_it_gives_what_was_shown(change: ModeChange, kind: ChoiceKind) -> None:
    facts, open_one = Circumstances(mode=change), question(change)
    offered = choices(None, open_one, policy=Policy(), now=NOW, circumstances=facts)
    choice = next(each for each in offered if each.kind is kind)
    assert choice.grants is (kind is ChoiceKind.APPROVE)
    if choice.unavailable is not None:
        assert (kind, change.problem is None) == (ChoiceKind.APPROVE, False)
        with pytest.raises(Refused):
            grants.apply(None, open_one, choice, policy=Policy(), now=NOW, operator=OPERATOR, because=None, new_id="")
        return
    applied = grants.apply(None, open_one, choice, policy=Policy(), now=NOW, operator=OPERATOR, because=None, new_id="")
    assert applied.mode is (change.after if kind is ChoiceKind.APPROVE else None)
    assert applied.operation is None
    assert applied.closed is not None
    assert applied.closed.decision == kind.value


@pytest.mark.rule("G4")
@given(changes(), changes())
def test_the_digest_tells_apart_what_would_be_given(one: ModeChange, other: ModeChange) -> None:
    def drawn(change: ModeChange) -> tuple[str, Any]:
        facts = Circumstances(mode=change)
        offered = choices(None, question(change), policy=Policy(), now=NOW, circumstances=facts)
        made = card(None, question(change), offered, now=NOW, circumstances=facts)
        assert all(line.isprintable() for line in made.text())
        return digest(made), (change.credential, change.before, change.after, change.problem is None)

    (first, given_first), (second, given_second) = drawn(one), drawn(other)
    assert (first == second) is (given_first == given_second)
