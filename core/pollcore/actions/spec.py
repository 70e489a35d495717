"""What is handed over: the fields of a submission, as a command, a file or a script gives them.

Job: the shape. Must not know: how it is checked or stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from pollcore.facts import Answer, Instant


class SubmitSpec(msgspec.Struct, kw_only=True):
    """What is handed over; None: not said. Times are Instants, spans ms, numbers as given (checked here)."""

    provider: str
    job_id: str | None = None
    params: Mapping[str, Any] = {}
    status_url: str | None = None
    deadline_at: Instant | None = None
    deadline_ms: int | None = None
    max_status_requests: int | None = None
    max_transport_failures: int | None = None
    max_rate_limited: int | None = None
    useful_until: Instant | None = None
    operation_id: str | None = None
    label: str | None = None
    request_fingerprint: str | None = None
    idempotency_key: str | None = None
    credential: str | None = None
    account: str | None = None
    started_at: Instant | None = None
    caller: str | None = None
    expected_states: tuple[str, ...] = ()
    response: Answer | None = None
    response_url: str | None = None
