"""The record of one operation as lines: every budget, both facts side by side, contract, account, who and where.

Job: pure: record and clock -> lines with roles. Must not know: widgets, keys, the story, where the record comes from.

Source: spec V1, S1, E9, O8.
"""

from __future__ import annotations

from typing import Final

from pollconsole import rows, times, words
from pollconsole.draw import Line, Span, text
from pollconsole.due import PASSED
from pollcore.facts import (
    MINUTE,
    Instant,
    Moment,
    Operation,
    Status,
    deadline_left,
    end_seen_at,
    last_heard_at,
    lost_actions,
)

BAR: Final = 20
NAME: Final = 12
"""Cells of the names before the lines."""
MAX_VALUE: Final = 300


def fact_lines(
    operation: Operation,
    now: Moment,
    asked: bool,
    did: str | None = None,
    last: Instant | None = None,
    *,
    exact: bool = False,
    polled: bool = True,
) -> list[Line]:
    """The record as lines: budgets, the two facts side by side, who and where. *last*: of its last event, if known.
    *exact*: its times in full, too; *polled*: some core polls."""
    lines: list[Line] = []
    if operation.stop_reason is not None:
        lines.append(_pair("stopped", *_stop(operation, asked)))
    if did:
        lines.append(_pair("decided", (did, "good")))
    lines += [_pair("not known", (said, "attention")) for said in lost_actions(operation)]
    lines += _budgets(operation, now, last, polled=polled)
    lines += _two_facts(operation, now)
    lines += _origin(operation, now)
    if exact:
        lines += _times(operation)
    return lines


def _times(operation: Operation) -> list[Line]:
    """Every time of the record, UTC and local."""
    http = operation.last_http
    known: list[tuple[str, Instant | None]] = [
        ("job started", operation.started_at),
        ("submitted", operation.submitted_at),
        ("deadline", operation.deadline_at),
        ("useful until", operation.useful_until),
        ("expires", operation.provider_expires_at),
        ("next request", operation.next_poll_at),
        ("held until", operation.hold_until),
        ("answered", None if http is None else http.answered_at),
        ("no answer", operation.last_fault_at),
        ("state since", operation.memory.changed_at),
    ]
    return [_pair(name, (times.exactly(at), "text")) for name, at in known if at is not None]


def _pair(name: str, *spans: Span) -> Line:
    return ((f"{name:<{NAME}} ", "muted"), *spans)


def _stop(operation: Operation, asked: bool) -> tuple[Span, ...]:
    reason = operation.stop_reason.value if operation.stop_reason is not None else ""
    detail = f", {operation.stop_detail.value}" if operation.stop_detail is not None else ""
    said = f" ({operation.stop_explanation})" if operation.stop_explanation else ""
    return text(f"{reason}{detail}", "attention" if asked else "text"), text(said, "muted", MAX_VALUE)


def _budgets(operation: Operation, now: Moment, last: Instant | None, *, polled: bool) -> list[Line]:
    lines = [_time(operation, now, last)]
    for name, spent, allowed in (
        ("requests", operation.status_requests_used, operation.max_status_requests),
        ("failures", operation.transport_failures_used, operation.max_transport_failures),
        ("429 answers", operation.rate_limited_used, operation.max_rate_limited),
    ):
        role = rows.budget_span(spent, allowed)[1]
        lines.append(_pair(name, *rows.bar(spent, allowed, BAR), (f"  {spent} of {allowed}", role)))
    lines[1] = (*lines[1], *_next(operation, now, polled=polled))
    return lines


def _time(operation: Operation, now: Moment, last: Instant | None) -> Line:
    """What is used of the time; of an ended operation, how long it took: until its end was seen, else
    until its last event."""
    whole = operation.deadline_at - operation.started_at
    deadline = (f"  deadline {times.short(operation.deadline_at, now.wall)}", "muted")
    if operation.status.is_end:
        ends = [at for at in (end_seen_at(operation), last) if at is not None]  # a decision may come long after it
        end = min(ends, default=last_heard_at(operation) or operation.started_at)
        took = max(0, end - operation.started_at)
        said = f"  took {words.span(took)} of {words.span(whole)}"
        return _pair("time", *rows.bar(took, whole, BAR), (said, "text"), deadline)
    left = deadline_left(operation, now)
    used = max(0, whole - left)
    return _pair(
        "time",
        *rows.bar(used, whole, BAR),
        (f"  {words.span(min(used, whole))} of {words.span(whole)}", "text"),
        (f", {words.span(left)} left" if left > 0 else f", {PASSED}", "text" if left > whole * 0.1 else "danger"),
        deadline,
    )


def _next(operation: Operation, now: Moment, *, polled: bool) -> tuple[Span, ...]:
    """When the next request goes out, and what said so; that none does while no core polls."""
    due = operation.next_poll_at
    if not polled and operation.status is Status.WAITING and due is not None:
        when = "was due" if due <= now.wall else "due"
        return ("  no core is running", "danger"), (f", {when} {times.short(due, now.wall)}", "muted")
    shown, role = rows.next_span(operation, now)
    if shown == words.NOTHING:
        return (("  no request is due", "muted"),)
    if operation.hold_until is not None and role == "held":
        return ((f"  held until {words.clock(operation.hold_until, now.wall)}", "held"),)
    source = f", {rows.SOURCE_WORDS[operation.delay_source]}" if operation.delay_source is not None else ""
    return (("  next ", "muted"), (shown, role), (source, "muted"))


def _two_facts(operation: Operation, now: Moment) -> list[Line]:
    """S1: what HTTP said and what the job said, beside each other and apart."""
    http = operation.last_http
    request_id = f", request id {http.request_id}" if http is not None and http.request_id else ""
    memory = operation.memory
    since = f" since {words.clock(memory.changed_at, now.wall)}" if memory.changed_at is not None else ""
    progress = f", progress {memory.progress}" if memory.progress else ""
    state = operation.last_known_state
    return [
        _pair("HTTP says", (rows.http_words(operation, now), "text"), text(request_id, "muted", MAX_VALUE)),
        _pair(
            "job says",
            ("nothing yet", "faint") if state is None else text(state, "text", MAX_VALUE),
            text(f"{since}{progress}", "muted", MAX_VALUE),
        ),
    ]


def _origin(operation: Operation, now: Moment) -> list[Line]:
    given = operation.submitted
    lines = [
        _pair(
            "provider",
            text(given.provider, "text", 60),
            ("  account ", "muted"),
            text(given.account, "text", 80),
            ("  job ", "muted"),
            text(given.job_id, "text", 120),
        ),
        _pair(
            "contract",
            text(operation.contract_digest[:16], "text"),
            ("  credential ", "muted"),
            text(operation.credential or "none", "text", 60),
            (f"  extended {operation.extensions_used} times", "muted"),
        ),
    ]
    ends: list[tuple[str, Instant | None]] = [
        ("useful until ", operation.useful_until),
        ("provider expiry ", operation.provider_expires_at),
    ]
    started = times.clock(operation.started_at, now.wall)
    submitted = times.clock(operation.submitted_at, now.wall)
    who: tuple[Span, ...] = (
        (submitted, "text"),
        text(f" by {_who(given.caller, given.os_user or 'unknown user')}", "muted", 100),
    )
    if started != submitted:
        who = (*who, ("  job started ", "muted"), (started, "text"))
    for name, at in ends:
        if at is not None:
            late = "danger" if at - now.wall < 5 * MINUTE else "text"
            who = (*who, (f"  {name}", "muted"), (words.clock(at, now.wall), late))
    lines.append(_pair("submitted", *who))
    if given.label:
        lines.append(_pair("label", text(given.label, "text", MAX_VALUE)))
    if operation.result is not None:
        sure = "" if operation.result.validated else ", not validated"
        kinds = f" ({', '.join(operation.result.qualifiers)})" if operation.result.qualifiers else ""
        lines.append(_pair("result", text(f"permits {operation.result.permits}{sure}{kinds}", "good", MAX_VALUE)))
    return lines


def _who(caller: str | None, os_user: str) -> str:
    return f"{caller} ({os_user})" if caller else os_user
