"""The guard's machine, state by state: what locks, what arms, what counts and what is stored."""

from __future__ import annotations

import copy
import pickle

import pytest
from tests.console.guard.bench import CARD, Bench

from pollconsole.guard import Guard
from pollconsole.guard_facts import (
    LETTER_POOL,
    Choice,
    Evidence,
    GuardTimes,
    OpenCard,
    State,
    Way,
    text_digest,
)
from pollconsole.guard_fence import MAX_QUESTIONS

pytestmark = pytest.mark.rule("G3")


@pytest.fixture
def bench() -> Bench:
    return Bench()


def decided(bench: Bench) -> Evidence:
    bench.arm()
    bench.press("1")
    bench.arm()
    bench.press(bench.letter)
    return bench.evidence[0]


def test_a_digit_and_then_the_shown_letter_decide(bench: Bench) -> None:
    evidence = decided(bench)
    assert (evidence.choice, evidence.card_digest) == ("1", "card")
    assert bench.state == "DECIDED"
    assert bench.guard.take_outcome() is None


@pytest.mark.rule("G4", "A1")
def test_the_evidence_tells_how_the_guard_was_passed(bench: Bench) -> None:
    bench.key("x")
    record = decided(bench).record
    first, second = record.steps
    assert (record.text_digest, record.label, record.way, record.terminal) == (
        "text",
        "extend 15 min / 4 checks",
        Way.TWO_STEP,
        "bench",
    )
    assert (first.key, first.fence_ms, second.fence_ms) == ("1", 10, 10)
    assert second.key in LETTER_POOL
    assert first.quiet_ms >= 750
    assert second.quiet_ms >= 300
    assert first.armed_ms <= first.pressed_ms < second.armed_ms <= second.pressed_ms
    assert record.rejected_keys == 1


def test_no_one_but_the_machine_makes_an_evidence(bench: Bench) -> None:
    evidence = decided(bench)
    with pytest.raises(TypeError, match="guard's machine alone"):
        Evidence(object(), evidence.record)
    with pytest.raises(TypeError):
        copy.copy(evidence)
    with pytest.raises(TypeError):
        pickle.dumps(evidence)
    with pytest.raises(TypeError):
        evidence._record = evidence.record
    with pytest.raises(TypeError):
        type("Forged", (Evidence,), {})


def test_a_card_that_was_not_painted_stays_locked(bench: Bench) -> None:
    bench.settle(10)
    bench.press("1")
    assert bench.state == "LOCKED"
    assert bench.guard.fence_wanted is False


def test_a_marker_of_an_earlier_version_opens_nothing(bench: Bench) -> None:
    old = bench.guard.marker
    bench.tell("changed")
    bench.paint(old)
    assert bench.state == "LOCKED"
    bench.paint()
    assert bench.state == "FENCING"
    assert bench.guard.fence_wanted is True


def test_keys_before_the_terminals_answer_choose_nothing(bench: Bench) -> None:
    bench.paint()
    bench.ask()
    bench.settle(0.6)
    bench.key("1")
    bench.answer()
    bench.settle(0.7)
    assert bench.state == "QUIET"
    bench.settle(0.2)
    assert bench.state == "ARMED"


def test_a_report_of_another_cell_is_no_answer(bench: Bench) -> None:
    bench.paint()
    bench.ask(5, 7)
    bench.answer(1, 2)
    bench.settle(1.0)
    assert bench.state == "FENCING"


def test_a_terminal_that_never_answers_needs_the_long_quiet(bench: Bench) -> None:
    bench.paint()
    bench.ask()
    bench.settle(3.9)
    assert bench.state == "QUIET"
    bench.settle(0.3)
    assert bench.state == "ARMED"
    bench.press("3")
    assert bench.evidence[0].record.steps[0].fence_ms is None


def test_an_answer_that_comes_late_starts_the_quiet_again_even_under_a_held_key(bench: Bench) -> None:
    bench.paint()
    bench.ask()
    bench.settle(4.3)
    bench.key("3")
    bench.answer()
    bench.settle(0.3)
    assert bench.evidence == []
    assert bench.state == "QUIET"


def test_a_terminal_that_used_to_answer_is_asked_again_not_done_without(bench: Bench) -> None:
    bench.arm()
    bench.tell("changed")
    bench.paint()
    questions = 0
    for number in range(MAX_QUESTIONS * 3):
        if bench.guard.fence_wanted:
            bench.ask(9, number + 1)
            questions += 1
        bench.settle(1.0)
    assert questions == MAX_QUESTIONS
    assert bench.state == "FENCING"
    assert "open it again" in bench.guard.view(bench.now).message
    bench.open()
    bench.paint()
    bench.ask()
    bench.settle(4.3)
    assert bench.state == "ARMED"


def test_an_answer_to_any_question_of_this_version_counts(bench: Bench) -> None:
    bench.arm()
    bench.tell("changed")
    bench.paint()
    bench.ask(5, 7)
    bench.settle(2.2)
    assert bench.guard.fence_wanted
    bench.ask(6, 8)
    bench.wait(0.5)
    bench.answer(5, 7)
    assert bench.state == "QUIET"


@pytest.mark.parametrize("kind", ["paste", "focus", "changed", "resumed"])
def test_what_changes_the_screen_locks_and_goes_back_to_step_one(bench: Bench, kind: str) -> None:
    bench.arm()
    bench.press("1")
    bench.arm()
    before = bench.guard.marker
    bench.tell(kind)
    view = bench.guard.view(bench.now)
    assert (view.state, view.step, view.letter) == (State.LOCKED, 1, None)
    assert view.marker != before


@pytest.mark.parametrize("kind", ["mouse", "stray"])
def test_other_input_ends_the_quiet(bench: Bench, kind: str) -> None:
    bench.arm()
    bench.tell(kind)
    assert bench.state == "QUIET"
    bench.press("3")
    assert bench.evidence == []


@pytest.mark.parametrize("kind", ["paste", "focus", "changed", "resumed", "mouse", "stray"])
def test_any_input_after_the_key_undoes_it(bench: Bench, kind: str) -> None:
    bench.arm()
    bench.key("3")
    assert bench.state == "PENDING"
    bench.wait(0.1)
    bench.tell(kind)
    bench.settle(0.6)
    assert bench.evidence == []


def test_a_held_key_decides_nothing(bench: Bench) -> None:
    bench.arm()
    for _ in range(40):
        bench.key("3")
        bench.settle(0.1)
    assert bench.evidence == []
    assert bench.guard.view(bench.now).rejected_keys >= 39


def test_a_slow_repeat_of_the_digit_does_not_confirm_itself(bench: Bench) -> None:
    bench.arm()
    for _ in range(20):
        bench.key("1")
        bench.settle(0.4)
        if bench.guard.state is State.LOCKED:
            bench.shown()
    assert bench.evidence == []


def test_a_key_that_is_not_genuine_or_not_alone_is_only_input(bench: Bench) -> None:
    for flags in ({"genuine": False}, {"isolated": False}):
        bench.tell("changed")
        bench.arm()
        bench.key("3", **flags)
        bench.settle(0.3)
        assert bench.state == "QUIET"
    assert bench.evidence == []


def test_a_key_typed_before_the_card_was_armed_and_delivered_later_is_refused(bench: Bench) -> None:
    bench.arm()
    bench.key("3", ago=0.4)
    bench.settle(0.3)
    assert bench.evidence == []


@pytest.mark.parametrize("name", ["y", "n", "o", "enter", "space", "tab", "escape", "up", "alt+1", "ctrl+1", "shift+1"])
def test_no_other_key_is_a_choice(bench: Bench, name: str) -> None:
    bench.arm()
    assert bench.key(name) is False
    bench.settle(0.3)
    assert (bench.evidence, bench.guard.view(bench.now).step) == ([], 1)


def test_a_modifier_on_its_own_is_no_input(bench: Bench) -> None:
    bench.arm()
    bench.key("left_shift")
    bench.press("3")
    assert len(bench.evidence) == 1


def test_input_that_is_still_on_its_way_holds_arming_and_the_key(bench: Bench) -> None:
    bench.shown()
    bench.wait(1.0)
    bench.tick(idle=False)
    assert bench.state == "QUIET"
    bench.tick()
    bench.key("3")
    bench.wait(0.2)
    bench.tick(idle=False)
    assert bench.evidence == []
    bench.key("9", ago=0.1)
    bench.settle(0.5)
    assert bench.evidence == []


@pytest.mark.parametrize("name", ["escape", "2", "y", "enter", "left_square_bracket"])
def test_in_step_two_every_other_key_goes_back(bench: Bench, name: str) -> None:
    bench.arm()
    bench.press("1")
    bench.arm()
    assert bench.key(name) is True
    view = bench.guard.view(bench.now)
    assert (view.step, view.choice, view.state) == (1, None, State.LOCKED)


def test_another_letter_of_the_pool_does_not_confirm(bench: Bench) -> None:
    for other in range(1, len(LETTER_POOL)):
        bench.tell("changed")
        bench.arm()
        bench.press("1")
        bench.arm()
        bench.press(LETTER_POOL[(LETTER_POOL.index(bench.letter) + other) % len(LETTER_POOL)])
        assert (bench.evidence, bench.guard.view(bench.now).step) == ([], 1)


def test_the_letter_typed_before_it_could_be_read_goes_back(bench: Bench) -> None:
    bench.arm()
    bench.press("1")
    bench.key(bench.letter)
    assert bench.guard.view(bench.now).step == 1


def test_the_letter_too_early_after_it_could_be_read_only_waits(bench: Bench) -> None:
    bench.arm()
    bench.press("1")
    bench.shown()
    bench.settle(0.1)
    bench.press(bench.letter)
    assert (bench.evidence, bench.guard.view(bench.now).step) == ([], 2)
    bench.settle(0.3)
    bench.press(bench.letter)
    assert len(bench.evidence) == 1


def test_thirty_seconds_without_a_confirmation_go_back(bench: Bench) -> None:
    bench.arm()
    bench.press("1")
    bench.arm()
    bench.settle(28.9)
    assert bench.guard.view(bench.now).step == 2
    bench.settle(1.3)
    view = bench.guard.view(bench.now)
    assert (view.step, view.state) == (1, State.LOCKED)
    assert "30 s" in view.message


def test_a_screen_that_stood_still_must_be_seen_again(bench: Bench) -> None:
    bench.arm()
    bench.wait(2.1)
    bench.tick()
    assert bench.state == "LOCKED"


def test_denying_takes_one_armed_key(bench: Bench) -> None:
    bench.press("3")
    assert bench.evidence == []
    bench.arm()
    bench.press("3")
    assert bench.evidence[0].record.way is Way.ONE_KEY


def test_inspect_is_its_digit_alone_and_decides_nothing(bench: Bench) -> None:
    bench.shown()
    assert bench.key("4") is True
    assert [inspect.choice.digit for inspect in bench.inspected] == ["4"]
    assert (bench.evidence, bench.guard.state) == ([], State.QUIET)


@pytest.mark.rule("G4")
def test_a_card_that_does_not_fit_never_arms_and_says_why(bench: Bench) -> None:
    bench.obstacle("enlarge to 80x24")
    bench.shown()
    bench.settle(3.0)
    bench.tell("focus")
    bench.press("3")
    view = bench.guard.view(bench.now)
    assert (view.state, view.message) == (State.LOCKED, "enlarge to 80x24")
    bench.obstacle(None)
    bench.arm()
    bench.press("3")
    assert len(bench.evidence) == 1


@pytest.mark.rule("G4")
def test_a_card_of_which_a_part_is_missing_says_which(bench: Bench) -> None:
    bench.guard.partly_written("the last line")
    assert "the last line" in bench.guard.view(bench.now).message
    first = "not all of the card was on the screen yet: "
    for place, said in (
        (-1, "scroll up"),
        (1, "scroll down"),
        (None, 'scroll to the end: "the last line"'),
        (0, 'this line is missing: "the last line"'),
    ):
        bench.guard.partly_written("the last line", place)
        assert bench.guard.view(bench.now).message == first + said
    assert bench.state == "LOCKED"


@pytest.mark.rule("G4")
def test_drawing_other_content_starts_over(bench: Bench) -> None:
    bench.arm()
    bench.press("1")
    bench.arm()
    letter = bench.letter
    bench.open(OpenCard("other", "text", CARD.choices))
    bench.press(letter)
    assert (bench.evidence, bench.guard.view(bench.now).step) == ([], 1)


@pytest.mark.rule("G8")
def test_a_closed_card_takes_no_key(bench: Bench) -> None:
    bench.arm()
    bench.key("3")
    bench.guard.close()
    bench.settle(1.0)
    assert bench.key("3") is False
    assert (bench.evidence, bench.guard.state, bench.guard.marker) == ([], State.CLOSED, "")


def test_the_letter_is_drawn_anew_and_can_be_any_of_the_pool() -> None:
    letters = set()
    for seed in range(200):
        bench = Bench(seed)
        bench.arm()
        bench.press("1")
        letters.add(bench.letter)
    assert letters == set(LETTER_POOL)
    assert not letters & set("ynojkgGtsq123456789")


def test_the_view_tells_what_to_paint(bench: Bench) -> None:
    view = bench.guard.view(bench.now)
    assert (view.state.value, view.prompt, view.fraction) == ("LOCKED", "locked: 1 2 3 4 do nothing yet", 0.0)
    bench.shown()
    assert bench.guard.view(bench.now).prompt == "press one of 1 2 3 4"
    bench.settle(0.4)
    assert bench.guard.view(bench.now).fraction == 0.5
    bench.settle(0.5)
    assert (bench.guard.view(bench.now).state.value, bench.guard.view(bench.now).fraction) == ("ARMED", 1.0)
    bench.press("1")
    view = bench.guard.view(bench.now)
    assert view.choice == CARD.choices[0]
    assert view.prompt == f"press {view.letter} to confirm 1 extend 15 min / 4 checks"


@pytest.mark.parametrize("choices", [(), (Choice("1", "a"),) * 2, (Choice("0", "a"),), (Choice("y", "a"),)])
def test_a_card_with_unusable_choices_is_refused(choices: tuple[Choice, ...]) -> None:
    with pytest.raises(ValueError, match="choice"):
        OpenCard("card", "text", choices)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("inf"), float("nan")])
def test_times_that_switch_the_guard_off_are_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match=r"GuardTimes\.quiet"):
        GuardTimes(quiet=seconds)


def test_the_default_times_are_the_measured_ones() -> None:
    assert Guard(chance=lambda n: 0).times == GuardTimes(0.75, 0.15, 0.3, 2.0, 2.0, 30.0, 2.0)


@pytest.mark.rule("G4")
def test_the_digest_of_the_text_tells_lines_apart() -> None:
    assert text_digest(["a", "b"]) != text_digest(["a b"])
    assert text_digest(["\ud800"]) == text_digest(["?"])
