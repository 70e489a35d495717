"""Where the two steps of one decision stand: what was chosen, which letter confirms, the keys that counted.

One job: keep these together, so that going back a step forgets all of them. Part of the pure machine in `guard`: no
clock, no terminal; whether a key counts is not decided here.
"""

from __future__ import annotations

import msgspec

from pollconsole.guard_facts import Choice, EvidenceRecord, OpenCard, StepRecord


class Held(msgspec.Struct, frozen=True):
    """A key that is held back until it is known to stand alone."""

    key: str
    choice: Choice
    record: StepRecord
    at: float


def step_record(key: str, *, fence: float | None, quiet: float, armed: float, pressed: float) -> StepRecord:
    """What is stored of one accepted key; times in seconds, *armed* and *pressed* since the card was opened."""
    return StepRecord(
        key=key,
        fence_ms=None if fence is None else _ms(fence),
        quiet_ms=_ms(quiet),
        armed_ms=_ms(armed),
        pressed_ms=_ms(pressed),
    )


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


class Steps:
    """Step 1 picks a choice; step 2, where there is one, confirms it with a letter."""

    number: int
    choice: Choice | None
    letter: str | None
    _records: tuple[StepRecord, ...]

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Step 1, nothing chosen."""
        self.number, self.choice, self.letter, self._records = 1, None, None, ()

    def confirm(self, held: Held, letter: str) -> None:
        """Step 2: *held* chose, *letter* confirms."""
        self.number, self.choice, self.letter = 2, held.choice, letter
        self._records = (*self._records, held.record)

    def record(self, held: Held, card: OpenCard, *, terminal: str, rejected: int) -> EvidenceRecord:
        """What is stored of the decision whose last key is *held*."""
        return EvidenceRecord(
            card_digest=card.card_digest,
            text_digest=card.text_digest,
            choice=held.choice.digit,
            label=held.choice.label,
            way=held.choice.way,
            steps=(*self._records, held.record),
            rejected_keys=rejected,
            terminal=terminal,
        )
