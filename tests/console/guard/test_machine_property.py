"""No sequence of events reaches an Evidence unless two isolated, genuine keys followed what the screen showed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.console.guard.bench import Bench

from pollconsole.guard_facts import LETTER_POOL, State

GAPS = (0.0, 0.01, 0.05, 0.14, 0.16, 0.31, 0.5, 0.76, 1.0, 2.05, 4.1, 31.0)
NAMES = ("1", "2", "3", "4", "5", "y", "enter", "space", "escape", "alt+1", "left_shift", "?", "?", "*", "*")
DISTURBANCES = ("paste", "mouse", "focus", "stray", "changed", "resumed")
CELLS = ((5, 7), (6, 8))

keys = st.tuples(st.just("key"), st.sampled_from(NAMES), st.booleans(), st.booleans(), st.sampled_from((0.0, 0.2, 1.0)))
commands = st.one_of(
    *[st.tuples(st.just("go"))] * 12,
    st.tuples(st.just("wait"), st.sampled_from(GAPS)),
    st.tuples(st.just("settle"), st.sampled_from(GAPS)),
    st.tuples(st.just("tick"), st.booleans()),
    st.tuples(st.just("paint"), st.sampled_from(("now", "old"))),
    st.tuples(st.just("ask"), st.sampled_from(CELLS)),
    st.tuples(st.just("answer"), st.sampled_from(CELLS)),
    st.tuples(st.just("shown")),
    st.tuples(st.just("ready")),
    st.tuples(st.just("finger"), st.sampled_from(("1", "2", "3", "*", "?"))),
    keys,
    st.tuples(st.just("tell"), st.sampled_from(DISTURBANCES)),
    st.tuples(st.just("obstacle"), st.sampled_from((None, "enlarge to 80x24"))),
    st.tuples(st.just("open")),
)


def obey(bench: Bench, command: tuple[object, ...], old_marker: str) -> None:
    """Do one command; the bench judges whatever comes of it."""
    match command:
        case ("go",):
            go_on(bench)
        case ("wait", float(seconds)):
            bench.wait(seconds)
        case ("settle", float(seconds)):
            bench.settle(seconds)
        case ("tick", bool(idle)):
            bench.tick(idle)
        case ("paint", which):
            bench.paint(old_marker if which == "old" else None)
        case ("ask", (int(row), int(column))):
            bench.ask(row, column)
        case ("answer", (int(row), int(column))):
            bench.answer(row, column)
        case ("shown",):
            bench.shown()
        case ("ready",):
            bench.shown()
            bench.settle(0.9)
        case ("finger", str(name)):
            bench.press(real_name(bench, name))
        case ("key", str(name), bool(genuine), bool(isolated), float(ago)):
            bench.key(real_name(bench, name), genuine=genuine, isolated=isolated, ago=ago)
        case ("tell", str(kind)):
            bench.tell(kind)
        case ("obstacle", why):
            assert why is None or isinstance(why, str)
            bench.obstacle(why)
        case ("open",):
            bench.open()
        case _:
            raise AssertionError(command)


def go_on(bench: Bench) -> None:
    """What an operator who decides would do next."""
    if bench.guard.state is State.DECIDED:
        bench.open()
    elif bench.guard.state is State.LOCKED:
        bench.shown()
        bench.settle(0.9)
    else:
        bench.press(bench.guard.view(bench.now).letter or bench.random.choice("123"))


def real_name(bench: Bench, name: str) -> str:
    """``*`` is the letter that the card shows, ``?`` a guess at one."""
    if name == "?":
        return bench.random.choice(LETTER_POOL)
    if name != "*":
        return name
    return bench.guard.view(bench.now).letter or bench.random.choice(LETTER_POOL)


@pytest.mark.rule("G3")
@given(seed=st.integers(0, 2**16), script=st.lists(commands, min_size=20, max_size=80))
def test_no_sequence_of_events_is_an_approval_without_two_lone_genuine_keys(
    seed: int, script: list[tuple[object, ...]]
) -> None:
    bench = Bench(seed)
    old_marker = bench.guard.marker
    for command in script:
        obey(bench, command, old_marker)
    assert len(bench.evidence) <= bench.opened, "one card was decided twice"


def long_run(events: int, seed: int) -> Bench:
    """Mostly sensible, often disturbed: enough approvals that the judge has work, and every way to get one wrongly."""
    bench = Bench(seed)
    chance = bench.random
    old_marker = bench.guard.marker

    def likely() -> bool:
        return chance.random() < 0.8

    done = 0
    while done < events:
        if chance.random() < 0.02:
            old_marker = bench.guard.marker
        command: tuple[object, ...] = ("go",)
        if chance.random() < 0.45:
            command = chance.choice(
                (
                    ("wait", chance.choice(GAPS)),
                    ("settle", chance.choice(GAPS[:8])),
                    ("tick", chance.random() < 0.8),
                    ("paint", chance.choice(("now", "old"))),
                    ("ask", chance.choice(CELLS)),
                    ("answer", chance.choice(CELLS)),
                    ("key", chance.choice(NAMES), likely(), likely(), chance.choice((0.0, 0.2))),
                    ("key", chance.choice(NAMES), True, True, 0.0),
                    ("finger", chance.choice("123?")),
                    ("tell", chance.choice(DISTURBANCES)),
                    ("obstacle", chance.choice((None, None, "enlarge to 80x24"))),
                )
            )
        before = len(bench.log)
        obey(bench, command, old_marker)
        done += max(1, len(bench.log) - before)
    return bench


@pytest.mark.rule("G3")
def test_twenty_thousand_random_events_hold_no_wrong_approval() -> None:
    bench = long_run(20_000, seed=20260302)
    ways = {evidence.record.way for evidence in bench.evidence}
    assert len(bench.evidence) > 20, "the run must approve now and then, or it proves nothing"
    assert len(ways) == 2


@pytest.mark.slow
@pytest.mark.rule("G3")
def test_a_million_random_events_hold_no_wrong_approval() -> None:
    bench = long_run(1_000_000, seed=7)
    assert len(bench.evidence) > 1000
