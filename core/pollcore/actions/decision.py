"""One decision as one conditional write, on one card or on the card of many.

Job: put what a decision changed, the grant that it uses up and the leave that it gives into one write. Must not know:
how it was decided, who pressed the keys.
Source: spec G4, E10.
"""

from __future__ import annotations

from pollcore.facts import ActionRecord, CallGrant, Grant, Operation, Session
from pollcore.grants import Applied
from pollcore.ports import Write


def decision_write(
    applied: Applied,
    before: Operation,
    shown_version: int,
    grant: Grant | None,
    call: CallGrant | None,
    session: Session | None,
    action: ActionRecord | None = None,
) -> Write:
    """Taken whole or not at all: only while *before* is unchanged and still has the version that was shown."""
    return Write(
        after=applied.operation or before,
        fence_change=before.change,
        fence_version=shown_version,
        release_lease=False,
        events=applied.events,
        open_question=applied.opened,
        close_question=applied.closed,
        grant=grant,
        contract_use=applied.use,
        action=action,
        approval=call,
        session=session,
    )
