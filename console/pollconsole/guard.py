"""The guard of the approval key: a pure machine that decides whether a key press was meant for the card on the screen.

One job: from events with times (seconds of the input thread's monotonic clock) to an `Evidence`, or not. It knows no
Textual, does no I/O, reads no clock; chance is injected. Whatever it is unsure of is not approved.

LOCKED -> (the card's marker was written to the terminal) -> FENCING -> (the terminal answered a question that was
asked after that frame, so every later key was sent after the terminal had the frame) -> QUIET -> (no input) -> ARMED
-> (an allowed key) -> PENDING -> (nothing followed it) -> step done. Step 1 picks a choice; step 2 runs the same way
with a random letter that only the repainted card tells. Times: `GuardTimes`. Source: spec G3, G4.

What it cannot tell: a hand from something that reads this screen and writes to this keyboard.
"""

from __future__ import annotations

from collections.abc import Callable

from pollconsole import guard_words as words
from pollconsole.guard_facts import (
    BARE_MODIFIERS,
    LETTER_POOL,
    Choice,
    Evidence,
    GuardTimes,
    GuardView,
    Inspect,
    OpenCard,
    State,
    Way,
    proven,
)
from pollconsole.guard_fence import Fence, Silence
from pollconsole.guard_steps import Held, Steps, step_record

BAR_STEPS = 20
"""The bar moves in so many steps: a finer one would only repaint more often."""
_MARKER_NUMBERS = 9000


class Guard:
    """The machine. Every method takes ``at``, seconds of one monotonic clock.

    Args:
        chance: ``chance(n)`` returns an integer from 0 to n-1; letters and markers come from it.
        times: see `GuardTimes`.
    """

    def __init__(self, *, chance: Callable[[int], int], times: GuardTimes | None = None) -> None:
        self._chance = chance
        self.times = times or GuardTimes()
        self._state = State.CLOSED
        self._card: OpenCard | None = None
        self._terminal = ""
        self._fence = Fence()
        self._version = 0
        self._marker = ""
        self._reason = ""
        self._obstacle: str | None = None
        self._outcome: Evidence | Inspect | None = None
        self._rejected = 0
        self._steps = Steps()
        self._held: Held | None = None
        # Instants; `_quiet_since` is the later of the fence and the last input.
        self._opened_at = self._last_tick = self._last_active = self._quiet_since = 0.0
        self._quiet_needed = self.times.quiet
        self._armed_at = self._painted_at = float("inf")

    # -- what a card and its wiring read ---------------------------------------------------------------------------

    @property
    def state(self) -> State:
        return self._state

    @property
    def marker(self) -> str:
        """The text that the card must paint for this version; empty while no card is open."""
        return self._marker

    @property
    def fence_wanted(self) -> bool:
        """Whether the fence query should be written to the terminal now."""
        return self._state is State.FENCING and self._fence.wanted

    def take_outcome(self) -> Evidence | Inspect | None:
        """The outcome, once: an `Evidence`, an `Inspect`, or None."""
        outcome, self._outcome = self._outcome, None
        return outcome

    def view(self, at: float) -> GuardView:
        """What the card should paint at *at*."""
        fraction = 0.0
        if self._state is State.QUIET:
            passed = min(1.0, max(0.0, (at - self._quiet_since) / self._quiet_needed))
            fraction = int(passed * BAR_STEPS) / BAR_STEPS
        elif self._state in (State.ARMED, State.PENDING):
            fraction = 1.0
        step = self._steps
        return GuardView(
            state=self._state,
            step=step.number,
            fraction=fraction,
            marker=self._marker,
            prompt=words.prompt(self._card, step.number, step.choice, step.letter, locked=self._state is State.LOCKED),
            message=words.message(self._state, self._reason),
            choice=step.choice,
            letter=step.letter,
            rejected_keys=self._rejected,
        )

    # -- the card and its surroundings -----------------------------------------------------------------------------

    def card_opened(self, card: OpenCard, at: float, *, terminal: str = "") -> None:
        """A card is drawn, or drawn anew with other content: everything starts over, locked."""
        self._card = card
        self._terminal = terminal
        self._opened_at = self._last_tick = self._last_active = at
        self._obstacle = None
        self._outcome = None
        self._rejected = 0
        self._lock(words.PAINTING, at)

    def close(self) -> None:
        """The card is gone. Nothing is decided."""
        self._card = None
        self._outcome = None
        self._held = None
        self._steps.begin()
        self._marker = ""
        self._state = State.CLOSED

    def changed(self, reason: str, at: float) -> None:
        """Content, size, focus or the top screen changed: locked, back to step 1. *reason* is shown."""
        if self._open():
            self._lock(reason, at)

    def obstacle(self, why: str | None, at: float) -> None:
        """While *why* is not None the card cannot be read whole or answered: it stays locked and says why."""
        if self._open() and why != self._obstacle:
            self._obstacle = why
            self._lock(why or words.PAINTING, at)

    def resumed(self, at: float) -> None:
        """The program was stopped and goes on, perhaps on another terminal."""
        self._fence.new_terminal()
        self.changed(words.STOPPED, at)

    def partly_written(self, missing: str, place: int | None = None) -> None:
        """The marker was written, but a part of the card's text was not: locked until it was on the screen, too.

        *place*: where the line *missing* is, negative above the visible part, positive below it; None: unknown.
        """
        if self._state is State.LOCKED and self._obstacle is None:
            self._reason = words.partly_shown(missing, place)

    def marker_written(self, marker: str, at: float) -> None:
        """A frame with *marker* went to the terminal, and all of the card's text with it or before."""
        if self._state is State.LOCKED and self._obstacle is None and marker == self._marker:
            self._state = State.FENCING
            self._painted_at = at
            self._fence.wanted = True
            self._reason = words.WAITING

    def fence_sent(self, row: int, column: int, at: float) -> None:
        """The query was written after that frame; only a report of the cell (*row*, *column*) answers it."""
        if self._state is State.FENCING and at >= self._painted_at:
            self._fence.sent(row, column, at)

    def fence_reply(self, row: int, column: int, at: float) -> None:
        """A cursor report arrived. One that answers no question of this version is only stray input."""
        if not self._open():
            return
        if self._fence.reply(row, column, at):
            # Also when the wait was given up: keys before this answer were sent before the card was on the screen.
            self._be_quiet(at, self.times.quiet if self._steps.number == 1 else self.times.quiet_again)
        else:
            self._input(at)

    # -- time ------------------------------------------------------------------------------------------------------

    def tick(self, at: float, *, idle: bool = True) -> None:
        """Time passes. *idle* is False while input is on its way that this machine was not told of yet."""
        if not self._open():
            return
        stalled = at - self._last_tick > self.times.stall
        self._last_tick = max(self._last_tick, at)
        if stalled and self._state is not State.LOCKED:
            self._lock(words.STOOD_STILL, at)
        elif self._steps.number == 2 and at - self._last_active > self.times.confirm:
            self._lock(words.not_confirmed(self.times.confirm), at)
        elif self._state is State.FENCING:
            self._wait_for_fence(at)
        elif self._state is State.QUIET and idle and at - self._quiet_since >= self._quiet_needed:
            self._state = State.ARMED
            self._armed_at = at
        elif self._state is State.PENDING and idle:
            held = self._held
            if held is not None and at - held.at >= self.times.alone:
                self._step_done(held, at)

    def _wait_for_fence(self, at: float) -> None:
        silence = self._fence.silence(at, self.times.fence)
        if silence is Silence.UNANSWERED:
            self._be_quiet(at, self.times.quiet_unanswered)
        elif silence is Silence.ASK_AGAIN:
            self._reason = words.SLOW
        elif silence is Silence.GAVE_UP:
            self._reason = words.GAVE_UP

    # -- input -----------------------------------------------------------------------------------------------------

    def key(self, name: str, at: float, *, genuine: bool, isolated: bool = True) -> bool:
        """A key event. Returns whether the guard used it up, so that nothing else may see it.

        Args:
            name: Textual's exact name (``y``; never the character, which alt+y has, too).
            genuine: read and stamped by our driver's input thread.
            isolated: it was all that one read from the terminal held, and no modifier but shift was down.
        """
        card = self._card
        if card is None or not self._open():
            return False
        if name in BARE_MODIFIERS:
            return self._steps.number == 2
        self._last_active = max(self._last_active, at)
        if self._steps.number == 2:
            self._confirming_key(name, at, genuine, isolated)
            return True
        choice = next((choice for choice in card.choices if choice.digit == name), None)
        if choice is None:
            self._rejected += name not in card.navigation
            self._input(at)
            return False
        if choice.way is Way.INSPECT and genuine and isolated and self._state in (State.QUIET, State.ARMED):
            self._outcome = Inspect(choice)
            self._input(at)
        elif self._acceptable(at, genuine, isolated):
            self._hold(name, choice, at)
        else:
            self._rejected += 1
            self._input(at)
        return True

    def _confirming_key(self, name: str, at: float, genuine: bool, isolated: bool) -> None:
        readable = self._state in (State.QUIET, State.ARMED, State.PENDING)
        choice = self._steps.choice
        if name != self._steps.letter or not genuine or not readable or choice is None:
            self._rejected += name != "escape"
            self._lock(words.WRONG_LETTER if name != "escape" else words.LEFT_STEP_TWO, at)
        elif self._acceptable(at, genuine, isolated):
            self._hold(name, choice, at)
        else:
            self._rejected += 1
            self._input(at)

    def _acceptable(self, at: float, genuine: bool, isolated: bool) -> bool:
        # A key that was typed before the tick that armed is delivered after it when the loop was busy: `at` tells.
        return genuine and isolated and self._state is State.ARMED and at >= self._armed_at

    def paste(self, at: float) -> None:
        """Text was pasted."""
        self.changed(words.PASTED, at)

    def mouse(self, at: float) -> None:
        """A mouse button or wheel."""
        self.stray(at)

    def focus(self, at: float) -> None:
        """The terminal window got or lost the focus."""
        self.changed(words.REFOCUSED, at)

    def stray(self, at: float) -> None:
        """Bytes that are no key."""
        if self._open():
            self._last_active = max(self._last_active, at)
            self._input(at)

    def _input(self, at: float) -> None:
        self._quiet_since = max(self._quiet_since, at)
        if self._state in (State.ARMED, State.PENDING):
            self._state = State.QUIET
            self._held = None

    # -- steps -----------------------------------------------------------------------------------------------------

    def _hold(self, name: str, choice: Choice, at: float) -> None:
        record = step_record(
            name,
            fence=self._fence.answered_in,
            quiet=at - self._quiet_since,
            armed=self._armed_at - self._opened_at,
            pressed=at - self._opened_at,
        )
        self._held = Held(name, choice, record, at)
        self._state = State.PENDING

    def _step_done(self, held: Held, at: float) -> None:
        if self._steps.number == 1 and held.choice.way is Way.TWO_STEP:
            self._lock(words.REPAINTING, at, keep_step=True)
            self._steps.confirm(held, LETTER_POOL[self._chance(len(LETTER_POOL))])
            self._last_active = at
            return
        assert self._card is not None
        record = self._steps.record(held, self._card, terminal=self._terminal, rejected=self._rejected)
        self._outcome = proven(record)
        self._held = None
        self._state = State.DECIDED

    # -- inside ----------------------------------------------------------------------------------------------------

    def _open(self) -> bool:
        return self._state not in (State.CLOSED, State.DECIDED)

    def _lock(self, reason: str, at: float, *, keep_step: bool = False) -> None:
        if not keep_step:
            self._steps.begin()
        self._version += 1
        self._marker = f"card {1000 + self._chance(_MARKER_NUMBERS)}.{self._version}"
        self._reason = self._obstacle or reason
        self._fence.new_version()
        self._held = None
        self._armed_at = self._painted_at = float("inf")
        self._quiet_since = max(self._quiet_since, at)
        self._state = State.LOCKED

    def _be_quiet(self, at: float, needed: float) -> None:
        self._state = State.QUIET
        self._quiet_since = max(self._quiet_since, at)
        self._quiet_needed = needed
        self._held = None
