"""What a screen gives to the guard, and what it paints of it.

One job: the card as its author describes it, and the guard's three lines as plain text. Knows no app, driver or widget.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from pollconsole.guard_facts import NAVIGATION, Choice, GuardView
from pollconsole.words import counted

BAR_CELLS: Final = 20


class GuardedCard(msgspec.Struct, frozen=True):
    """A card as the guard sees it.

    ``card_digest`` names the object that a decision executes. ``lines``: all text of the card that matters, as drawn;
    its digest is stored with the decision. ``confirm_lines``: by digit, what step 2 shows besides. ``place``: where
    one of ``lines`` is (white space runs one space): negative above the visible part, positive below it, 0 neither.

    Raises:
        ValueError: ``lines`` is empty.
    """

    card_digest: str
    lines: tuple[str, ...]
    choices: tuple[Choice, ...]
    confirm_lines: Mapping[str, tuple[str, ...]] = {}
    navigation: frozenset[str] = NAVIGATION
    place: Callable[[str], int] | None = None

    def __post_init__(self) -> None:
        if not any(line.strip() for line in self.lines):
            raise ValueError("a guarded card names the lines that must be on the screen; it has none")


def guard_lines(view: GuardView) -> tuple[str, str, str]:
    """The three lines that a card must paint of its guard: state, bar and marker; prompt; message."""
    filled = round(view.fraction * BAR_CELLS)
    bar = "#" * filled + "-" * (BAR_CELLS - filled)
    rejected = f" ({counted(view.rejected_keys, 'key')} ignored)" if view.rejected_keys else ""
    return f"{view.state.value:<8} [{bar}] {view.marker}", view.prompt, view.message + rejected
