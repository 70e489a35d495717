"""The leave that a request needs: found, or asked for.

Job: (operation, request, credential) -> the unused approval or the session that this worker may use, or the question.
Must not know: secrets, sockets, who answers.
Source: spec G6, G7, X7, O7; invariants.md I14.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from pollcore import decide, outcome
from pollcore.contract import Contract
from pollcore.escalation import Approval, approval_needed, call_digest
from pollcore.escalation.approvals import STATUS, grant_is_usable, session_is_usable, stricter
from pollcore.facts import (
    AuditEvent,
    BootMs,
    CallGrant,
    ContractUse,
    EventName,
    Moment,
    Operation,
    Request,
    Session,
    StopReason,
    clock_time,
)
from pollcore.grants import open_question
from pollcore.ports import Chance, CredentialInfo, Store, Write

RUN_ENDED: Final = "the run ended"
SESSIONS_MS: Final = 1_000
"""How old a look at sessions may be; the claim counts them exactly."""


class Leave(msgspec.Struct, frozen=True):
    """What permits one request; neither: none is needed."""

    approval: CallGrant | None = None
    session: Session | None = None


class Elsewhere(msgspec.Struct, frozen=True):
    """Another run of the core that lives has a session for this credential: the operation is left to it."""


NOT_NEEDED: Final = Leave()


class Leaves:
    """What one worker (*owner*) may use, as the store has it."""

    def __init__(self, store: Store, chance: Chance, owner: str) -> None:
        self._store = store
        self._chance = chance
        self._owner = owner
        self._sessions: Sequence[Session] = ()
        self._alive: frozenset[str] = frozenset()
        self._looked: BootMs | None = None
        self.asked = False
        """A question was made since somebody last looked: the time of questions is to be looked at."""
        self.has_session = False
        """This worker used a session: it ends with the run."""

    def forget(self) -> None:
        """A claim was refused: look at the sessions anew."""
        self._looked = None

    async def end_sessions(self, now: Moment) -> None:
        """G6: a session ends with the run that it was granted to. Raises StoreUnusable; nobody else may use it then."""
        if not self.has_session:
            return
        detail = f"sessions of {self._owner}"
        event = AuditEvent(at=now.wall, event=EventName.SESSION_ENDED, detail=detail, text=RUN_ENDED)
        await self._store.end_sessions(now, RUN_ENDED, owner=self._owner, event=event)

    async def of(
        self,
        operation: Operation,
        contract: Contract,
        request: Request,
        info: CredentialInfo | None,
        use: ContractUse | None,
        now: Moment,
    ) -> Leave | Elsewhere | Write:
        """The leave for *request*, or the write that asks for one. *info*: of the credential that goes with it."""
        needed = approval_needed(info.mode if info is not None else None, contract.policy.least_mode, use)
        if needed is Approval.NONE:
            return NOT_NEEDED
        if needed is Approval.SESSION and info is not None:
            found = await self._session(info, now)
            if found is not None:
                return found
        digest = call_digest(operation, request, purpose=STATUS, binding=info.binding if info is not None else None)
        granted = await self._store.approval(operation.operation_id)
        if granted is not None and grant_is_usable(granted, digest, now):
            return Leave(approval=granted)
        return self._ask(operation, contract, info, needed, granted, digest, now)

    async def _session(self, info: CredentialInfo, now: Moment) -> Leave | Elsewhere | None:
        if self._looked is None or not 0 <= now.boot - self._looked < SESSIONS_MS:
            self._sessions = await self._store.sessions()
            if any(one.owner != self._owner for one in self._sessions):
                self._alive = frozenset(w.owner for w in await self._store.workers() if w.is_alive(now))
            self._looked = now.boot
        ours = [
            one
            for one in self._sessions
            if one.credential == info.name and one.binding == info.binding and session_is_usable(one, now)
        ]
        for one in ours:
            if one.owner == self._owner:
                self.has_session = True
                return Leave(session=one)
        return Elsewhere() if any(one.owner in self._alive for one in ours) else None

    def _ask(
        self,
        operation: Operation,
        contract: Contract,
        info: CredentialInfo | None,
        needed: Approval,
        granted: CallGrant | None,
        digest: str,
        now: Moment,
    ) -> Write:
        """Nothing is sent for this operation before an operator approved it; the deadline runs (G7)."""
        self.asked = True
        session = needed is Approval.SESSION
        reason = StopReason.SESSION_APPROVAL if session else StopReason.CALL_APPROVAL
        mode = stricter(info.mode, contract.policy.least_mode).value if info is not None else None
        text = (
            f"credential {operation.credential} asks for approval {mode}"
            if mode not in (None, "standing")
            else "each status request under this contract is an action"
        )
        cause = f"{reason.value}:{operation.credential}:{self._owner}" if session else None
        stop = decide.stop(operation, reason, explanation=text, notes=_unused(granted, digest))
        after = outcome.after_stop(operation, stop, now=now)
        question = open_question(
            after,
            new_id=f"esc-{self._chance.token(6)}",
            reason=reason,
            detail=None,
            now=now,
            cause=cause or stop.cause,
            asked_by=self._owner if session else None,
        )
        return Write(
            after=after,
            fence_change=operation.change,
            events=outcome.stop_events(operation, after, stop, now=now),
            open_question=question,
        )


def _unused(granted: CallGrant | None, digest: str) -> tuple[str, ...]:
    """Why an approval that was given was not used (it lets nothing out any more)."""
    if granted is None:
        return ()
    why = "it lapsed" if granted.digest == digest else "what it was given for moved"
    return (f"the approval of {clock_time(granted.granted_at)} was not used: {why}",)
