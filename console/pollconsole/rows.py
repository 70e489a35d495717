"""One operation -> the cells of its row, at one moment.

Job: pure: record and clock -> short texts with roles. Must not know: widgets, colours, which columns there are, where
rows come from. Countdowns are computed when painted, so a row that stands still still counts down.

Source: spec V1 (state, next request, time left, requests, failures and rate-limit answers used of allowed), S1.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from rich.cells import cell_len

from pollconsole import short_words, words
from pollconsole.draw import Span, fit
from pollconsole.due import PASSED, next_at, time_left
from pollconsole.row_columns import Column
from pollconsole.safe import safe
from pollcore.facts import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    DelaySource,
    Moment,
    Operation,
    Status,
    clock_time,
    lost_actions,
)

LOW_PART: Final = 0.10
"""Under this part of a budget left, the row says so."""
MAX_CELL: Final = 60
GLYPH: Final = 2
"""Cells of a status's glyph and its space."""

STATUS_ROLE: Final[dict[Status, str]] = {
    Status.WAITING: "calm",
    Status.HELD: "held",
    Status.AWAITING_APPROVAL: "attention",
    Status.ESCALATED: "attention",
    Status.SUCCEEDED: "good",
    Status.FAILED: "failed",
    Status.CANCELLED: "muted",
    Status.EXPIRED: "failed",
    Status.CLOSED: "faint",
}
SOURCE_WORDS: Final[dict[DelaySource, str]] = {
    DelaySource.PROVIDER_RETRY_AFTER: "provider says Retry-After",
    DelaySource.PROVIDER_POLL_HINT: "provider's hint",
    DelaySource.LOCAL_BACKOFF: "local backoff",
    DelaySource.MANUAL_EXTENSION: "after a grant",
    DelaySource.SHARED_COOLDOWN: "shared cool-down",
    DelaySource.ORIGIN_DOWN: "origin is down, one asks for all",
    DelaySource.PAUSED: "paused by hand",
    DelaySource.CAPPED: "the provider's caps are full",
    DelaySource.TOKEN_PENDING: "a token is being bought",
}


def cell(key: str, operation: Operation, now: Moment, asked: bool, polled: bool = True) -> Span:
    """The text and role of one cell. *asked*: an open question waits for a decision on this operation; *polled*: some
    core polls."""
    match key:
        case "operation":
            return safe(operation.operation_id, MAX_CELL), "attention-text" if asked else "text"
        case "provider":
            return safe(operation.submitted.provider, MAX_CELL), "muted"
        case "status":
            return status_span(operation, asked)
        case "state":
            state = operation.last_known_state
            return (words.NOTHING, "faint") if state is None else (safe(state, MAX_CELL), "text")
        case "next":
            return next_span(operation, now, polled=polled)
        case "left":
            return left_span(operation, now)
        case "requests":
            return budget_span(operation.status_requests_used, operation.max_status_requests)
        case "failures":
            return budget_span(operation.transport_failures_used, operation.max_transport_failures)
        case "limited":
            return budget_span(operation.rate_limited_used, operation.max_rate_limited)
        case _:
            return note_span(operation, now, asked)


def row(
    operation: Operation, now: Moment, columns: tuple[Column, ...], *, asked: bool, polled: bool = True
) -> tuple[Span, ...]:
    """All cells of one row, padded to their columns' widths."""
    cells = []
    for column in columns:
        words_, role = cell(column.key, operation, now, asked, polled)
        if column.key == "status":
            words_ = words_[:GLYPH] + short_words.status(operation.status)
        elif column.key == "note" and cell_len(words_) > column.width:
            words_, role = note_span(operation, now, asked, short=True)
        cells.append((fit(words_, column.width, right=column.right), role))
    return tuple(cells)


def status_span(operation: Operation, asked: bool) -> Span:
    """Glyph, word and role. An end whose card is open keeps its word and gets the mark of what needs a person."""
    glyph, word = words.STATUS[operation.status]
    if asked and operation.status not in words.NEEDS_A_HUMAN:
        return f"! {word}", "attention"
    return f"{glyph} {word}", STATUS_ROLE[operation.status]


def next_span(operation: Operation, now: Moment, *, polled: bool = True) -> Span:
    """When the next request goes out; a held one shows when the hold ends. Not *polled*: no core lives, so nothing
    whose time has passed goes out now."""
    at = next_at(operation)
    if at is None:
        return words.NOTHING, "faint"
    left = at - now.wall
    if left <= 0 and not polled:
        return words.NOTHING, "faint"
    if left <= 0:
        return ("now", "calm") if operation.lease_owner is None else ("asking", "calm")
    return short_countdown(left), "held" if operation.status is Status.HELD else "text"


def left_span(operation: Operation, now: Moment) -> Span:
    """Time until the deadline or `useful_until`, whichever is nearer."""
    if operation.status.is_end:
        return words.NOTHING, "faint"
    left = time_left(operation, now)
    if left <= 0:
        return PASSED, "danger"
    whole = max(1, operation.deadline_at - operation.started_at)
    if left < whole * LOW_PART:
        return countdown(left) + "!", "danger"
    return countdown(left), "text"


def budget_span(used: int, allowed: int) -> Span:
    """`7/12`; nearly used up is marked, used up is marked and red."""
    if allowed <= 0:
        return words.NOTHING, "faint"
    if used >= allowed:
        return words.of(used, allowed) + "!", "danger"
    if is_low(used, allowed):
        return words.of(used, allowed) + "!", "attention"
    return words.of(used, allowed), "text" if used else "muted"


def is_low(used: int, allowed: int) -> bool:
    """Whether under a tenth is left."""
    return allowed > 0 and allowed - used < allowed * LOW_PART


class LowFrom(NamedTuple):
    """When a live wait begins to count as low: *now* already, else after either clock's instant."""

    now: bool
    wall: float
    boot: float
    boot_id: str

    def at(self, now: Moment) -> bool:
        """Whether it does."""
        return self.now or now.wall > self.wall or (now.boot > self.boot and now.boot_id == self.boot_id)


def low_from(operation: Operation) -> LowFrom | None:
    """A live wait with under a tenth of its time or requests left, or one failure, is low; None: it has ended."""
    if operation.status.is_end:
        return None
    part = max(1, operation.deadline_at - operation.started_at) * LOW_PART
    useful = operation.useful_until
    ends = operation.deadline_at if useful is None else min(operation.deadline_at, useful)
    spent = (
        is_low(operation.status_requests_used, operation.max_status_requests)
        or is_low(operation.transport_failures_used, operation.max_transport_failures)
        or is_low(operation.rate_limited_used, operation.max_rate_limited)
    )
    return LowFrom(spent, ends - part, operation.deadline_boot - part, operation.boot_id)


def note_spans(operation: Operation, now: Moment, asked: bool, did: str | None) -> tuple[Span, ...]:
    """Why it stands where it stands, then what a decision of this console did last; neither hides the other."""
    note = note_span(operation, now, asked)
    if did is None:
        return (note,)
    if not note[0] or (operation.status is Status.WAITING and note[1] == "muted"):
        return ((did, "good"),)  # where it merely waits on, who set its delay is told by the detail
    return note, (f"; decided: {did}", "good")


def note_span(operation: Operation, now: Moment, asked: bool, *, short: bool = False) -> Span:
    """Why it stands where it stands, in a few words. *short*: by the short forms of reason and detail."""
    reason, detail = operation.stop_reason, operation.stop_detail
    if reason is not None and (asked or operation.status.is_end):
        name = short_words.REASON[reason] if short else reason.value
        what = "" if detail is None else f": {short_words.detail(detail) if short else detail.value}"
        return f"{name}{what}", "attention" if asked else "muted"
    if asked:
        return "a question waits", "attention"
    if operation.status is Status.HELD and operation.hold_until is not None:
        return f"held until {words.clock(operation.hold_until, now.wall)}", "held"
    if operation.status is Status.SUCCEEDED and operation.result is not None:
        return f"permits {safe(operation.result.permits, MAX_CELL)}", "good"
    lost = () if operation.status.is_end else lost_actions(operation)
    if lost:
        return lost[-1].partition(",")[0] if short else lost[-1], "attention"
    if operation.last_fault is not None:
        return f"last request: {safe(operation.last_fault, MAX_CELL)}", "danger"
    if operation.delay_source is not None and operation.status is Status.WAITING:
        return SOURCE_WORDS[operation.delay_source], "muted"
    return "", "muted"


def http_words(operation: Operation, now: Moment) -> str:
    """`200 at 10:58:00`: did the provider answer, with what, when (one of the two facts of S1)."""
    http, fault = operation.last_http, operation.last_fault
    fault_at = operation.last_fault_at
    if fault is not None and fault_at is not None and (http is None or fault_at >= http.answered_at):
        return f"{safe(fault, MAX_CELL)} at {clock_time(fault_at)}"
    if http is None:
        return "none yet"
    return f"{http.code} at {words.clock(http.answered_at, now.wall)}"


def countdown(ms: int) -> str:
    """`0:12`, `1:04:10`, `2d 4h`; rounded up, so that zero means now."""
    seconds = -(-ms // SECOND)
    if seconds * SECOND >= DAY:
        return f"{ms // DAY}d {ms % DAY // HOUR}h"
    hours, rest = divmod(seconds, HOUR // SECOND)
    minutes, seconds = divmod(rest, MINUTE // SECOND)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def short_countdown(ms: int) -> str:
    """As `countdown`, in six cells: from an hour on without seconds, `1h 04m`."""
    if ms >= DAY or ms <= HOUR - SECOND:
        return countdown(ms)
    ms = max(ms, HOUR)  # the last second before it is rounded up
    return f"{ms // HOUR}h {ms % HOUR // MINUTE:02d}m" if ms < 10 * HOUR else f"{ms // HOUR}h{ms % HOUR // MINUTE:02d}m"


def bar(used: float, whole: float, cells: int) -> tuple[Span, Span]:
    """`####----`: what is used of *whole*."""
    part = 1.0 if whole <= 0 else max(0.0, min(1.0, used / whole))
    full = round(part * cells)
    return ("#" * full, "bar-full"), ("-" * (cells - full), "bar-empty")
