"""Approvals on the screens: one queue by the time left, a card that counts down and ends, sessions that are told."""

from __future__ import annotations

from typing import Any

import pytest
from tests.console.screens.approval_seeds import (
    CALL,
    CALL_SOON,
    FIRST_USE,
    MODE,
    OWNER,
    SESSIONS,
    asked_anew,
    asking,
    mode_question,
)
from tests.console.screens.fakes import FakeCore
from tests.console.screens.harness import choose, confirm, console, digit_of, lives_on, open_card, screen_text, until
from tests.console.seed import NOW, seeded

from pollconsole import sessions
from pollconsole.causes import APPROVALS, by_cause, by_time_left
from pollconsole.guard_facts import State
from pollconsole.mailbox import SessionLeft
from pollconsole.screens.approvals import ABOUT, ApprovalsTable
from pollconsole.screens.card import CardScreen
from pollconsole.screens.group import GroupScreen
from pollconsole.screens.live import LiveScreen
from pollconsole.screens.question import QuestionScreen
from pollconsole.screens.queue import QueueScreen
from pollconsole.widgets import LinesView
from pollcore.actions import LiveSession
from pollcore.facts import MINUTE, SECOND, Instant, Stale, StopReason

pytestmark = pytest.mark.slow


def filled() -> FakeCore:
    return asking(FakeCore(seeded()[:3]))


async def queue(app: Any, pilot: Any) -> QueueScreen:
    """The approvals queue, with what its rows are about."""
    await pilot.press("A")
    await until(pilot, lambda: isinstance(app.screen, QueueScreen) and app.screen.ready, "the queue is open")
    screen: QueueScreen = app.screen
    table = screen.query_one(ApprovalsTable)
    await until(pilot, lambda: table.ids and not table.unread(), "the requests are read")
    await until(pilot, lambda: {each for each, _ in table._painted.values()} >= set(table.ids), "the rows are drawn")
    return screen


# --- the queue --------------------------------------------------------------------------------------------------------


@pytest.mark.rule("G7", "E10", "V4")
async def test_the_queue_holds_every_kind_in_one_row_a_cause_those_that_expire_soonest_first() -> None:
    async with console(filled().runner, size=(140, 40)) as (app, pilot):
        screen = await queue(app, pilot)
        assert screen.table.ids[0] == CALL_SOON
        shown = screen_text(app)
    rows = [line.split() for line in shown.splitlines() if any(reason.value in line for reason in APPROVALS)]
    assert [row[0].removeprefix(">") or row[1] for row in rows] == [CALL_SOON, CALL, "2", FIRST_USE, "acme-night"]
    assert "GET api.acme.test/v1/jobs/exp_02b?..." in shown
    assert (rows[0][-4], rows[0][-2]) == ("5/12", "0:20")
    assert "acme-prod: 480 min / 200 calls" in shown
    assert "per_call to standing" in shown
    assert "SIGNATURE" not in shown


@pytest.mark.rule("G7")
async def test_a_row_counts_down_and_says_what_its_kind_means() -> None:
    core = filled()
    async with console(core.runner) as (app, pilot):
        await queue(app, pilot)
        assert "0:20" in screen_text(app)
        assert ABOUT[StopReason.CALL_APPROVAL] in screen_text(app)
        assert "GET https://api.acme.test/v1/jobs/exp_02b (its query is masked)  with acme-pr" in screen_text(app)
        core.clock.forward(5 * SECOND)
        await until(pilot, lambda: "0:15" in screen_text(app), "it counts down")
        await pilot.press("G")
        assert ABOUT[StopReason.MODE_CHANGE] in screen_text(app)


def test_every_kind_of_approval_has_a_sentence_that_fits_a_small_terminal() -> None:
    assert set(ABOUT) == APPROVALS
    assert max(map(len, ABOUT.values())) < 80


@pytest.mark.rule("V4")
async def test_both_queues_are_counted_and_opened_from_the_screens_beside_the_table() -> None:
    core = asking(FakeCore(seeded()))
    async with console(core.runner) as (app, pilot):
        strip = screen_text(app).splitlines()[-3]
        assert "6 approvals" in strip
        assert "4 decisions" in strip
        assert "A or E open" in strip
        for key in ("M", "M"):
            await pilot.press(key)
            await until(pilot, lambda: getattr(app.screen, "beside", False), "it is open")
            await until(pilot, lambda: getattr(app.screen, "ready", False), "it is drawn")
            await until(pilot, lambda: "! A 6, 0:20 left; E 4, " in screen_text(app), "both are counted")
            await pilot.press("A")
            await until(pilot, lambda: isinstance(app.screen, QueueScreen), "the queue takes its place")
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(app.screen, LiveScreen), "back to the table")
        card = await open_card(app, pilot, CALL)
        await pilot.press("A")
        await lives_on(app, pilot)
        assert app.screen is card


@pytest.mark.rule("V4", "E1")
async def test_a_question_about_a_credential_is_counted_and_opened_without_any_operation() -> None:
    core = FakeCore([])
    core.store.aside = [mode_question()]
    async with console(core.runner) as (app, pilot):
        assert "1 approval waiting, oldest 9 min - A opens" in screen_text(app)
        await queue(app, pilot)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, QuestionScreen) and app.screen.shown, "its card is open")
        card = app.screen
        assert isinstance(card, QuestionScreen)
        await until(pilot, lambda: card._view is not None and card._view.state is State.LOCKED, "it is guarded")
        await pilot.press("pagedown")
        await until(pilot, lambda: card._view is not None and card._view.state is State.ARMED, "it is armed")
        await choose(app, pilot, card, "approve", "approve standing")
        await confirm(app, pilot, card)
        await until(pilot, lambda: "nothing waits here" in screen_text(app), "nothing waits any more")
    assert [(each[0], each[1]) for each in core.actions.decided] == [(MODE, "approve")]


def test_questions_that_do_not_expire_come_after_those_that_do_by_the_end_of_their_wait() -> None:
    core = filled()
    causes = by_cause([*core.store.open.values(), *core.store.aside], core.store.rows)
    causes = [each for each in by_time_left(causes, NOW) if each.reason in APPROVALS]
    ordered = [each.questions[0].operation_id for each in causes]
    assert ordered[:2] == [CALL_SOON, CALL]
    assert ordered[-1] == ""


# --- the card of one call ---------------------------------------------------------------------------------------------


@pytest.mark.rule("G7", "G4", "K4")
async def test_the_card_names_the_request_first_and_once_more_between_the_keys() -> None:
    core = filled()
    async with console(core.runner) as (app, pilot):
        card = await open_card(app, pilot, CALL)
        card.action_ends(0)
        asked = "decision: GET https://api.acme.test/v1/jobs/exp_02a?..."
        await until(pilot, lambda: asked in screen_text(app), "its first line")
        await choose(app, pilot, card, "approve_once")
        between = " ".join(screen_text(app).split())
        for said in (
            "This gives new authority: approve once",
            "Method: GET",
            "Host: https://api.acme.test",
            "Path: /v1/jobs/exp_02a (its query is masked)",
            "Request number: 5 of 12",
            "Credential: acme-prod",
            "Can reveal: the job's state",
        ):
            assert said in between
        assert core.actions.decided == []
        await confirm(app, pilot, card)
    assert [each[:2] for each in core.actions.decided] == [(CALL, "approve_once")]


@pytest.mark.rule("G7", "G4")
async def test_the_countdown_is_painted_without_locking_the_guard_or_moving_a_line() -> None:
    core = filled()
    async with console(core.runner) as (app, pilot):
        card = await open_card(app, pilot, CALL)
        assert card._view is not None
        marker, before = card._view.marker, screen_text(app).splitlines()
        assert any("expires in 1:30" in line for line in before)
        core.clock.forward(7 * SECOND)
        await until(pilot, lambda: "expires in 1:23" in screen_text(app), "it counts down")
        assert (card._view.marker, card._view.state) == (marker, State.ARMED)
        after = screen_text(app).splitlines()
        changed = [n for n, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    assert {"expires in" in before[n] or n == 0 for n in changed} == {True}


@pytest.mark.rule("G7")
async def test_a_card_that_was_painted_is_told_once_and_never_by_a_console_that_only_looks() -> None:
    core = filled()
    question = core.store.open[CALL].escalation_id
    async with console(core.runner) as (app, pilot):
        await open_card(app, pilot, CALL)
        await pilot.press("pageup", "pagedown")
        await until(pilot, lambda: core.actions.looked, "it is told")
        await lives_on(app, pilot)
    assert core.actions.looked == [(CALL, question)]
    core = filled()
    async with console(core.runner, read_only=True) as (app, pilot):
        app.opens("card", CALL)
        await until(pilot, lambda: "READ-ONLY" in screen_text(app) and "expires in" in screen_text(app), "it is drawn")
        await lives_on(app, pilot)
    assert core.actions.looked == []


@pytest.mark.rule("G7", "G8", "E7")
@pytest.mark.parametrize("step", [1, 2])
async def test_an_expired_card_says_so_locks_and_opens_the_new_question_by_its_own_key(step: int) -> None:
    core = filled()
    async with console(core.runner) as (app, pilot):
        card = await open_card(app, pilot, CALL)
        old = card.shown
        if step == 2:
            await choose(app, pilot, card, "approve_once")
        letter = card._view.letter if card._view is not None else None
        core.clock.forward(91 * SECOND)
        await until(pilot, lambda: "EXPIRED" in screen_text(app), "it says so")
        assert "nothing was decided, nothing was sent" in screen_text(app)
        assert "press r" not in screen_text(app)
        await pilot.press("1", *([letter] if letter else []), "r")
        new = asked_anew(core, CALL)
        await until(pilot, lambda: "press r to open the new question" in screen_text(app), "it is asked anew")
        await pilot.press("1", *([letter] if letter else []), "enter", "space")
        await lives_on(app, pilot, 0.4)
        assert card.shown is old
        assert core.actions.decided == []
        await pilot.press("r")
        await until(pilot, lambda: card.shown is not None and card.shown is not old, "the new card is drawn")
        assert card.shown is not None
        assert card.shown.question.escalation_id == new.escalation_id
        await until(pilot, lambda: "expires in 2:00" in screen_text(app), "with a time of its own")
    assert core.actions.decided == []


@pytest.mark.rule("G4", "G8", "E7")
async def test_a_decision_that_comes_too_late_is_told_and_no_other_card_opens() -> None:
    core = filled()

    def expires() -> None:
        asked_anew(core, CALL)
        raise Stale(f"{CALL}: the question has expired and is asked anew; nothing was done")

    async with console(core.runner) as (app, pilot):
        card = await open_card(app, pilot, CALL)
        old = card.shown
        core.actions.before_decide = expires
        await choose(app, pilot, card, "approve_once")
        assert card._view is not None
        assert card._view.letter is not None
        await pilot.press(card._view.letter)
        told = "refused, nothing was done: op-0000002a: the question has expired and is asked anew"
        await until(pilot, lambda: told in " ".join(screen_text(app).split()), "it is told")
        await until(pilot, lambda: "press r to open the new question" in screen_text(app), "the way on is named")
        await lives_on(app, pilot, 0.4)
        assert card.shown is old
        assert app.screen is card
    assert core.actions.decided == []


@pytest.mark.rule("G5", "V5")
async def test_one_armed_digit_denies() -> None:
    core = filled()
    async with console(core.runner) as (app, pilot):
        card = await open_card(app, pilot, CALL)
        await pilot.press(digit_of(card, "deny"))
        await until(pilot, lambda: app.screen is not card, "it is decided")
    assert [each[:2] for each in core.actions.decided] == [(CALL, "deny")]


@pytest.mark.rule("G8")
async def test_a_note_that_is_written_when_the_time_is_over_is_kept_and_decides_nothing() -> None:
    core = filled()
    async with console(core.runner) as (app, pilot):
        card = await open_card(app, pilot, CALL)
        await pilot.press("w", *"seen")
        core.clock.forward(91 * SECOND)
        await until(pilot, lambda: "EXPIRED" in screen_text(app), "it says so")
        await pilot.press("1", "enter")
        asked_anew(core, CALL)
        await until(pilot, lambda: "press r" in screen_text(app), "it is asked anew")
        assert not card.note.writing
        await pilot.press("r")
        await until(
            pilot, lambda: "Your note: seen" in " ".join(line for line in card.query_one(LinesView).lines), "kept"
        )
    assert core.actions.decided == []


# --- sessions, first use ----------------------------------------------------------------------------------------------


@pytest.mark.rule("G6", "E10", "G4")
async def test_a_session_is_one_card_for_its_operations_with_minutes_and_calls_before_and_after() -> None:
    core = filled()
    async with console(core.runner, size=(100, 40)) as (app, pilot):
        app.opens("group", f"session_approval:acme-prod:{OWNER}")
        await until(pilot, lambda: isinstance(app.screen, GroupScreen) and app.screen.shown, "the card is there")
        card = app.screen
        assert isinstance(card, GroupScreen)
        await until(pilot, lambda: card._view is not None and card._view.state is State.ARMED, "armed")
        for said in ("session minutes 0 -> 480", "session calls 0 -> 200", OWNER):
            assert said in " ".join(screen_text(app).split())
        assert card.shown is not None
        assert tuple(each.operation_id for each in card.shown.card.members) == SESSIONS


@pytest.mark.rule("X7", "G5")
async def test_the_card_of_a_first_use_opens_the_contract_by_inspect_and_by_its_own_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(CardScreen, "open_contract", lambda over, provider: opened.append(provider))
    core = filled()
    async with console(core.runner) as (app, pilot):
        card = await open_card(app, pilot, FIRST_USE)
        assert "t contract" in screen_text(app)
        await pilot.press("t")
        await until(pilot, lambda: opened == ["acme"], "by its key")
        await pilot.press(digit_of(card, "inspect"))
        await until(pilot, lambda: opened == ["acme", "acme"], "by inspect")
        other = await open_card(app, pilot, CALL)
        await pilot.press("t")
        await lives_on(app, pilot)
        assert opened == ["acme", "acme"]
        assert isinstance(other, CardScreen)
    assert core.actions.decided == []


def left(session_id: str, minutes: int = 90, calls: int = 188) -> SessionLeft:
    return SessionLeft(session_id, "acme-prod", OWNER, Instant(NOW + minutes * MINUTE), 200, calls)


@pytest.mark.rule("G6")
def test_what_is_left_of_sessions_is_told_in_ever_fewer_words() -> None:
    one, two = (left("a"),), (left("a"), left("b", minutes=5, calls=7))
    assert sessions.span((), NOW, 0) is None
    assert [sessions.span(one, NOW, form) for form in range(4)] == [
        (" session acme-prod 188 calls 1 h 30 min ", "calm"),
        (" session 188 calls 1h 30m ", "calm"),
        (" session 188 1h 30m ", "calm"),
        (" 1 session ", "calm"),
    ]
    assert sessions.span(two, NOW, 1) == (" 2 sessions, first 7 calls 5:00 ", "attention")


@pytest.mark.rule("G6")
def test_a_session_that_is_gone_is_told_with_what_is_known_of_its_end() -> None:
    assert sessions.ended((left("a"),), (left("a", calls=3),), NOW) == []
    (said,) = sessions.ended((left("a"),), (), NOW)
    assert "188 of 200 calls were left" in said
    (said,) = sessions.ended((left("a", minutes=1),), (), Instant(NOW + MINUTE))
    assert "its time is over" in said


@pytest.mark.rule("G6")
async def test_the_table_says_what_is_left_of_a_session_and_the_messages_that_it_ended() -> None:
    core = filled()
    core.actions.live = [
        LiveSession(
            session_id="ses-1", credential="acme-prod", owner=OWNER, started_at=NOW, until=Instant(NOW + 90 * MINUTE),
            calls=200, calls_used=12, granted_by="ana@ops1",
        )
    ]  # fmt: skip
    async with console(core.runner, size=(120, 30)) as (app, pilot):
        await until(pilot, lambda: "session acme-prod 188 calls" in screen_text(app), "the first line says it")
        core.actions.live = []
        core.store.number += 1
        await until(pilot, lambda: "the session of acme-prod has ended" in screen_text(app), "its end is told")
        assert "188 calls 1 h" not in screen_text(app)


# --- the guide of the demo --------------------------------------------------------------------------------------------


async def test_a_guide_says_one_sentence_a_kind_and_learns_when_somebody_looks_at_what_counts_down() -> None:
    core = FakeCore(seeded()[:3])
    async with console(core.runner) as (app, pilot):
        looked: list[bool] = []
        app.state.reading = looked.append
        app.state.guide = {StopReason.CALL_APPROVAL: "New: calls", StopReason.MODE_CHANGE: "New: modes"}
        core.store.aside = [mode_question()]
        core.store.number += 1
        await until(pilot, lambda: "New: modes" in screen_text(app), "the first kind is told")
        asking(core)
        await until(pilot, lambda: "New: calls" in screen_text(app), "and the next")
        assert [each.text for each in app.state.messages if each.text.startswith("New")] == ["New: modes", "New: calls"]
        await queue(app, pilot)
        await until(pilot, lambda: looked == [True], "somebody looks")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, CardScreen), "a card is open")
        await pilot.press("escape", "escape")
        await until(pilot, lambda: looked == [True, False], "nobody looks any more")
