"""One audit event: what was decided, and why.

Job: the fields of `audit show --json`. Must not know: sealing, chaining, storage.
"""

from __future__ import annotations

import msgspec

from pollcore.facts.instant import Instant
from pollcore.facts.names import DelaySource, EventName


class AuditEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A1. Times are Instants; *state_before* and *state* are provider texts, raw: made harmless when shown."""

    at: Instant
    event: EventName
    operation_id: str | None = None
    state_before: str | None = None
    state: str | None = None
    http: int | None = None
    fault: str | None = None
    request_id: str | None = None
    planned_at: Instant | None = None
    sent_at: Instant | None = None
    delay_source: DelaySource | None = None
    next_poll_at: Instant | None = None
    retry_after: str | None = None
    """Guidance as it was obeyed: `Retry-After 120`."""
    requests_used: int | None = None
    max_requests: int | None = None
    deadline_at: Instant | None = None
    decision: str | None = None
    reason: str | None = None
    detail: str | None = None
    operator: str | None = None
    caller: str | None = None
    text: str | None = None
    """Free text: a human's reason, a job id, an explanation."""
    notes: tuple[str, ...] = ()
