"""Seeded bugs of leave to use a credential: approvals, sessions, the time of questions.

Job: break one thing each. Must not know: how a bug is found. A survivor means a missing invariant.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

from pollcore.actions import uses
from pollcore.adapters.store import approvals as rows
from pollcore.adapters.store.transaction import Transaction
from pollcore.controller import asked, leaves
from pollcore.controller.leaves import Leave, Leaves
from pollcore.escalation import Approval, approvals
from pollcore.facts import ContractUse, CredentialMode, Operation, Request
from tests.sim.mutant import always, mutant, patched_sql


def _ignores(mode: CredentialMode) -> Any:
    """`approval_needed` that takes *mode* for standing."""

    def needed(given: Any, least: str, use: ContractUse | None, purpose: str = "status") -> Approval:
        given = CredentialMode.STANDING if given is mode else given
        return approvals.approval_needed(given, "standing" if least == mode else least, use, purpose)

    return needed


@mutant(150)
def a_per_call_credential_is_used_unasked() -> Iterator[None]:
    needed = _ignores(CredentialMode.PER_CALL)
    with mock.patch.object(leaves, "approval_needed", needed), mock.patch.object(asked, "approval_needed", needed):
        yield


@mutant(60)
def a_session_credential_is_used_unasked() -> Iterator[None]:
    needed = _ignores(CredentialMode.PER_SESSION)
    with mock.patch.object(leaves, "approval_needed", needed), mock.patch.object(asked, "approval_needed", needed):
        yield


@mutant(120)
def an_action_is_sent_unasked() -> Iterator[None]:
    def needed(mode: Any, least: str, use: Any, purpose: str = "status") -> Approval:
        return approvals.approval_needed(mode, least, None, purpose)

    with mock.patch.object(leaves, "approval_needed", needed), mock.patch.object(asked, "approval_needed", needed):
        yield


@mutant(120)
def an_approval_is_not_used_up() -> Iterator[None]:
    """Bound to nothing that moves, and left there: it serves the next request, too."""

    def digest(operation: Operation, request: Request, *, purpose: str, binding: str | None) -> str:
        return f"{operation.operation_id} {purpose}"

    def use(tx: Transaction, op: int, grant: Any, used_for: str) -> bool:
        return True

    with (
        mock.patch.object(leaves, "call_digest", digest),
        mock.patch.object(uses, "call_digest", digest),
        mock.patch.object(rows, "use", use),
    ):
        yield


@mutant(120)
def a_session_is_not_counted() -> Iterator[None]:
    with mock.patch.object(rows, "count", always(True)):
        yield


@mutant(400)
def a_session_outlives_its_time() -> Iterator[None]:
    def usable(session: Any, now: Any) -> bool:
        return bool(session.calls_left > 0)

    with (
        mock.patch.object(leaves, "session_is_usable", usable),
        patched_sql(rows, "_COUNT", ("AND until>?6 AND (boot<>?7 OR until_boot>?8)", "AND (?6+?7+?8) IS NOT NULL")),
    ):
        yield


@mutant(120)
def a_session_is_used_by_every_run() -> Iterator[None]:
    real = Leaves._session

    async def session(self: Leaves, info: Any, now: Any) -> Any:
        for one in await self._store.sessions():
            if one.credential == info.name and approvals.session_is_usable(one, now):
                return Leave(session=one)
        return await real(self, info, now)

    with (
        mock.patch.object(Leaves, "_session", session),
        patched_sql(
            rows, "_COUNT", (" AND owner=?4", " AND ?4 IS NOT NULL"), (" AND binding=?5", " AND ?5 IS NOT NULL")
        ),
    ):
        yield


@mutant(400)
def an_ended_session_goes_on() -> Iterator[None]:
    real = rows.sessions

    def sessions(conn: Any, known: Any) -> Any:
        conn.execute("SELECT 1")
        return real(_Ended(conn), known)

    with (
        mock.patch.object(rows, "sessions", sessions),
        patched_sql(rows, "_COUNT", ("AND ended_at IS NULL AND", "AND")),
    ):
        yield


class _Ended:
    """A connection to which an ended session looks like any other."""

    def __init__(self, conn: Any) -> None:
        self._conn = conn

    def execute(self, sql: str, values: Any = ()) -> Any:
        return self._conn.execute(sql.replace("WHERE ended_at IS NULL", "WHERE 1"), values)


@mutant(200)
def a_denial_lets_the_call_out() -> Iterator[None]:
    """The leave is made for whatever was pressed."""
    real = Leaves.of

    async def of(self: Leaves, operation: Operation, contract: Any, request: Request, *rest: Any) -> Any:
        found = await real(self, operation, contract, request, *rest)
        denied = [
            q for q in await self._store.questions(operation.operation_id, open_only=False) if q.decision == "deny"
        ]
        return Leave() if denied else found

    with mock.patch.object(Leaves, "of", of):
        yield
