"""Every request of one operation, by its events: was it permitted when it was sent, was guidance obeyed.

Job: events in the order written -> one fact a request. Must not know: the record, contracts. A wall clock that was set
makes wall times no proof: then the boot times of the charges tell, and without them nobody is accused.
Source: spec A5, B1-B3, T4, T5, T9, O7.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from pollcore.facts import SECOND, AuditEvent, DelaySource, EventName, Instant, Intent, iso

ANSWERS: Final = frozenset({EventName.POLLED, EventName.FAULTED})
STOPS: Final = frozenset({EventName.POLLED, EventName.FAULTED, EventName.ANSWER_LOST, EventName.STOPPED})
"""Events that may end a wait."""
_SETTLED: Final = frozenset({"escalate", "stop", "succeed"})
"""Decisions after which nothing goes out before a grant."""
_GUIDED: Final = frozenset({DelaySource.PROVIDER_RETRY_AFTER, DelaySource.PROVIDER_POLL_HINT})
STEP_MS: Final = 2 * SECOND
"""A greater difference between wall and boot clock is a step, as the loop records it; a smaller one is drift."""
_SECONDS: Final = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)\s*$")


class RequestFact(msgspec.Struct, frozen=True):
    """One counted request."""

    n: int | None
    """Its number; None: the event does not say."""
    sent_at: Instant
    planned_at: Instant | None
    guided_until: Instant | None
    """Guidance that was open: it could be obeyed or broken; None: there was none."""
    obeyed: bool | None
    """None with guidance: not provable, the clock was stepped between."""
    wrong: tuple[str, ...]
    """Why it was not permitted; empty: it was."""
    answer: str | None
    """State, HTTP code or fault; None: its answer was lost, or is not there yet."""
    decided: str | None
    """`wait`, `succeed`, or the reason of a stop."""

    @property
    def permitted(self) -> bool:
        return not self.wrong

    @property
    def unprovable(self) -> bool:
        """Guidance was open, and nobody can say whether it was obeyed."""
        return self.guided_until is not None and self.obeyed is None


class _Guided(msgspec.Struct, frozen=True):
    """Guidance that is open."""

    given_at: Instant
    until: Instant
    n: int | None
    """The request whose answer gave it."""


def guided_until(event: AuditEvent) -> Instant | None:
    """When the guidance that *event* obeyed was over; None: it obeyed none.

    From the seconds in `retry_after`; without them from the planned poll, which lies at most 10 % of spread behind it.
    """
    if event.event not in ANSWERS or event.delay_source not in _GUIDED or event.next_poll_at is None:
        return None
    found = _SECONDS.search(event.retry_after) if event.retry_after else None
    if found:
        return Instant(event.at + round(float(found.group(1)) * SECOND))
    return Instant(event.at + (event.next_poll_at - event.at) * 10 // 11)


def given_until(event: AuditEvent) -> Instant | None:
    """When the guidance that *event* names was over, obeyed or not; None: it names none."""
    found = _SECONDS.search(event.retry_after) if event.retry_after else None
    return None if found is None else Instant(event.at + round(float(found.group(1)) * SECOND))


def went_out(event: AuditEvent) -> Instant:
    """When the request of a `sent` event went out, as far as that is known."""
    return event.sent_at if event.sent_at is not None else event.at


def requests_of(found: Sequence[AuditEvent], charges: Iterable[Intent] = ()) -> Iterator[RequestFact]:
    """Each request with what its answer was, in the order sent. *charges*: with the boot times of its requests."""
    clocks = {one.n: one for one in charges if one.boot_no}
    guided: _Guided | None = None
    stepped = False
    stopped: AuditEvent | None = None
    held: Instant | None = None
    last: int | None = None
    for at, event in enumerate(found):
        if event.event is EventName.SENT:
            when = went_out(event)
            wrong = [why for why in (_beyond(event), _again(event, last), _after(stopped), _held(when, held)) if why]
            answer, decided = _answer(found[at + 1 :])
            until = None if guided is None else guided.until
            obeyed = None if guided is None else _obeyed(guided, event, clocks, stepped)
            yield RequestFact(event.requests_used, when, event.planned_at, until, obeyed, tuple(wrong), answer, decided)
            last, guided = event.requests_used if event.requests_used is not None else last, None
            continue
        until = guided_until(event)
        if until is not None:
            guided, stepped = _Guided(event.at, until, last), False
        stepped = stepped or event.event is EventName.CLOCK_STEP
        if event.event in STOPS or event.event is EventName.SUBMITTED:
            stopped = event if event.decision in _SETTLED else stopped
        elif event.event is EventName.GRANTED:
            stopped = held = None
        elif event.event is EventName.HELD:
            held = event.next_poll_at
        elif event.event is EventName.HOLD_ENDED:
            held = None


def _obeyed(guided: _Guided, sent: AuditEvent, clocks: Mapping[int, Intent], stepped: bool) -> bool | None:
    """Whether the request of *sent* waited for *guided*; None: the clock was stepped between, and nothing tells."""
    when = went_out(sent)
    before = clocks.get(guided.n) if guided.n is not None else None
    charge = clocks.get(sent.requests_used) if sent.requests_used is not None else None
    if before is None or charge is None or before.boot_no != charge.boot_no:
        set_back = when < guided.given_at - STEP_MS
        return None if stepped or set_back else when >= guided.until
    elapsed, asked = charge.boot - before.boot, guided.until - guided.given_at
    steady = abs(charge.at - before.at - elapsed) <= STEP_MS
    if steady and when >= guided.until:
        return True
    answering = guided.given_at - before.at
    if 0 <= answering <= elapsed and elapsed - answering >= asked:
        return True
    return False if steady or elapsed < asked else None


def _beyond(event: AuditEvent) -> str | None:
    """Beyond what was authorised then."""
    if event.requests_used is not None and event.max_requests is not None and event.requests_used > event.max_requests:
        return f"request {event.requests_used} was sent, {event.max_requests} were allowed"
    if event.deadline_at is not None and went_out(event) >= event.deadline_at:
        return f"a request was sent at {iso(went_out(event))}, the deadline was {iso(event.deadline_at)}"
    return None


def _again(event: AuditEvent, last: int | None) -> str | None:
    if last is None or event.requests_used is None or event.requests_used > last:
        return None
    return f"request {event.requests_used} was sent after request {last}: a number was used twice"


def _after(stopped: AuditEvent | None) -> str | None:
    if stopped is None:
        return None
    why = stopped.reason or stopped.decision or "an end"
    return f"a request was sent after the stop of {iso(stopped.at)} ({why}), and nothing was granted between"


def _held(when: Instant, held: Instant | None) -> str | None:
    return None if held is None or when >= held else f"a request was sent at {iso(when)}, held until {iso(held)}"


def _answer(rest: Sequence[AuditEvent]) -> tuple[str | None, str | None]:
    """What came of the request before *rest*."""
    for event in rest:
        if event.event is EventName.SENT:
            break
        if event.event in ANSWERS or event.event is EventName.ANSWER_LOST:
            said = event.state or (f"HTTP {event.http}" if event.http is not None else event.fault)
            return None if event.event is EventName.ANSWER_LOST else said, event.reason or event.decision
    return None, None
