"""The card: drawn from what is executed, armed only when seen whole, and decided by nothing but its two keys."""

from __future__ import annotations

import ast
from pathlib import Path

import msgspec
import pytest
from tests.console.screens.fakes import FakeCore
from tests.console.screens.harness import (
    choose,
    confirm,
    console,
    digit_of,
    lives_on,
    open_card,
    read_to_the_end,
    screen_text,
    until,
)
from tests.console.seed import stopped
from textual import events

from pollconsole.approve import approve
from pollconsole.guard_facts import State
from pollconsole.screens.card import CardScreen
from pollconsole.screens.detail import DetailScreen
from pollconsole.screens.live import LiveScreen
from pollconsole.screens.queue import QueueScreen
from pollconsole.widgets import LinesView
from pollcore.facts import Instant, Status, StopReason

SPENT = "op-0000000a"
ROOT = Path(__file__).resolve().parents[3]
E3 = (
    "External job needs a decision",
    "Operation:",
    "Provider job:",
    "Last state:",
    "Elapsed time:",
    "Status requests:  12 of 12",
    "Last HTTP result: 200 at 10:58 UTC",
    "Stopped because:  request_budget_exhausted",
    "Safe options:",
)


@pytest.mark.rule("E3", "G4")
async def test_the_card_has_the_words_of_the_promise_in_their_order_and_leaves_nothing_out(fake: FakeCore) -> None:
    async with console(fake.runner, size=(100, 60)) as (app, pilot):
        card = await open_card(app, pilot, SPENT)
        text = screen_text(app)
        places = [text.index(words) for words in E3]
        assert places == sorted(places)
        assert card.shown is not None
        words = " ".join(text.split())
        for line in card.shown.card.lines:
            if line.label != "Safe options:":
                assert " ".join(f"{line.label} {line.text}".split()) in words
        for option in card.shown.card.options:
            assert option.label in words
            assert all(" ".join(detail.split()) in words for detail in option.details)


@pytest.mark.rule("G3")
async def test_a_card_that_does_not_fit_arms_only_when_it_was_read_to_its_end(fake: FakeCore) -> None:
    async with console(fake.runner, size=(80, 24)) as (app, pilot):
        app.opens("card", SPENT)
        await until(pilot, lambda: isinstance(app.screen, CardScreen) and app.screen._view, "the card is there")
        card = app.screen
        assert isinstance(card, CardScreen)
        await until(pilot, lambda: "scroll down" in screen_text(app), "the card says what is missing")
        await lives_on(app, pilot, 1.0)
        assert card._view is not None
        assert card._view.state is State.LOCKED
        await pilot.press("1")
        await lives_on(app, pilot, 0.5)
        assert card._view.step == 1
        await pilot.press("escape")
        await open_card(app, pilot, SPENT)


@pytest.mark.rule("E3", "E4", "G4")
async def test_at_80x24_a_card_with_two_sizes_and_a_cancel_is_read_with_one_page_down(fake: FakeCore) -> None:
    async with console(fake.runner, size=(80, 24)) as (app, pilot):
        app.opens("card", SPENT)
        await until(pilot, lambda: isinstance(app.screen, CardScreen) and app.screen._view, "the card is there")
        card = app.screen
        assert isinstance(card, CardScreen)
        await until(pilot, lambda: "scroll down" in screen_text(app), "the first page was seen")
        first = screen_text(app)
        await pilot.press("pagedown")
        await until(pilot, lambda: card._view is not None and card._view.state is State.ARMED, "one page armed it")
        words = " ".join((first + screen_text(app)).split())
        assert card.shown is not None
        for option in card.shown.card.options:
            assert option.label in words
            for cost in (each for each in option.details if " -> " in each):
                assert any(cost in line for line in (first + screen_text(app)).splitlines())


@pytest.mark.rule("G3")
async def test_a_card_whose_unread_lines_are_above_says_scroll_up(fake: FakeCore) -> None:
    async with console(fake.runner, size=(80, 24)) as (app, pilot):
        app.opens("card", SPENT)
        await until(pilot, lambda: "scroll down" in screen_text(app), "the end is missing")
        await pilot.press("end")
        await pilot.resize_terminal(80, 25)
        await until(pilot, lambda: "scroll up" in screen_text(app), "the beginning is missing")
        assert "press one of" not in screen_text(app)


@pytest.mark.rule("G3")
async def test_the_second_step_names_only_the_letter_in_the_footer(fake: FakeCore) -> None:
    async with console(fake.runner, size=(100, 60)) as (app, pilot):
        card = await open_card(app, pilot, SPENT)
        await choose(app, pilot, card, "extend", "extend 15")
        foot = screen_text(app).splitlines()[-1]
        assert foot.strip() == "the letter shown confirms  any other key goes back"
        await pilot.press("escape")
        await until(pilot, lambda: "1-9 choose" in screen_text(app), "the first step has its keys again")


@pytest.mark.rule("G3", "G8")
@pytest.mark.parametrize(
    "keys", [("escape",), ("enter",), ("space",), ("y",), ("tab", "enter"), ("1", "escape", "escape")]
)
async def test_no_other_key_decides(fake: FakeCore, keys: tuple[str, ...]) -> None:
    async with console(fake.runner, size=(100, 60)) as (app, pilot):
        card = await open_card(app, pilot, SPENT)
        for key in keys:
            await pilot.press(key)
            await lives_on(app, pilot)
        if app.screen is card:
            await pilot.press("escape")
        await until(pilot, lambda: app.screen is not card, "the card was left")
    assert fake.actions.decided == []
    assert SPENT in fake.store.open


@pytest.mark.rule("G3", "G4")
async def test_digit_then_letter_decides_once_with_the_guards_proof(fake: FakeCore) -> None:
    async with console(fake.runner, size=(100, 60)) as (app, pilot):
        card = await open_card(app, pilot, SPENT)
        await choose(app, pilot, card, "extend", "extend 15")
        between = " ".join(screen_text(app).split())
        assert "This gives new authority: extend 15 min / 4 checks" in between
        assert "status requests 12 -> 16" in between
        assert fake.actions.decided == []
        await confirm(app, pilot, card)
        await until(pilot, lambda: SPENT not in app.state.board.questions, "the question is gone")
        await until(pilot, lambda: "extend 15 min / 4 checks" in screen_text(app), "the row says what was done")
    [(operation_id, kind, evidence)] = fake.actions.decided
    assert (operation_id, kind) == (SPENT, "extend")
    assert evidence["step1_key"] == "1"
    assert len(str(evidence["step2_key"])) == 1
    assert fake.actions.threads == {"pollconsole-core"}


@pytest.mark.rule("E7", "G4")
async def test_a_card_whose_limits_moved_is_drawn_anew_and_the_old_keys_decide_nothing(fake: FakeCore) -> None:
    async with console(fake.runner, size=(100, 60)) as (app, pilot):
        card = await open_card(app, pilot, SPENT)
        await choose(app, pilot, card, "extend", "extend 15")
        row = fake.store.rows[SPENT]
        later = Instant(row.deadline_at + 60_000)
        fake.store.put(msgspec.structs.replace(row, version=row.version + 1, deadline_at=later))
        await until(pilot, lambda: "was drawn anew" in screen_text(app), "the card says so")
        await until(pilot, lambda: card._view is not None and card._view.step == 1, "back to the first step")
        assert "11:31:00" in screen_text(app)
    assert fake.actions.decided == []


@pytest.mark.rule("E7", "G4")
async def test_a_decision_on_what_moved_meanwhile_is_refused_and_the_question_waits(fake: FakeCore) -> None:
    row = fake.store.rows[SPENT]

    def moves() -> None:
        with fake.store.lock:
            fake.store.rows[SPENT] = msgspec.structs.replace(row, max_status_requests=99, version=row.version + 1)

    fake.actions.before_decide = moves
    async with console(fake.runner, size=(100, 60)) as (app, pilot):
        card = await open_card(app, pilot, SPENT)
        await choose(app, pilot, card, "extend", "extend 15")
        assert card._view is not None
        assert card._view.letter is not None
        await pilot.press(card._view.letter)
        why = card.query_one("#why", LinesView)
        await until(pilot, lambda: "refused, nothing was done" in " ".join(why.lines), "the refusal is told")
        await until(pilot, lambda: "12 of 99" in screen_text(app), "the card is drawn anew")
        assert why.display

        def whole() -> bool:
            shown = " ".join(screen_text(app).split())
            return bool(why.lines) and all(" ".join(line.split()) in shown for line in why.lines)

        await until(pilot, whole, "every line of the refusal is on the screen")
        await pilot.press("down")
        await until(pilot, lambda: not why.display, "the next key takes it away")
    assert fake.actions.decided == []
    assert SPENT in fake.store.open


@pytest.mark.rule("G4")
async def test_running_figures_of_a_wait_that_goes_on_leave_the_card_alone(fake: FakeCore) -> None:
    async with console(fake.runner, size=(100, 60)) as (app, pilot):
        card = await open_card(app, pilot, SPENT)
        shown = card.shown
        fake.store.put(fake.store.rows["op-00000001"])
        fake.clock.forward(2_000)
        await lives_on(app, pilot, 0.6)
        assert card.shown is shown
        assert card._view is not None
        assert card._view.state is State.ARMED


@pytest.mark.rule("G3")
async def test_another_size_locks_the_card_until_it_was_seen_whole_again(fake: FakeCore) -> None:
    async with console(fake.runner, size=(100, 60)) as (app, pilot):
        card = await open_card(app, pilot, SPENT)
        await choose(app, pilot, card, "extend", "extend 15")
        await pilot.resize_terminal(90, 50)
        await until(pilot, lambda: card._view is not None and card._view.step == 1, "back to the first step")
        await read_to_the_end(app, pilot, card)
        await pilot.resize_terminal(70, 50)
        await until(pilot, lambda: "enlarge to 80x24" in screen_text(app), "too small to decide on")
    assert fake.actions.decided == []


@pytest.mark.rule("E9")
async def test_inspect_decides_nothing_and_esc_comes_back_to_the_card(fake: FakeCore) -> None:
    async with console(fake.runner, size=(100, 60)) as (app, pilot):
        card = await open_card(app, pilot, SPENT)
        await pilot.press(digit_of(card, "inspect"))
        await until(pilot, lambda: isinstance(app.screen, DetailScreen), "the record is open")
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is card, "back on the card")
        await until(pilot, lambda: card._view is not None and card._view.state is State.ARMED, "armed again")
    assert fake.actions.decided == []


@pytest.mark.rule("G3")
async def test_a_forged_key_event_and_a_paste_decide_nothing(fake: FakeCore) -> None:
    async with console(fake.runner, size=(100, 60)) as (app, pilot):
        card = await open_card(app, pilot, SPENT)
        app.post_message(events.Key("1", "1"))
        app.post_message(events.Paste("1"))
        await lives_on(app, pilot, 0.6)
        assert card._view is not None
        assert card._view.step == 1
    assert fake.actions.decided == []


@pytest.mark.rule("G3")
async def test_a_console_that_only_reads_shows_the_card_and_never_arms(fake: FakeCore) -> None:
    async with console(fake.runner, size=(100, 60), read_only=True) as (app, pilot):
        app.opens("card", SPENT)
        await until(pilot, lambda: "started to look" in screen_text(app), "the card says so")
        await pilot.press("1")
        await lives_on(app, pilot, 0.4)
        assert "READ-ONLY" in screen_text(app)
    assert fake.actions.decided == []
    assert fake.polling.turns == 0


@pytest.mark.rule("E7")
async def test_o_asks_for_a_question_on_a_running_operation(fake: FakeCore) -> None:
    async with console(fake.runner, size=(100, 60)) as (app, pilot):
        app.opens("question", "op-00000001")
        await until(pilot, lambda: "operator_request" in screen_text(app), "its card is open")
        assert fake.store.open["op-00000001"].reason is StopReason.OPERATOR_REQUEST
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, LiveScreen), "back")
        app.opens("question", "op-00000014")
        await until(pilot, lambda: "has ended" in screen_text(app), "an end has nothing to decide")


@pytest.mark.rule("G8")
async def test_the_next_card_appears_by_its_own_key_and_is_locked_again(fake: FakeCore) -> None:
    async with console(fake.runner, size=(100, 60)) as (app, pilot):
        await pilot.press("E")
        await until(pilot, lambda: isinstance(app.screen, QueueScreen) and app.screen.table.ids, "the queue")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, CardScreen) and app.screen._view, "the first card")
        card = app.screen
        assert isinstance(card, CardScreen)
        await until(pilot, lambda: card._view is not None and card._view.state is State.ARMED, "armed")
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: card.operation_id == "op-0000000b" and card.shown, "the second card")
        await until(pilot, lambda: "2 of 4" in screen_text(app), "its place")
        assert card._view is None or card._view.step == 1
    assert fake.actions.decided == []


@pytest.mark.rule("V4", "V5", "G3")
async def test_an_approval_is_opened_by_its_own_key_and_denied_by_one_armed_key() -> None:
    asked = stopped(0x50, StopReason.CALL_APPROVAL, Status.AWAITING_APPROVAL)
    fake = FakeCore([asked])
    async with console(fake.runner, size=(100, 60)) as (app, pilot):
        assert "1 approval waiting" in screen_text(app)
        assert "A opens" in screen_text(app)
        await pilot.press("A")
        await until(pilot, lambda: "call_approval" in screen_text(app), "the queue of approvals")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, CardScreen) and app.screen.shown, "the card")
        card = app.screen
        assert isinstance(card, CardScreen)
        await read_to_the_end(app, pilot, card)
        await pilot.press(digit_of(card, "deny"))
        await until(pilot, lambda: app.screen is not card, "one key denied")
    assert [kind for _, kind, _ in fake.actions.decided] == ["deny"]
    assert "step2_key" not in fake.actions.decided[0][2]


@pytest.mark.rule("G5", "E10")
def test_one_line_alone_calls_each_way_to_decide() -> None:
    calls = []
    for file in sorted((ROOT / "console").rglob("*.py")):
        text = file.read_text("utf-8")
        if "from pollcore.decide import" in text or "from pollcore import decide, reading" in text:
            assert "actions" not in text  # the pure rules that `explain` replays share the name, nothing else
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Attribute | ast.Name):
                # by whatever way: called, kept, handed on
                name = node.attr if isinstance(node, ast.Attribute) else node.id
                if name in ("decide", "decide_group", "decide_question"):
                    calls.append((file.name, name))
    assert sorted(calls) == [("approve.py", name) for name in ("decide", "decide_group", "decide_question")]


@pytest.mark.rule("G3", "G5")
async def test_without_the_guards_evidence_nothing_is_asked_of_the_core(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, _):
        shown = await app.state.link.ask(lambda core: core.actions.card(SPENT))
        with pytest.raises(TypeError, match="evidence"):
            await approve(app.state.link, shown, {"choice": "1"})  # type: ignore[arg-type]
    assert fake.actions.decided == []
