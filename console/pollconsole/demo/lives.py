"""What a job of the demo answers, request by request: replies, stages, lives.

Job: the vocabulary in which cases are written. Must not know: HTTP, providers' field names, operations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """One answer. Spans in seconds of demo time, but for *slow_s*."""

    state: str | None = None
    """In the provider's own words; None: the answer names no state."""
    status: int = 200
    fields: Mapping[str, Any] = {}
    """`message`, `error`, `result`, and others; put where the provider has them."""
    ahead: Mapping[str, int] = {}
    """Fields that hold an ISO time so many seconds from now."""
    headers: Mapping[str, str] = {}
    retry_date: int | None = None
    """`Retry-After` as an HTTP-date so many seconds from now."""
    date_off: int = 0
    """The `Date` header is wrong by so many seconds."""
    job_id: str | None = None
    """Names another job than was asked for."""
    raw: str | None = None
    """This body instead, byte for byte."""
    media: str = "application/json"
    slow_s: float = 0.0
    """Real seconds before the answer: the transport's limits are real, too."""
    cut: bool = False
    """The connection ends in the middle of the body."""
    not_http: bool = False
    """What comes back is no HTTP."""


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """One reply that lasts for *asks* answers, or until the job is *until_s* old (demo time); neither: for ever."""

    reply: Reply
    asks: int | None = None
    until_s: float | None = None


Life = tuple[Stage, ...]


def each(*replies: Reply) -> Life:
    """One answer after the other; the last one stays."""
    return (*(Stage(reply=reply, asks=1) for reply in replies[:-1]), Stage(reply=replies[-1]))


def timed(*spans: tuple[str, float], end: Reply) -> Life:
    """States that last until the job is so many seconds old, whoever asks; then *end*."""
    return (*(Stage(reply=Reply(state=state), until_s=until) for state, until in spans), Stage(reply=end))


def after_cancel(cancelling: str, cancelled: str) -> Life:
    """What a job says once its cancel was taken: not at once."""
    return each(Reply(state=cancelling), Reply(state=cancelled))
