"""One line of a card.

Job: a label, and a text made harmless. Must not know: what is said, in which order.
Source: spec E3, G4.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from pollcore.story import Harmless


class CardLine(msgspec.Struct, frozen=True):
    """One line: `Status requests: 12 of 12` is label `Status requests:` and text `12 of 12`."""

    label: str
    text: str

    def __str__(self) -> str:
        return f"{self.label} {self.text}".rstrip()


def flat(text: str, harmless: Harmless) -> str:
    """Harmless and on one line: a provider's line break must not start a line of ours."""
    return " ".join(harmless(text).split())


def lines_of(rows: Iterable[tuple[str, str | None]], harmless: Harmless) -> list[CardLine]:
    """A line for each row (label, text) that has something to say."""
    return [CardLine(label, flat(text, harmless)) for label, text in rows if text]
