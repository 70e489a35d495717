"""Invariants of leave to use a credential: I14, G4, G6, G7, X7.

Job: look at every approval and session in the commit that changed one, and at the leave behind each new intent.
Must not know: how the code under test finds or asks for leave.
"""

from __future__ import annotations

import json
from typing import Any, Final

from pollcore.facts import CredentialMode
from tests.sim import contracts
from tests.sim.ledger import Ledger, Row

_APPROVALS: Final = (
    "SELECT grant_id, operation, digest, number, purpose, credential, granted_at, expires_at, used_at, used_for "
    "FROM approval ORDER BY rowid"
)
_SESSIONS: Final = (
    "SELECT session_id, credential, owner, binding, started_at, until, calls, used, ended_at, grant_id FROM session "
    "ORDER BY rowid"
)
_COVERED: Final = {"approve_once": "call approved", "approve_session": "session approved", "deny": "use denied"}
ORDER: Final = (CredentialMode.STANDING, CredentialMode.PER_SESSION, CredentialMode.PER_CALL)


class Leaves(Ledger):
    """What is checked of approvals and sessions."""

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self._approvals: dict[str, tuple[Any, ...]] = {}
        self._sessions: dict[str, tuple[Any, ...]] = {}
        self._decided: set[str] = set()

    def _leaves_of(self, intents: list[Any], rows: dict[int, Any]) -> None:
        if not self._world.plan.gated:
            return
        approvals = {row[0]: row for row in self._world.sql.execute(_APPROVALS).fetchall()}
        sessions = {row[0]: row for row in self._world.sql.execute(_SESSIONS).fetchall()}
        used = self._used_approvals(approvals)
        counted = self._counted(sessions)
        for _, op, n, _, at, _ in intents:
            need, row = self._need(rows[op]), rows[op]
            by_call = used.pop((op, f"request {n}"), None)
            if by_call is not None:
                self._bound(row, by_call, n, at)
            elif need is CredentialMode.PER_CALL:
                self._no("I14", f"{row.id}: request {n} went out without an approval of its own")
            elif need is CredentialMode.PER_SESSION:
                owner = self._owner(row.lease_owner)
                found = [k for k, left in counted.items() if left and k[:2] == (row.credential, owner)]
                if not found:
                    self._no("G6", f"{row.id}: request {n} of {owner} was counted on no session of {row.credential}")
                else:
                    counted[found[0]] -= 1
        for (op, what), grant in used.items():
            if what.startswith("request"):
                self._no("I14", f"{grant}: used up for {what} of {Row(*self._rows[op]).id}, which was not charged")
        if any(counted.values()):
            self._no("G6", f"a session was counted for more requests than were charged: {counted}")
        self._approvals, self._sessions = approvals, sessions
        self._told()

    def _need(self, row: Any) -> CredentialMode:
        """X7, G6: the strictest of the credential's mode, the contract's least mode, and an action."""
        variant = row.provider.partition("-")[0]
        said = contracts.GATED.get(variant, {})
        decided = self._world.sql.execute(
            "SELECT use FROM contract_use u JOIN contract c ON c.digest=u.digest WHERE c.no=?", (row.contract,)
        ).fetchone()
        if said.get("observation") == "action" or (decided is not None and decided[0] == "action"):
            return CredentialMode.PER_CALL
        if row.credential is None:
            return CredentialMode.STANDING
        mode: CredentialMode = self._world.keyring.infos[row.credential].mode
        return max(mode, CredentialMode(str(said.get("least_mode", "standing"))), key=ORDER.index)

    def _used_approvals(self, approvals: dict[str, tuple[Any, ...]]) -> dict[tuple[int, str], str]:
        """What was used up in this commit; each comes of a grant, none changes, none is used twice."""
        used: dict[tuple[int, str], str] = {}
        for name, row in approvals.items():
            old = self._approvals.get(name)
            if old == row:
                continue
            if old is None:
                kind = self._granted_kind(name)
                if kind not in ("approve_once", "cancel_at_provider", "resubmit"):
                    self._no("G2", f"approval {name} comes of {kind or 'no grant'}")
            elif old[:8] != row[:8] or old[8] is not None:
                self._no("I14", f"approval {name} changed from {old[2:]} to {row[2:]}")
            if row[8] is not None:
                if (row[1], row[9]) in used:
                    self._no("I14", f"two approvals were used up for {row[9]}")
                used[row[1], str(row[9])] = name
        return used

    def _bound(self, row: Any, name: str, n: int, at: int) -> None:
        """An approval serves the request that it was given for, before its own end."""
        found = self._world.sql.execute(
            "SELECT number, purpose, credential, expires_at, granted_at FROM approval WHERE grant_id=?", (name,)
        ).fetchone()
        number, purpose, credential, expires_at, granted_at = found
        if (number, purpose) != (n, "status"):
            self._no("I14", f"{row.id}: request {n} used the approval of {purpose} {number}")
        if credential not in (None, row.credential):
            self._no("I14", f"{row.id}: request {n} with {row.credential} used an approval for {credential}")
        if expires_at <= at:
            self._no("I14", f"{row.id}: request {n} at {at} used an approval that expired at {expires_at}")
        old = self._approvals.get(name)
        if old is None:
            self._no("I14", f"{row.id}: approval of {granted_at} was used in the commit that made it")

    def _counted(self, sessions: dict[str, tuple[Any, ...]]) -> dict[tuple[str, str, str], int]:
        """(credential, run, session) -> requests counted on it in this commit; bounds never move, ends are ends."""
        counted: dict[tuple[str, str, str], int] = {}
        now = self._world.acting_now().wall
        for name, row in sessions.items():
            old = self._sessions.get(name)
            if old == row:
                continue
            _, credential, owner, _, _, until, calls, used, ended_at, _ = row
            if old is None:
                if self._granted_kind(row[9]) != "approve_session" or used:
                    self._no("G2", f"session {name} comes of no grant, or was used before it began")
                continue
            if old[:7] != row[:7] or used < old[7] or (old[8] is not None and ended_at != old[8]):
                self._no("G6", f"session {name} changed from {old} to {row}")
            if used > calls:
                self._no("G6", f"session {name}: {used} of {calls} calls")
            if used > old[7]:
                counted[credential, owner, name] = used - old[7]
                if old[8] is not None:
                    self._no("G6", f"session {name} was used after its end")
                if now >= until:
                    self._no("G6", f"session {name} was used at {now}, it ended at {until}")
                if self._world.keyring.infos[credential].mode is CredentialMode.PER_CALL:
                    self._no("G6", f"session {name} was used for a credential that is asked for each call")
        return counted

    def _granted_kind(self, grant_id: str) -> str | None:
        row = self._world.sql.execute('SELECT body FROM "grant" WHERE grant_id=?', (grant_id,)).fetchone()
        return None if row is None else str(json.loads(row[0])["choice"]["kind"])

    def _told(self) -> None:
        """What this world met of all this, and G7: no grant on a question whose time was over."""
        found = self._world.sql.execute(
            "SELECT escalation_id, decision, decision_text, decided_at, expires_at FROM escalation "
            "WHERE decided_at IS NOT NULL AND reason IN ('call_approval', 'session_approval')"
        ).fetchall()
        if len(found) == len(self._decided):
            return
        for name, decision, text, decided_at, expires_at in found:
            if name in self._decided:
                continue
            self._decided.add(name)
            if decision in _COVERED:
                self._world.covered[_COVERED[decision]] += 1
            elif decision == "expired":
                self._world.covered[f"question expired {text}"] += 1
            if decision == "approve_once" and expires_at is not None and decided_at >= expires_at:
                self._no("G7", f"{name}: approved at {decided_at}, it expired at {expires_at}")
