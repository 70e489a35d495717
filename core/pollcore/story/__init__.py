"""Audit events as a story, one line an event (A2).

Job: one line of an event's sentence, with its time in UTC, and a date line when the day changes. Must not know: what is
said of an event (`sentences`), where events come from, terminals; provider texts go through the caller's `harmless`.
Source: spec A2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from pollcore.facts import DAY, AuditEvent, EventName, Instant, clock_time, iso
from pollcore.story.notes import told as in_words
from pollcore.story.sentences import parts

__all__ = ["Harmless", "line", "story", "visible"]

Harmless = Callable[[str], str]

_EXPLAINED: Final = frozenset({EventName.POLLED, EventName.FAULTED, EventName.ANSWER_LOST, EventName.STOPPED})
"""Their free text explains the decision; elsewhere it is part of the sentence."""
_FOR_THE_RECORD: Final = ("guard: ", "card ", "grant ")


def visible(text: str) -> str:
    """The core's own way to make a text harmless: what does not print is written out, `\\x1b`, white space is a space.

    Controls, bidirectional and zero-width characters, lone surrogates and unassigned code points do not print.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else " " if char in "\n\r\t" else f"\\x{ord(char):02x}" for char in text)


def story(
    events: Iterable[AuditEvent],
    *,
    harmless: Harmless = visible,
    after: Instant | None = None,
    named: bool = False,
) -> Iterator[str]:
    """Lines in the order of *events*.

    Args:
        harmless: Makes a provider's or caller's text safe to print.
        after: Time of the event told just before, so that a live story goes on without telling its day again; None:
            the first event tells no day, only a change does.
        named: After the time each line names its operation, `-` where an event belongs to none.
    """
    told = after
    for event in events:
        if event.event is EventName.SENT:
            # the intent behind a count: the answer's own line tells the request; a lost answer has a line, too
            continue
        if told is not None and event.at // DAY != told // DAY:
            yield iso(event.at)[:10]
        told = event.at
        text = line(event, harmless=harmless)
        if named:
            clock, _, rest = text.partition(" ")
            text = f"{clock} {''.join(harmless(event.operation_id or '-').split())} {rest}"
        yield text


def line(event: AuditEvent, *, harmless: Harmless = visible) -> str:
    """`10:20:31 received 503, Retry-After 120, next poll 10:22:31 from provider guidance`."""
    text = ", ".join(parts(event))
    # what the key guard measured, and the card's digest, are for the record; a person reads what was granted
    notes = [in_words(note, event) for note in event.notes if not note.startswith(_FOR_THE_RECORD)]
    remarks = [event.text, *notes] if event.event in _EXPLAINED else notes
    if told := _once(remarks):
        text += f" ({'; '.join(told)})"
    # last and over the whole line: whatever text got in, no character of it starts a line or moves a cursor
    return f"{clock_time(event.at)} {' '.join(harmless(text).split())}"


def _once(remarks: Iterable[str | None]) -> list[str]:
    """What is there, in order, without a remark that another one says already (the same, or a part of it)."""
    told: list[str] = []
    for remark in filter(None, remarks):
        if any(remark in said for said in told):
            continue
        told = [said for said in told if said not in remark]
        told.append(remark)
    return told
