"""The words of a card, laid out: what is asked, the choices with their costs, then everything else.

Job: pure: the core's card -> lines with roles; the guard's view -> two lines; before and after -> one sentence.
Must not
know: widgets, keys, the core's rules. Nothing of the card is left out: what does not fit is scrolled to.

Source: spec E3 (the order of its lines), E4, G4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

from pollconsole import draw, words
from pollconsole.draw import Line, text
from pollconsole.guard_facts import GuardView, State
from pollconsole.safe import safe
from pollcore.facts import Choice, ChoiceKind, Operation, Status, clock_time

FIXED: Final = 8
"""E3's lines, `Safe options:` the last of them; further ones come after the choices."""
COLUMN: Final = 38
"""Short further lines stand two beside each other, the second from this cell on if it can."""
MIN_GAP: Final = 2
LABEL: Final = 18
CHOICE_INDENT: Final = 4
BAR_CELLS: Final = 20
_LOUD: Final = ("warning:", "cannot be chosen", "for ", "not offered")
"""How details begin that must not be read past."""
_STATE_ROLE: Final = {State.ARMED: "good", State.PENDING: "attention", State.LOCKED: "danger", State.QUIET: "held"}
_OPTIONS: Final = "Safe options:"
REQUEST: Final = (
    *("Method:", "Host:", "Path:", "Body:", "Purpose:", "Request number:", "Credential:", "Credential mode:"),
    *("Credential scope:", "Can reveal:", "For the run:", "Request digest:", "Cannot be shown:"),
)
"""G7's lines: what a credential would be used for. They come first among the further ones, in this order."""
DIFFERENCE: Final = "Contract difference:"
_LETS_OUT: Final = frozenset({ChoiceKind.APPROVE_ONCE, ChoiceKind.APPROVE_SESSION})


class Option(Protocol):
    """One choice as text, harmless."""

    @property
    def key(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def details(self) -> tuple[str, ...]: ...
    @property
    def available(self) -> bool: ...


class Drawable(Protocol):
    """The core's card, as far as it is drawn."""

    @property
    def title(self) -> str: ...
    @property
    def lines(self) -> Sequence[Any]: ...
    @property
    def options(self) -> Sequence[Option]: ...
    @property
    def choices(self) -> tuple[Choice, ...]: ...


def body_lines(card: Drawable, width: int) -> list[Line]:
    """All of the card: title, E3's lines, choices with costs, further lines."""
    fixed = list(card.lines[:FIXED])
    further = list(card.lines[FIXED:])
    asked = _request(further)
    lines: list[Line] = [(text(f"{card.title}: {asked}" if asked else card.title, "title"),)]
    for each in fixed:
        if each.label == _OPTIONS:
            lines.append(((_OPTIONS, "muted"),))
        else:
            lines += named_lines(f"{each.label:<{LABEL}}", each.text, width)
    for option in card.options:
        lines += choice_lines(option, width)
    if further:
        lines.append(())
        first = _of_the_request(further) if asked else []
        rest = [(each.label, each.text) for each in further if (each.label, each.text) not in first]
        lines += [*columns(first, width), *further_lines(rest, width)]
    return lines


def named_lines(label: str, said: str, width: int) -> list[Line]:
    """A label with its space, and what it says; what has no room beside it goes on under its own beginning."""
    role = "attention" if label.startswith("Stopped because:") else "text"
    begins = draw.width_of(((label, ""),))
    whole = text(said, role)
    if max((draw.width_of(((word, ""),)) for word in whole[0].split(" ")), default=0) > width - begins:
        return draw.wrap(((label, "muted"), whole), width, indent=CHOICE_INDENT)  # a digest stands unbroken
    listed = whole[0].split(", ")
    if begins + draw.width_of((whole,)) <= width or max(map(len, listed)) * 2 > width - begins:
        return draw.wrap(((label, "muted"), whole), width, indent=begins)
    items = [*((f"{each},", role) for each in listed[:-1]), (listed[-1], role)]
    first, *others = draw.flow(items, width - begins, sign=" ")
    return [((label, "muted"), *first), *(((" " * begins, "text"), *each) for each in others)]


def further_lines(pairs: Sequence[tuple[str, str]], width: int) -> list[Line]:
    """Lines of a card behind its choices: in columns, but the difference of a contract, which stands last."""
    changed = [said for label, said in pairs if label == DIFFERENCE]
    lines = columns([each for each in pairs if each[0] != DIFFERENCE], width)
    return [*lines, *difference_lines(changed)] if changed else lines


def difference_lines(changed: Sequence[str]) -> list[Line]:
    """One line a line, counted, so that each is told from every other one while the card is read."""
    lines: list[Line] = [((DIFFERENCE, "muted"), (" - what it runs under, + what the file says now", "faint"))]
    digits = len(str(len(changed)))
    for number, each in enumerate(changed, 1):
        role = {"+": "good", "-": "danger", "@": "faint"}.get(each[:1], "muted")
        lines.append(((f" {number:>{digits}} | ", "faint"), text(each, role)))
    return lines


def _of_the_request(lines: Sequence[Any]) -> list[tuple[str, str]]:
    """G7's lines, in their order."""
    found = {each.label: each.text for each in lines}
    return [(label, found[label]) for label in REQUEST if label in found]


def _request(further: Sequence[Any]) -> str:
    """`GET https://api.acme.example/v1/jobs/7`: what a card about one use of a credential is about; else empty."""
    found = dict(_of_the_request(further))
    if "For the run:" in found:
        return f"a session of {found.get('Credential:', '')}"
    path = found.get("Path:", "").replace(" (its query is masked)", "?...")
    return f"{found['Method:']} {found.get('Host:', '')}{path}" if "Method:" in found else ""


def choice_lines(option: Option, width: int) -> list[Line]:
    """`1  extend 15 min / 4 checks` with every limit that it moves, then what it leads to and its warnings."""
    key, role = ("key", "title") if option.available else ("faint", "faint")
    return priced_lines(((f" {option.key}  ", key), text(option.label, role)), option.details, width)


def priced_lines(head: Line, details: Sequence[str], width: int) -> list[Line]:
    """*head* of a choice, its costs beside it (each unbroken), then the sentences, packed: a card is read to its end
    before it arms, so a line that is not needed is a key more to press. What must not be read past begins a line."""
    costs = [each for each in details if is_cost(each)]
    said = [each for each in details if each not in costs]
    quiet = tuple(text(f" {each}", "muted") for each in said if not each.startswith(_LOUD))
    loud = [text(each, "attention") for each in said if each.startswith(_LOUD)]
    indent = (" " * CHOICE_INDENT, "text")
    if costs:
        lines = draw.flow([text(each, "text") for each in costs], width, first=head, indent=CHOICE_INDENT)
        if quiet:
            lines.append((indent, (quiet[0][0].lstrip(), quiet[0][1]), *quiet[1:]))
    else:
        lines = [(*head, (" ", "text"), *quiet) if quiet else head]
    return [*lines, *((indent, each) for each in loud)]


def is_cost(detail: str) -> bool:
    """Whether a detail of a choice is a limit that moves: `status requests 12 -> 16`."""
    return " -> " in detail or detail.startswith("last possible check")


def confirm_lines(choice: Choice, option: Option, card: Drawable, width: int) -> list[Line]:
    """What exactly is about to be granted, between the two keys; of a request or a session, G7's lines once more."""
    about = "This gives new authority:" if choice.grants else "This is about to be done:"
    lines: list[Line] = [((about, "attention"), (" ", "text"), text(option.label, "title"))]
    for each in option.details:
        loud = each.startswith("warning:")
        lines.append((("  ", "text"), text(each, "attention" if loud else "text")))
    if choice.kind in _LETS_OUT:
        lines += [(("  ", "text"), *each) for each in columns(_of_the_request(card.lines), width - 2)]
    return lines


def columns(pairs: list[tuple[str, str]], width: int) -> list[Line]:
    """Two pairs beside each other where both fit on a line; nothing is cut, the order is kept."""
    lines: list[Line] = []
    waiting: Line | None = None
    for label, value in pairs:
        line: Line = ((f"{label} ", "muted"), text(value, "text"))
        if waiting is not None:
            begins = max(COLUMN, draw.width_of(waiting) + MIN_GAP)
            if begins + draw.width_of(line) <= width:
                lines.append((*waiting, (" " * (begins - draw.width_of(waiting)), "text"), *line))
                waiting = None
                continue
            lines.append(waiting)
        waiting = line
    return lines if waiting is None else [*lines, waiting]


def guard_bar(view: GuardView) -> tuple[Line, Line, Line]:
    """State word with its bar and the marker; the prompt; what the guard says."""
    role = _STATE_ROLE.get(view.state, "muted")
    filled = round(view.fraction * BAR_CELLS)
    state: Line = (
        (f" {view.state.value:<8} ", role),
        ("#" * filled, "bar-full" if view.state is not State.ARMED else "good"),
        ("-" * (BAR_CELLS - filled), "bar-empty"),
        (f"  {view.marker}", "faint"),
    )
    prompt: Line = ((" ", "text"), (view.prompt, "attention-text" if view.step == 2 else "title"))
    ignored = f"  ({words.counted(view.rejected_keys, 'key')} ignored)" if view.rejected_keys else ""
    return state, prompt, ((f" {safe(view.message, 160)}{ignored}", role),)


def outcome_words(before: Operation | None, after: Operation, choice: Choice) -> str:
    """What a decision did, in one line for the row: `extend 15 min / 4 checks: deadline 11:15:00, requests 16`."""
    said: list[str] = []
    if before is not None:
        if after.deadline_at != before.deadline_at:
            said.append(f"deadline {clock_time(after.deadline_at)}")
        for name, old, new in (
            ("requests", before.max_status_requests, after.max_status_requests),
            ("failures", before.max_transport_failures, after.max_transport_failures),
            ("429", before.max_rate_limited, after.max_rate_limited),
        ):
            if old != new:
                said.append(f"{name} {new}")
        if after.status not in (before.status, Status.WAITING):
            said.insert(0, words.STATUS[after.status][1])
    if choice.kind is ChoiceKind.CLOSE:
        said.append("we stop watching, the job may go on")
    elif after.hold_until is not None and choice.kind is ChoiceKind.HOLD:
        said.append(f"until {clock_time(after.hold_until)}")
    elif choice.kind is ChoiceKind.APPROVE_ONCE:
        said.append("this one request goes out, the next asks again")
    elif choice.kind is ChoiceKind.APPROVE_SESSION:
        said.append(f"{choice.credential} is not asked about until the minutes or the calls are over")
    elif choice.kind is ChoiceKind.CANCEL_AT_PROVIDER:
        said.append("the cancel was asked for; a cancel that was sent is not a cancelled job")
    return f"{choice.label}: {', '.join(said)}" if said else choice.label
