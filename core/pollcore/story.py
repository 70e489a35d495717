"""Audit events as a story, one line an event (A2).

Job: the sentence of every event name, UTC, a date line when the day changes. Must not know: where events come from,
terminals; provider texts go through the caller's `harmless`.
Source: spec A2; its four example lines are followed to the letter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from pollcore.facts import DAY, AuditEvent, DelaySource, EventName, Instant, clock_time, iso

Harmless = Callable[[str], str]

_SOURCES: Final = {
    DelaySource.PROVIDER_RETRY_AFTER: "provider guidance",
    DelaySource.PROVIDER_POLL_HINT: "provider poll hint",
    DelaySource.LOCAL_BACKOFF: "local backoff",
    DelaySource.MANUAL_EXTENSION: "manual extension",
    DelaySource.SHARED_COOLDOWN: "shared cool-down",
    DelaySource.ORIGIN_DOWN: "origin down",
}
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
    teller = _TELLERS[event.event]
    parts = [part for part in teller(event) if part]
    text = ", ".join(parts)
    # what the key guard measured, and the card's digest, are for the record; a person reads what was granted
    notes = [note for note in event.notes if not note.startswith(_FOR_THE_RECORD)]
    if event.event is EventName.SUBMITTED:  # `budget 12` stands in the sentence already
        notes = [note.removeprefix(f"max_status_requests {event.max_requests} ") for note in notes]
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


def time_words(at: Instant, seen_from: Instant) -> str:
    """`11:00:00`, with the date where it is another day than that of the event."""
    return clock_time(at) if at // DAY == seen_from // DAY else f"{iso(at)[:10]} {clock_time(at)}"


def _next(event: AuditEvent) -> str | None:
    if event.next_poll_at is None:
        return None
    source = f" from {_SOURCES[event.delay_source]}" if event.delay_source else ""
    return f"next poll {time_words(event.next_poll_at, event.at)}{source}"


def _words(text: str | None) -> str | None:
    return text.replace("_", " ") if text else None


def _end(event: AuditEvent) -> list[str | None]:
    """What was decided: the next poll, a success, or a reason and that a human is asked."""
    if event.reason:
        return [_words(event.reason), _words(event.detail), "ended" if event.decision == "stop" else "escalated"]
    if event.decision == "succeed":
        return ["succeeded", event.detail]
    return [_next(event)]


def _submitted(event: AuditEvent) -> list[str | None]:
    deadline = f"deadline {time_words(event.deadline_at, event.at)}" if event.deadline_at is not None else None
    budget = f"budget {event.max_requests}" if event.max_requests is not None else None
    decided = _end(event) if event.decision != "wait" else []
    return [f"submitted job {event.text or 'unnamed'}", deadline, budget, *decided]


def _sent(event: AuditEvent) -> list[str | None]:
    of = f" of {event.max_requests}" if event.max_requests is not None else ""
    number = f"request {event.requests_used}{of} counted" if event.requests_used is not None else "request counted"
    return [number, "about to be sent"]


def _polled(event: AuditEvent) -> list[str | None]:
    """An answer with a state is `polled`; one that only has an HTTP status is `received`."""
    if event.state is not None:
        head = [f"polled, state {event.state}"]
    elif event.http is not None:
        head = [f"received {event.http}"]
    else:
        head = ["polled, no state"]
    end = _end(event)
    if event.decision == "succeed" and not event.reason and event.state == end[0]:
        end = end[1:]  # the provider's own word for it was told just now
    return [*head, event.retry_after, *end]


def _faulted(event: AuditEvent) -> list[str | None]:
    if event.http is not None:
        return [f"received {event.http}", event.retry_after, *_end(event)]
    return [f"no answer, {_words(event.fault) or 'cause unknown'}", *_end(event)]


def _answer_lost(event: AuditEvent) -> list[str | None]:
    return ["the answer of a counted request was lost", *_end(event)]


def _scheduled(event: AuditEvent) -> list[str | None]:
    return ["nothing sent", _next(event) or "next poll moved", _words(event.detail)]


def _stopped(event: AuditEvent) -> list[str | None]:
    state = f"last state {event.state or event.state_before}" if event.state or event.state_before else None
    return ["stopped without a request", state, *_end(event)]


def _escalated(event: AuditEvent) -> list[str | None]:
    return [_words(event.reason) or "a question is open", _words(event.detail), "escalated"]


def _asked(event: AuditEvent) -> list[str | None]:
    by = f" by {event.caller}" if event.caller else ""
    return [f"extension requested{by}", event.detail, _quoted(event)]


def _question(event: AuditEvent) -> list[str | None]:
    by = f" by {event.operator or event.caller}" if event.operator or event.caller else ""
    return [f"question {_words(event.reason) or 'unnamed'} opened{by}", _words(event.detail), _quoted(event)]


def _quoted(event: AuditEvent) -> str | None:
    return f"because: {event.text}" if event.text else None


def _by(event: AuditEvent) -> str:
    who = event.operator or event.caller
    return f" by {who}" if who else ""


def _granted(event: AuditEvent) -> list[str | None]:
    deadline = f"deadline {time_words(event.deadline_at, event.at)}" if event.deadline_at is not None else None
    budget = f"budget {event.max_requests}" if event.max_requests is not None else None
    what = event.detail or _words(event.decision) or "a choice"
    return [f"granted {what}{_by(event)}", deadline, budget, _next(event), _quoted(event)]


def _refused(event: AuditEvent) -> list[str | None]:
    what = event.detail or _words(event.decision) or "a choice"
    return [f"refused the grant of {what}{_by(event)}", event.text]


def _plain(words: str) -> Callable[[AuditEvent], list[str | None]]:
    """A sentence that is a verb, who, what, why."""

    def tell(event: AuditEvent) -> list[str | None]:
        return [f"{words}{_by(event)}", _words(event.reason), _words(event.detail), _next(event), _quoted(event)]

    return tell


def _paused(event: AuditEvent) -> list[str | None]:
    """The pause of a provider; its text names provider and account."""
    until = f" until {time_words(event.next_poll_at, event.at)}" if event.next_poll_at is not None else ""
    return [f"paused {event.text or 'a provider'}{until}{_by(event)}"]


def _held(event: AuditEvent) -> list[str | None]:
    until = f" until {time_words(event.next_poll_at, event.at)}" if event.next_poll_at is not None else ""
    return [f"held{until}{_by(event)}", _quoted(event)]


def _rejected(event: AuditEvent) -> list[str | None]:
    verb = "denied" if event.decision == "deny" else "rejected"
    return [f"{verb} {_words(event.reason) or 'the question'}{_by(event)}", _quoted(event)]


def _closed(event: AuditEvent) -> list[str | None]:
    return [f"closed{_by(event)}", "the job at the provider may go on", _quoted(event)]


def _tried(event: AuditEvent) -> list[str | None]:
    """What a wait would have decided of the one answer; nothing was, and nobody waits."""
    if event.decision is None:
        return [f"provider try{_by(event)} ended, nothing was sent"]
    would = "a wait would go on"
    if event.reason:
        would = f"a wait would stop: {' '.join(filter(None, (_words(event.reason), _words(event.detail))))}"
    elif event.decision == "succeed":
        would = "a wait would end as succeeded"
    return [f"provider try{_by(event)} ended", would, "the job at the provider may go on", event.text]


def _decided(event: AuditEvent) -> list[str | None]:
    """X7: what the status requests under a contract are, for every operation that uses it."""
    what = {"read_only": "are read-only", "action": "are actions, each is asked for"}.get(event.decision or "", "?")
    return [f"status requests under contract {(event.text or '')[:12]} {what}{_by(event)}"]


def _hold_ended(event: AuditEvent) -> list[str | None]:
    back = f"the question {_words(event.reason)} returns" if event.reason else None
    return [f"hold ended{_by(event)}", back, None if event.reason else _next(event), _quoted(event)]


def _expired(event: AuditEvent) -> list[str | None]:
    """G7: nobody answered; that is no denial."""
    return [f"question {_words(event.reason) or 'unnamed'} expired", event.detail, "nothing was sent"]


def _answered(words: str) -> Callable[[AuditEvent], list[str | None]]:
    """An action's answer: HTTP code or fault, outcome."""

    def tell(event: AuditEvent) -> list[str | None]:
        got = f"received {event.http}" if event.http is not None else _words(event.fault)
        return [f"{words}{_by(event)}", got, _words(event.decision), _words(event.detail), event.text]

    return tell


_TELLERS: Final[dict[EventName, Callable[[AuditEvent], list[str | None]]]] = {
    EventName.SUBMITTED: _submitted,
    EventName.SENT: _sent,
    EventName.POLLED: _polled,
    EventName.FAULTED: _faulted,
    EventName.ANSWER_LOST: _answer_lost,
    EventName.SCHEDULED: _scheduled,
    EventName.STOPPED: _stopped,
    EventName.ESCALATED: _escalated,
    EventName.EXTENSION_REQUESTED: _asked,
    EventName.QUESTION_OPENED: _question,
    EventName.GRANTED: _granted,
    EventName.GRANT_REFUSED: _refused,
    EventName.REJECTED: _rejected,
    EventName.CLOSED: _closed,
    EventName.TRIED: _tried,
    EventName.HELD: _held,
    EventName.HOLD_ENDED: _hold_ended,
    EventName.APPROVAL_EXPIRED: _expired,
    EventName.SESSION_ENDED: _plain("session ended"),
    EventName.PAUSED: _paused,
    EventName.CANCEL_SENT: _answered("cancel sent to the provider"),
    EventName.CANCEL_ANSWERED: _answered("cancel answered, which does not mean cancelled"),
    EventName.RESUBMITTED: _answered("resubmitted as a new operation"),
    EventName.RESULT_FETCHED: _answered("result fetched"),
    EventName.RESULT_REVEALED: _plain("result pointer revealed"),
    EventName.CLOCK_STEP: _answered("clock step noticed"),
    EventName.CREDENTIAL_REFUSED: _answered("credential refused by the provider"),
    EventName.CREDENTIAL_CHANGED: _answered("credential changed"),
    EventName.CONTRACT_DECIDED: _decided,
    EventName.CONTRACT_SEEN: _answered("contract looked at"),
    EventName.ARCHIVED: _answered("archived"),
    EventName.AUDIT_KEYS: _answered("audit keys changed"),
    EventName.LATE_RESULT: _answered("late answer of a former owner recorded, nothing changed"),
}
