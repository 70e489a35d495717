"""What the guard says on a card.

One job: the words for its states and locks, in one place. Knows no time and no event.
"""

from __future__ import annotations

from typing import Final

from pollconsole.guard_facts import Choice, OpenCard, State

PAINTING: Final = "painting the card"
REPAINTING: Final = "painting the confirmation"
WAITING: Final = "waiting for the terminal"
SLOW: Final = "the terminal is slow to answer"
GAVE_UP: Final = "the terminal stopped answering: leave the card and open it again"
STOPPED: Final = "the program was stopped; read the card again"
STOOD_STILL: Final = "the screen stood still; read the card again"
PASTED: Final = "something was pasted"
REFOCUSED: Final = "the window changed focus"
WRONG_LETTER: Final = "not the shown letter; choose again"
LEFT_STEP_TWO: Final = "choose again"

_BY_STATE: Final = {
    State.CLOSED: "",
    State.QUIET: "hands off the keyboard",
    State.ARMED: "ready for one key",
    State.PENDING: "hold still",
    State.DECIDED: "decided",
}


def not_confirmed(seconds: float) -> str:
    return f"no confirmation within {seconds:g} s; choose again"


def partly_shown(missing: str, place: int | None) -> str:
    """*place* of the line *missing*: negative is above the visible part, positive below it; None: unknown."""
    if place:
        return f"not all of the card was on the screen yet: scroll {'up' if place < 0 else 'down'}"
    way = "scroll to the end" if place is None else "this line is missing"
    return f'not all of the card was on the screen yet: {way}: "{missing}"'


def message(state: State, reason: str) -> str:
    """The line below the bar: what to do, or why the card is locked."""
    return _BY_STATE.get(state, reason)


def prompt(card: OpenCard | None, step: int, choice: Choice | None, letter: str | None, *, locked: bool) -> str:
    """The line that names the keys. A locked card asks for none; the letter stands there from the first painting on,
    since the second step waits until it was on the screen."""
    if card is None:
        return ""
    if step == 2 and choice is not None:
        return f"press {letter} to confirm {choice.digit} {choice.label}"
    digits = " ".join(choice.digit for choice in card.choices)
    return f"locked: {digits} do nothing yet" if locked else f"press one of {digits}"
