"""Open questions about the use of credentials, looked at while the loop runs.

Job: start and stop their time with the consoles, end those whose time is over, take back those that nobody has to
answer any more. Must not know: cards, keys, when anything is polled.
Source: spec G6, G7, E7. Runs with each heartbeat and when something happened while a question is open; without one it
costs one read a heartbeat.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from pollcore import grants
from pollcore.controller.contracts import Contracts
from pollcore.escalation import Approval, approval_needed
from pollcore.escalation.approvals import ANSWER_MS, CONSOLES, Spent, answer_left, console_is_open, session_is_usable
from pollcore.facts import (
    ContractError,
    ContractUse,
    Escalation,
    Instant,
    Moment,
    Operation,
    Session,
    Status,
    StopReason,
)
from pollcore.grants import Applied
from pollcore.ports import Chance, CredentialInfo, Credentials, Store, Window, Worker, Write

REASONS: Final = (StopReason.CALL_APPROVAL, StopReason.SESSION_APPROVAL)
MAX_LOOKED_AT: Final = 10_000
"""Questions of one look, those asked first."""
DRIFT_MS: Final = 2_000
"""A shown time is corrected when it is wrong by more (a console was closed and opened between two looks)."""


class _Known(msgspec.Struct, frozen=True):
    """What one look needs besides the questions; read once."""

    workers: Sequence[Worker]
    sessions: Sequence[Session]
    infos: Mapping[str, CredentialInfo]
    screens: Sequence[tuple[Instant, Instant]]

    def consoles(self) -> list[tuple[Instant, Instant]]:
        """Start and newest heartbeat of each console: of those that poll, and of those that another run polls for."""
        return [*self.screens, *((w.started_at, w.beat_at) for w in self.workers if w.kind in CONSOLES)]


class Asked:
    """The questions of one store, as one worker looks after them; several may, each write is fenced."""

    def __init__(
        self, store: Store, contracts: Contracts, credentials: Credentials, chance: Chance, owner: str
    ) -> None:
        self._store = store
        self._contracts = contracts
        self._credentials = credentials
        self._chance = chance
        self._owner = owner
        self.open = 0
        """Questions that were open at the last look."""
        self.next_at: Instant | None = None
        """When the first of them expires."""
        self.wanted = False
        """Look with the next turn: a heartbeat, or something happened beside a question."""
        self._spent: dict[str, Spent] = {}
        """By question: its time at the last look, for the boot clock; at most MAX_LOOKED_AT."""

    async def look_if_wanted(self, now: Moment) -> bool:
        """`look`, where it is wanted or a question expires; True: an operation may be due now. Raises StoreUnusable."""
        if not (self.wanted or (self.next_at is not None and self.next_at <= now.wall)):
            return False
        self.wanted = False
        return await self.look(now)

    async def look(self, now: Moment) -> bool:
        """One look; True: an operation may be due now. Raises StoreUnusable."""
        pairs = await self._store.asked(reasons=REASONS, limit=MAX_LOOKED_AT)
        self.open, self.next_at = len(pairs), None
        if not pairs:
            self._spent = {}
            return False
        session = any(question.reason is StopReason.SESSION_APPROVAL for _, question in pairs)
        known = _Known(
            await self._store.workers(),
            await self._store.sessions() if session else (),
            {info.name: info for info in await self._credentials.known()},
            await self._store.screens(),
        )
        windows, writes, went_on, spent = [], [], False, dict[str, Spent]()
        runs = console_is_open([beat for _, beat in known.consoles()], now.wall)
        for operation, question in pairs:
            why = await self._not_needed(operation, question, known, now)
            if why is not None:
                writes.append(_write(operation, grants.take_back(operation, question, now=now, why=why)))
                went_on = True
                continue
            if question.reason is not StopReason.CALL_APPROVAL:
                continue
            left = self._left(question, known, now)
            if left <= 0:
                new_id = f"esc-{self._chance.token(6)}"
                writes.append(_write(operation, grants.expire(operation, question, now=now, new_id=new_id)))
                self.next_at = now.wall  # look again: the new question's time starts
                continue
            spent[question.escalation_id] = Spent(now, left, runs)
            windows += self._window(question, left, runs, now)
        self._spent = spent
        if windows:
            await self._store.set_windows(now, windows)
        if writes:
            await self._store.commit_each(now, writes)
        return went_on

    def _left(self, question: Escalation, known: _Known, now: Moment) -> int:
        """G7: a wall clock that was set back must not prolong a question: whichever clock says it is over counts."""
        left = answer_left(question.asked_at, known.consoles(), now.wall)
        if question.left_ms is not None:
            left = min(left, question.left_ms)
        before = self._spent.get(question.escalation_id)
        return left if before is None else min(left, before.left_at(now))

    def _window(self, question: Escalation, left: int, runs: bool, now: Moment) -> list[Window]:
        """The time of a question runs while a console is open, and stands still while none is."""
        shown = question.expires_at
        if not runs:
            if shown is None and (ANSWER_MS if question.left_ms is None else question.left_ms) == left:
                return []
            return [Window(escalation_id=question.escalation_id, before=shown, expires_at=None, left_ms=left)]
        ends = Instant(now.wall + left)
        if shown is not None and abs(ends - shown) <= DRIFT_MS:
            ends = shown
        self.next_at = ends if self.next_at is None else min(self.next_at, ends)
        if ends == shown:
            return []
        return [Window(escalation_id=question.escalation_id, before=shown, expires_at=ends, left_ms=None)]

    async def _not_needed(self, operation: Operation, question: Escalation, known: _Known, now: Moment) -> str | None:
        """Why nobody has to answer *question* any more; None: it stands. Only of a wait: a command asks by itself."""
        if operation.status is not Status.AWAITING_APPROVAL:
            return None
        try:
            contract = await self._contracts.of(operation.contract_digest)
        except ContractError:
            return None
        use, info = await self._contracts.use(contract), known.infos.get(operation.credential or "")
        if operation.credential is not None and info is None and use is not ContractUse.ACTION:
            return f"credential {operation.credential} is not stored any more"
        needed = approval_needed(info.mode if info is not None else None, contract.policy.least_mode, use)
        if needed is Approval.NONE:
            return "it is not asked for any more"
        if question.reason is StopReason.CALL_APPROVAL or info is None:
            return None
        if needed is Approval.CALL:
            return "each call is asked for now"
        for one in known.sessions:
            if (one.credential, one.binding, one.owner) != (info.name, info.binding, question.asked_by):
                continue
            if session_is_usable(one, now) and one.owner == self._owner:
                return f"session {one.session_id} covers it"
        alive = any(worker.owner == question.asked_by and worker.is_alive(now) for worker in known.workers)
        return None if alive or question.asked_by == self._owner else f"the run {question.asked_by} has ended"


def _write(operation: Operation, applied: Applied) -> Write:
    return Write(
        after=applied.operation or operation,
        fence_change=operation.change,
        release_lease=False,
        events=applied.events,
        open_question=applied.opened,
        close_question=applied.closed,
    )
