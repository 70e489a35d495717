"""The words of the guard: times, choices, what a card paints, what proves a decision.

One job: frozen facts that the machine (`guard`), the wiring (`guarded`) and the cards share. Knows no clock, no
terminal, no Textual and no meaning of a choice. An `Evidence` is made by the machine alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NoReturn

import msgspec

LETTER_POOL: Final = "abdefhmuvz"
"""Letters that confirm: none of them does anything elsewhere in the console (`w` writes a card's note)."""
MIN_COLUMNS: Final = 80
MIN_ROWS: Final = 24
NAVIGATION: Final = frozenset(
    {"escape", "up", "down", "pageup", "pagedown", "home", "end", "left_square_bracket", "right_square_bracket"}
    | {"ctrl+c", "ctrl+l"}
)
"""Keys that reach the card while it is open (in step 1), by Textual's names. They never choose and are not counted as
rejected; like every input they end the quiet."""

BARE_MODIFIERS: Final = frozenset(
    f"{side}_{name}" for side in ("left", "right") for name in ("shift", "control", "alt", "super", "hyper", "meta")
) | {"iso_level3_shift", "iso_level5_shift", "caps_lock", "num_lock", "scroll_lock"}
"""Some terminals report these on their own; they type nothing, and some keyboards need one for a digit."""


class GuardTimes(msgspec.Struct, frozen=True):
    """The times of the guard, in seconds of the monotonic clock. Source: the measured guard rule (spec G3).

    ``alone`` must stay under the shortest key-repeat delay (about 200 ms) and over the gap of a burst.
    """

    quiet: float = 0.750
    """No input for so long before a choice is taken (Q)."""
    alone: float = 0.150
    """No input for so long after a key before it counts (B)."""
    quiet_again: float = 0.300
    """Q of the second step (Q2)."""
    fence: float = 2.0
    """How long the terminal may take to answer the fence (F)."""
    quiet_unanswered: float = 2.0
    """Q, in both steps, where the terminal does not answer (QF)."""
    confirm: float = 30.0
    """Without input for so long, the second step goes back to the first."""
    stall: float = 2.0
    """A gap between two ticks beyond this means that the screen stood still: the card is locked again."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if not 0 < value < float("inf"):
                raise ValueError(f"GuardTimes.{name} must be a positive number of seconds, got {value!r}")


class Way(StrEnum):
    """How a choice is taken."""

    TWO_STEP = "two_step"
    """A digit chooses, the shown letter confirms: every choice that decides, but one."""
    ONE_KEY = "one_key"
    """One armed key decides. Only for what takes authority away: denying a per-call card."""
    INSPECT = "inspect"
    """The digit alone, and nothing is decided."""


class Choice(msgspec.Struct, frozen=True):
    """One listed choice: the digit that takes it, how, and the words that the confirmation repeats (made harmless)."""

    digit: str
    label: str
    way: Way = Way.TWO_STEP


class OpenCard(msgspec.Struct, frozen=True):
    """What the machine must know of a card.

    ``card_digest`` names the object that a decision will execute, ``text_digest`` the text that shows it.

    Raises:
        ValueError: no choice, a digit twice, or a digit that is not one of 1-9.
    """

    card_digest: str
    text_digest: str
    choices: tuple[Choice, ...]
    navigation: frozenset[str] = NAVIGATION

    def __post_init__(self) -> None:
        digits = [choice.digit for choice in self.choices]
        if not digits or len(set(digits)) != len(digits):
            raise ValueError(f"a guarded card needs choices with different digits, got {digits}")
        if wrong := [digit for digit in digits if len(digit) != 1 or digit not in "123456789"]:
            raise ValueError(f"a choice is taken by one digit of 1-9, got {wrong}")


class State(StrEnum):
    """Where the guard stands; the value is the word that the card shows."""

    CLOSED = "CLOSED"
    LOCKED = "LOCKED"
    FENCING = "FENCING"
    QUIET = "QUIET"
    ARMED = "ARMED"
    PENDING = "PENDING"
    DECIDED = "DECIDED"


class GuardView(msgspec.Struct, frozen=True):
    """All that a card paints of its guard.

    ``marker`` and the ``prompt`` that comes with it must be on the screen, each unbroken on one line, or the card never
    arms; in step 1 the prompt is another one once the card is not locked any more. ``fraction``
    runs from 0.0 to 1.0 while the keyboard is quiet. ``letter`` and ``choice`` are there in step 2 only.
    """

    state: State
    step: int
    fraction: float
    marker: str
    prompt: str
    message: str
    choice: Choice | None = None
    letter: str | None = None
    rejected_keys: int = 0


class StepRecord(msgspec.Struct, frozen=True):
    """One accepted key. Times in whole milliseconds; ``armed_ms`` and ``pressed_ms`` count from the card's opening.

    ``fence_ms`` is the terminal's round trip, null if it never answered; ``quiet_ms`` the silence before the key.
    """

    key: str
    fence_ms: int | None
    quiet_ms: int
    armed_ms: int
    pressed_ms: int


class EvidenceRecord(msgspec.Struct, frozen=True):
    """What is stored with a decision: what was shown, which keys were pressed, and how the guard had been passed."""

    card_digest: str
    text_digest: str
    choice: str
    label: str
    way: Way
    steps: tuple[StepRecord, ...]
    rejected_keys: int
    terminal: str


_SEAL: Final = object()


class Evidence:
    """Proof that a person chose on an armed card. Only the machine can make one; `decide` must demand one.

    Immutable; copying, pickling and constructing it by hand raise `TypeError`. ``record`` is what to store.
    """

    __slots__ = ("_record",)
    _record: EvidenceRecord

    def __init__(self, seal: object, record: EvidenceRecord) -> None:
        if seal is not _SEAL:
            raise TypeError("an Evidence comes from the guard's machine alone: open the card and press its keys")
        object.__setattr__(self, "_record", record)

    @property
    def record(self) -> EvidenceRecord:
        return self._record

    @property
    def choice(self) -> str:
        """The digit of the choice."""
        return self._record.choice

    @property
    def card_digest(self) -> str:
        return self._record.card_digest

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise TypeError("an Evidence does not change")

    def __delattr__(self, name: str) -> NoReturn:
        raise TypeError("an Evidence does not change")

    def __reduce__(self) -> NoReturn:
        raise TypeError("an Evidence cannot be copied or stored; store its record")

    def __init_subclass__(cls) -> NoReturn:
        raise TypeError("Evidence has no subclasses")

    def __repr__(self) -> str:
        return f"Evidence({self._record!r})"


def proven(record: EvidenceRecord) -> Evidence:
    """The Evidence of *record*. For the guard's machine (`guard.py`) alone; a test holds that nothing else calls it."""
    return Evidence(_SEAL, record)


class Inspect(msgspec.Struct, frozen=True):
    """The operator asked to look closer. Decides nothing."""

    choice: Choice


def text_digest(lines: Sequence[str]) -> str:
    """SHA-256, hexadecimal, over the shown lines joined by line feeds, UTF-8 (lone surrogates as U+FFFD)."""
    import hashlib  # not before a card is open

    return hashlib.sha256("\n".join(lines).encode("utf-8", "replace")).hexdigest()
