"""The words of a group's card, laid out: one cause, its choices with their ranges, then everything else.

Job: pure: the core's group card -> lines with roles; an outcome -> lines. Must not know: widgets, keys, the core's
rules. Nothing of the card is left out: what does not fit is scrolled to.

Source: spec E3, E4, E10, G4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

from pollconsole.approve import AnyOutcome
from pollconsole.draw import Line, text
from pollconsole.screens.card_lines import further_lines, is_cost, named_lines, priced_lines
from pollcore.facts import ChoiceKind, Instant

LABEL: Final = 18
LAST_BEFORE_CHOICES: Final = "Ending soonest:"
MAX_CONFIRM: Final = 12
"""Logical lines between the two keys; costs and warnings always stand there."""


class GroupOption(Protocol):
    """One choice of the group, harmless."""

    @property
    def key(self) -> str: ...
    @property
    def kind(self) -> ChoiceKind: ...
    @property
    def label(self) -> str: ...
    @property
    def count(self) -> int: ...
    @property
    def decides(self) -> bool: ...
    @property
    def grants(self) -> bool: ...
    @property
    def details(self) -> tuple[str, ...]: ...
    @property
    def unavailable(self) -> str | None: ...


class Listed(Protocol):
    """One operation of the frozen list."""

    @property
    def operation_id(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def escalation_id(self) -> str: ...
    @property
    def ends_at(self) -> Instant: ...
    @property
    def reason(self) -> str: ...
    @property
    def state(self) -> str | None: ...
    @property
    def differs(self) -> str: ...


class Drawable(Protocol):
    """The core's group card, as far as it is drawn."""

    @property
    def title(self) -> str: ...
    @property
    def lines(self) -> Sequence[Any]: ...
    @property
    def choices(self) -> Sequence[GroupOption]: ...
    @property
    def count(self) -> int: ...
    @property
    def members(self) -> Sequence[Listed]: ...
    @property
    def drawn_at(self) -> Instant: ...


def body_lines(card: Drawable, left_out: Sequence[tuple[str, str]], width: int) -> list[Line]:
    """All of the card: title, what happened to how many, choices with ranges, further lines."""
    at = next((n for n, each in enumerate(card.lines, 1) if each.label == LAST_BEFORE_CHOICES), len(card.lines))
    lines: list[Line] = [(text(card.title, "title"), (f": {card.count:,} operations, one cause", "title"))]
    for each in card.lines[:at]:
        lines += named_lines(f"{each.label:<{LABEL}} ", each.text, width)
    lines.append((("Choices for all of them at once:", "muted"),))
    for option in card.choices:
        lines += choice_lines(option, card.count, width)
    lines.append(())
    lines += further_lines([(each.label, each.text) for each in card.lines[at:]], width)
    for operation_id, why in left_out:
        lines.append((("Not in the list: ", "attention"), text(f"{operation_id}: {why}", "text")))
    return lines


def choice_lines(option: GroupOption, all_of: int, width: int) -> list[Line]:
    """`1  extend 15 min / 4 checks  2,990 of 3,000` and under it what it costs and leads to, as ranges."""
    key, role = ("key", "title") if option.unavailable is None else ("faint", "faint")
    count = f"all {all_of:,}" if option.count == all_of else f"{option.count:,} of {all_of:,}"
    count = "the list" if not option.decides else count
    head: Line = ((f" {option.key}  ", key), text(option.label, role), ("  ", "text"), (count, "attention"))
    return priced_lines(head, option.details, width)


def _costs(option: GroupOption) -> list[str]:
    return [each for each in option.details if is_cost(each)]


def confirm_lines(option: GroupOption, all_of: int) -> list[Line]:
    """What exactly is about to be done, to how many, between the two keys."""
    what = "This gives new authority to" if option.grants else "This is about to be done to"
    about = f"{what} {option.count:,} of {all_of:,} operations: "
    lines: list[Line] = [((about, "attention"), text(option.label, "title"))]
    costs = _costs(option)
    if costs:
        lines.append((("  ", "text"), text(" · ".join(costs), "text")))
    rest = [each for each in option.details if each not in costs]
    rest.sort(key=lambda each: not each.startswith(("warning:", "for ")))
    for each in rest[:MAX_CONFIRM]:
        lines.append((("  ", "text"), text(each, "attention" if each.startswith("warning:") else "text")))
    if len(rest) > MAX_CONFIRM:
        lines.append((("  the card above says the rest", "muted"),))
    return lines


def outcome_words(outcome: AnyOutcome) -> str:
    """`extend 15 min / 4 checks: done for 2,988, refused for 2, 10 were not offered it`."""
    said = [f"done for {len(outcome.done):,}"]
    if outcome.refused:
        said.append(f"refused for {len(outcome.refused):,}")
    if outcome.untouched:
        said.append(f"{len(outcome.untouched):,} were not offered it and stay asked")
    return f"{outcome.label}: {', '.join(said)}"


def outcome_lines(outcome: AnyOutcome) -> list[Line]:
    """What one answer did: the figures, then every operation that was refused with its reason, then the others."""
    refused = len(outcome.refused)
    lines: list[Line] = [
        ((outcome.label, "title"),),
        ((f"{'done':<21}", "muted"), (f"{len(outcome.done):,} operations", "good")),
        ((f"{'refused':<21}", "muted"), (f"{refused:,} operations", "attention" if refused else "text")),
        ((f"{'not offered':<21}", "muted"), (f"{len(outcome.untouched):,} operations", "text")),
        (),
    ]
    if refused:
        lines.append((("Refused: nothing was done to these, what still waits is in the queue", "attention"),))
        lines += [(text(f"{name:<20} ", "text"), text(why, "attention")) for name, why in outcome.refused]
        lines.append(())
    if outcome.untouched:
        lines.append((("Not offered this choice: they stay asked", "muted"),))
        lines += [(text(name, "text"),) for name in outcome.untouched]
        lines.append(())
    lines.append((("Done:", "muted"),))
    lines += [(text(name, "text"),) for name in outcome.done]
    return lines
