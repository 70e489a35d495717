"""The sentence of every event name (A2).

Job: from one audit event to the parts of its sentence, in the words of this program. Must not know: the line that the
parts are put on, its time, other events; provider texts are given out as they are.
Source: spec A2; its four example lines are followed to the letter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pollcore.facts import (
    DAY,
    ActionOutcome,
    AuditEvent,
    ChoiceKind,
    DelaySource,
    EventName,
    Instant,
    clock_time,
    iso,
    lost_words,
)

Parts = list[str | None]
"""What is said, in order; None: nothing to say there."""
Teller = Callable[[AuditEvent], Parts]

_SOURCES: Final = {
    DelaySource.PROVIDER_RETRY_AFTER: "provider guidance",
    DelaySource.PROVIDER_POLL_HINT: "provider poll hint",
    DelaySource.LOCAL_BACKOFF: "local backoff",
    DelaySource.MANUAL_EXTENSION: "manual extension",
    DelaySource.SHARED_COOLDOWN: "shared cool-down",
    DelaySource.ORIGIN_DOWN: "origin down",
    DelaySource.PAUSED: "pause by hand",
    DelaySource.CAPPED: "the provider's caps",
    DelaySource.TOKEN_PENDING: "a token that is being bought",
}


def parts(event: AuditEvent) -> list[str]:
    """What is said of *event*, in order; every event name has its sentence."""
    return [part for part in _TELLERS[event.event](event) if part]


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


def _end(event: AuditEvent) -> Parts:
    """What was decided: the next poll, a success, or a reason and that a human is asked."""
    if event.reason:
        return [_words(event.reason), _words(event.detail), "ended" if event.decision == "stop" else "escalated"]
    if event.decision == "succeed":
        return ["succeeded", event.detail]
    return [_next(event)]


def _submitted(event: AuditEvent) -> Parts:
    deadline = f"deadline {time_words(event.deadline_at, event.at)}" if event.deadline_at is not None else None
    budget = f"budget {event.max_requests}" if event.max_requests is not None else None
    decided = _end(event) if event.decision != "wait" else []
    return [f"submitted job {event.text or 'unnamed'}", deadline, budget, *decided]


def _sent(event: AuditEvent) -> Parts:
    of = f" of {event.max_requests}" if event.max_requests is not None else ""
    number = f"request {event.requests_used}{of} counted" if event.requests_used is not None else "request counted"
    return [number, "about to be sent"]


def _polled(event: AuditEvent) -> Parts:
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


def _faulted(event: AuditEvent) -> Parts:
    if event.http is not None:
        return [f"received {event.http}", event.retry_after, *_end(event)]
    return [f"no answer, {_words(event.fault) or 'cause unknown'}", *_end(event)]


def _answer_lost(event: AuditEvent) -> Parts:
    return ["the answer of a counted request was lost", *_end(event)]


def _scheduled(event: AuditEvent) -> Parts:
    return ["nothing sent", _next(event) or "next poll moved", _words(event.detail)]


def _stopped(event: AuditEvent) -> Parts:
    state = f"last state {event.state or event.state_before}" if event.state or event.state_before else None
    return ["stopped without a request", state, *_end(event)]


def _escalated(event: AuditEvent) -> Parts:
    return [_words(event.reason) or "a question is open", _words(event.detail), "escalated"]


def _asked(event: AuditEvent) -> Parts:
    by = f" by {event.caller}" if event.caller else ""
    return [f"extension requested{by}", event.detail, _quoted(event)]


def _question(event: AuditEvent) -> Parts:
    by = f" by {event.operator or event.caller}" if event.operator or event.caller else ""
    return [f"question {_words(event.reason) or 'unnamed'} opened{by}", _words(event.detail), _quoted(event)]


def _quoted(event: AuditEvent) -> str | None:
    return f"because: {event.text}" if event.text else None


def _by(event: AuditEvent) -> str:
    who = event.operator or event.caller
    return f" by {who}" if who else ""


def _granted(event: AuditEvent) -> Parts:
    deadline = f"deadline {time_words(event.deadline_at, event.at)}" if event.deadline_at is not None else None
    budget = f"budget {event.max_requests}" if event.max_requests is not None else None
    what = event.detail or _words(event.decision) or "a choice"
    following = _next(event)
    if following and event.decision != ChoiceKind.EXTEND and event.delay_source is DelaySource.MANUAL_EXTENSION:
        # the record's word for the first check after any grant; only an extension is one
        following = f"{following.partition(' from ')[0]} from this grant"
    return [f"granted {what}{_by(event)}", deadline, budget, following, _quoted(event)]


def _refused(event: AuditEvent) -> Parts:
    what = event.detail or _words(event.decision) or "a choice"
    return [f"refused the grant of {what}{_by(event)}", event.text]


def _plain(words: str) -> Teller:
    """A sentence that is a verb, who, what, why."""

    def tell(event: AuditEvent) -> Parts:
        return [f"{words}{_by(event)}", _words(event.reason), _words(event.detail), _next(event), _quoted(event)]

    return tell


def _paused(event: AuditEvent) -> Parts:
    """The pause of a provider; its text names provider and account."""
    until = f" until {time_words(event.next_poll_at, event.at)}" if event.next_poll_at is not None else ""
    return [f"paused {event.text or 'a provider'}{until}{_by(event)}"]


def _held(event: AuditEvent) -> Parts:
    until = f" until {time_words(event.next_poll_at, event.at)}" if event.next_poll_at is not None else ""
    return [f"held{until}{_by(event)}", _quoted(event)]


def _rejected(event: AuditEvent) -> Parts:
    verb = "denied" if event.decision == "deny" else "rejected"
    return [f"{verb} {_words(event.reason) or 'the question'}{_by(event)}", _quoted(event)]


def _closed(event: AuditEvent) -> Parts:
    return [f"closed{_by(event)}", "the job at the provider may go on", _quoted(event)]


def _tried(event: AuditEvent) -> Parts:
    """What a wait would have decided of the one answer; nothing was, and nobody waits."""
    if event.decision is None:
        return [f"provider try{_by(event)} ended, nothing was sent"]
    would = "a wait would go on"
    if event.reason:
        would = f"a wait would stop: {' '.join(filter(None, (_words(event.reason), _words(event.detail))))}"
    elif event.decision == "succeed":
        would = "a wait would end as succeeded"
    return [f"provider try{_by(event)} ended", would, "the job at the provider may go on", event.text]


def _decided(event: AuditEvent) -> Parts:
    """X7: what the status requests under a contract are, for every operation that uses it."""
    what = {"read_only": "are read-only", "action": "are actions, each is asked for"}.get(event.decision or "", "?")
    return [f"status requests under contract {(event.text or '')[:12]} {what}{_by(event)}"]


def _hold_ended(event: AuditEvent) -> Parts:
    back = f"the question {_words(event.reason)} returns" if event.reason else None
    return [f"hold ended{_by(event)}", back, None if event.reason else _next(event), _quoted(event)]


def _expired(event: AuditEvent) -> Parts:
    """G7: nobody answered; that is no denial."""
    return [f"question {_words(event.reason) or 'unnamed'} expired", event.detail, "nothing was sent"]


def _answered(words: str) -> Teller:
    """An action's answer: HTTP code or fault, outcome."""

    def tell(event: AuditEvent) -> Parts:
        got = f"received {event.http}" if event.http is not None else _words(event.fault)
        return [f"{words}{_by(event)}", got, _words(event.decision), _words(event.detail), event.text]

    return tell


def cancel_outcome(outcome: str) -> str:
    """The outcome of a cancel for people. `done` in the records is that the provider took the request: nobody should
    read it of a job that may run on."""
    return "accepted" if outcome == ActionOutcome.DONE else outcome


def _cancel_answered(words: str) -> Teller:
    """What the answer to a cancel was. An HTTP code stands there once, whether or not the reading says it, too."""

    def tell(event: AuditEvent) -> Parts:
        got = f"received {event.http}" if event.http is not None else _words(event.fault)
        detail = event.detail
        if event.http is not None and detail is not None:
            code, _, more = detail.partition(f"HTTP {event.http}")
            detail = more.lstrip(":, ") if not code else detail
        outcome = cancel_outcome(event.decision) if event.decision else None
        return [f"{words}{_by(event)}", got, _words(outcome), _words(detail), event.text]

    return tell


def _action_lost(event: AuditEvent) -> Parts:
    """O5: neither its answer nor whether it left is known."""
    return [lost_words(event.detail or "unnamed"), event.text]


_TELLERS: Final[dict[EventName, Teller]] = {
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
    EventName.ACTION_LOST: _action_lost,
    EventName.CANCEL_ANSWERED: _cancel_answered("cancel answered, which does not mean cancelled"),
    EventName.FORCE_CANCEL_ANSWERED: _cancel_answered("force-cancel answered, which does not mean cancelled"),
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
