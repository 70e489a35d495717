"""A bench for the guard's machine: an injected clock, a log of what it was told, and a judge that knows only the log.

The judge does not ask the machine why it approved. It looks for the two keys in the log and checks everything that the
rule demands of them, so that a machine that is wrong cannot agree with itself.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from pollconsole.guard import Guard
from pollconsole.guard_facts import BARE_MODIFIERS, Choice, Evidence, GuardTimes, Inspect, OpenCard, State, Way

TIMES = GuardTimes()
CARD = OpenCard(
    card_digest="card",
    text_digest="text",
    choices=(
        Choice("1", "extend 15 min / 4 checks"),
        Choice("2", "close"),
        Choice("3", "deny", Way.ONE_KEY),
        Choice("4", "inspect", Way.INSPECT),
    ),
)
LOCKS = frozenset({"opened", "changed", "paste", "focus", "resumed", "obstacle"})
INPUTS = frozenset({"key", "paste", "focus", "mouse", "stray"})
HAIR = 1e-9


@dataclass(frozen=True)
class Entry:
    kind: str
    at: float
    data: dict[str, Any]


class Bench:
    """Drives one machine; time only moves by `wait`. Every outcome is judged when it appears."""

    def __init__(self, seed: int = 0, times: GuardTimes = TIMES) -> None:
        self.now = 100.0
        self.times = times
        self.random = random.Random(seed)
        self.guard = Guard(chance=self.random.randrange, times=times)
        self.log: list[Entry] = []
        self.evidence: list[Evidence] = []
        self.inspected: list[Inspect] = []
        self.obstacle_now: str | None = None
        self.opened = 0
        self.open()

    # -- events ----------------------------------------------------------------------------------------------------

    def open(self, card: OpenCard = CARD) -> None:
        self.log.clear()
        self.opened += 1
        self.obstacle_now = None
        self._told("opened")
        self.guard.card_opened(card, self.now, terminal="bench")

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def tick(self, idle: bool = True) -> None:
        self._told("tick", idle=idle)
        self.guard.tick(self.now, idle=idle)
        self._judge()

    def paint(self, marker: str | None = None) -> None:
        painted = self.guard.marker if marker is None else marker
        self._told("painted", marker=painted, good=self.obstacle_now is None)
        self.guard.marker_written(painted, self.now)

    def ask(self, row: int = 5, column: int = 7) -> None:
        self._told("asked", cell=(row, column))
        self.guard.fence_sent(row, column, self.now)

    def answer(self, row: int = 5, column: int = 7) -> None:
        self._told("answered", cell=(row, column))
        self.guard.fence_reply(row, column, self.now)

    def key(self, name: str, *, genuine: bool = True, isolated: bool = True, ago: float = 0.0) -> bool:
        view = self.guard.view(self.now)
        data = {"letter": view.letter, "step": view.step, "marker": view.marker}
        self._told("key", ago, name=name, genuine=genuine, isolated=isolated, **data)
        used = self.guard.key(name, self.now - ago, genuine=genuine, isolated=isolated)
        self._judge()
        return used

    def tell(self, kind: str) -> None:
        """One of paste, mouse, focus, stray, changed, resumed."""
        self._told(kind)
        if kind == "changed":
            self.guard.changed("changed", self.now)
        else:
            getattr(self.guard, kind)(self.now)

    def obstacle(self, why: str | None) -> None:
        if why != self.obstacle_now:
            self.obstacle_now = why
            self._told("obstacle")
        self.guard.obstacle(why, self.now)

    # -- longer strokes --------------------------------------------------------------------------------------------

    def settle(self, seconds: float, step: float = 0.05) -> None:
        """Let time pass with the ticks that a screen makes."""
        end = self.now + seconds
        while self.now < end - HAIR:
            self.wait(min(step, end - self.now))
            self.tick()

    def shown(self, round_trip: float = 0.01) -> None:
        """The frame goes out and the terminal answers."""
        self.paint()
        self.ask()
        self.wait(round_trip)
        self.answer()

    def arm(self) -> None:
        self.shown()
        self.settle(1.0)
        assert self.guard.state is State.ARMED

    def press(self, name: str) -> None:
        self.key(name)
        self.settle(0.25)

    @property
    def state(self) -> str:
        return self.guard.state.value

    @property
    def letter(self) -> str:
        letter = self.guard.view(self.now).letter
        assert letter is not None
        return letter

    # -- the judge -------------------------------------------------------------------------------------------------

    def _told(self, kind: str, ago: float = 0.0, **data: Any) -> None:
        self.log.append(Entry(kind, self.now - ago, data))

    def _judge(self) -> None:
        outcome = self.guard.take_outcome()
        if isinstance(outcome, Inspect):
            self.inspected.append(outcome)
        elif outcome is not None:
            self.evidence.append(outcome)
            check(outcome, self.log, self.times)


def check(evidence: Evidence, log: list[Entry], times: GuardTimes) -> None:
    """Fail unless *log* holds, for every step, a key that was pressed on what the screen showed, and alone."""
    record = evidence.record
    if record.way is Way.TWO_STEP:
        assert len(record.steps) == 2
        letter_at = _accepted(log, len(log) - 1, 2, times)
        letter = log[letter_at]
        assert letter.data["name"] == letter.data["letter"] == record.steps[1].key
        painted = _painted(log, letter_at)
        digit_at = _accepted(log, painted, 1, times)
        assert log[digit_at].data["marker"] != letter.data["marker"], "the letter's card was not painted anew"
    else:
        assert record.way is Way.ONE_KEY
        assert len(record.steps) == 1
        digit_at = _accepted(log, len(log) - 1, 1, times)
    assert log[digit_at].data["name"] == record.choice == record.steps[0].key


def _accepted(log: list[Entry], end: int, step: int, times: GuardTimes) -> int:
    """The place of the last key before *end*; it must fulfil the whole rule."""
    place = next(i for i in range(end - 1, -1, -1) if _is_key(log[i]))
    key = log[place]
    assert key.data["genuine"], "a key that did not come from the keyboard"
    assert key.data["isolated"], "a key that came with others"
    assert key.data["step"] == step
    after = log[place + 1 : end + 1]
    proof = next(
        i for i, e in enumerate(after) if e.kind == "tick" and e.data["idle"] and e.at >= key.at + times.alone - HAIR
    )
    assert not [e for e in after[:proof] if e.kind in INPUTS | LOCKS and not _is_modifier(e)], "the key was not alone"
    locked = max(i for i in range(place) if log[i].kind in LOCKS)
    painted = _painted(log, place)
    assert painted > locked, "locked after the frame"
    asked: dict[tuple[int, int], float] = {}
    answers = []
    for entry in log[painted:place]:
        if entry.kind == "asked":
            asked[entry.data["cell"]] = entry.at
        elif entry.kind == "answered" and entry.data["cell"] in asked:
            answers.append(entry)
    assert asked, "the terminal was never asked after the frame"
    quiet = (times.quiet if step == 1 else times.quiet_again) if answers else times.quiet_unanswered
    fenced = answers[0].at if answers else min(asked.values()) + times.fence
    assert key.at - fenced >= quiet - HAIR, "pressed too early after the fence"
    inputs = [e.at for e in log[:place] if e.kind in INPUTS and not _is_modifier(e)]
    assert not inputs or key.at - max(inputs) >= quiet - HAIR, "pressed into other input"
    return place


def _painted(log: list[Entry], key_at: int) -> int:
    """The first frame that showed what the card said when the key at *key_at* was pressed."""
    marker = log[key_at].data["marker"]
    wanted = (i for i in range(key_at) if log[i].kind == "painted" and log[i].data["good"])
    return next(i for i in wanted if log[i].data["marker"] == marker)


def _is_key(entry: Entry) -> bool:
    return entry.kind == "key" and not _is_modifier(entry)


def _is_modifier(entry: Entry) -> bool:
    return entry.kind == "key" and entry.data["name"] in BARE_MODIFIERS
