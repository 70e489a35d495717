"""Sessions of credentials: which can still be used, and ending them.

Job: list and end. Ending lowers authority, so that anyone may do it (G5). Must not know: who grants one, screens.
Source: spec G5, G6.
"""

from __future__ import annotations

import msgspec

from pollcore.actions.desk import Desk
from pollcore.escalation.approvals import session_is_usable
from pollcore.facts import AuditEvent, EventName, Instant


class LiveSession(msgspec.Struct, frozen=True, kw_only=True):
    """One session that can still be used."""

    session_id: str
    credential: str
    owner: str
    """The run of the core that it was granted to."""
    started_at: Instant
    until: Instant
    calls: int
    calls_used: int
    granted_by: str

    @property
    def calls_left(self) -> int:
        """Requests that may still go out under it."""
        return self.calls - self.calls_used


async def live(desk: Desk) -> tuple[LiveSession, ...]:
    """Sessions that can still be used, oldest first."""
    found = await desk.store.sessions()
    if not found:
        return ()
    now = desk.clock.now()
    alive = {worker.owner for worker in await desk.store.workers() if worker.is_alive(now)}
    return tuple(
        LiveSession(
            session_id=one.session_id,
            credential=one.credential,
            owner=one.owner,
            started_at=one.started_at,
            until=one.until,
            calls=one.calls,
            calls_used=one.used,
            granted_by=one.granted_by,
        )
        for one in found
        if one.owner in alive and session_is_usable(one, now)
    )


async def end(desk: Desk, credential: str, because: str, by: str) -> int:
    """End all sessions of *credential*, of every run, for good; its next request asks. How many could be used."""
    now = desk.clock.now()
    event = AuditEvent(
        at=now.wall, event=EventName.SESSION_ENDED, caller=by, detail=f"sessions of {credential}", text=because
    )
    return await desk.store.end_sessions(now, f"ended by {by}", credential=credential, event=event)
