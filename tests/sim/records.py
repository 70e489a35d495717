"""Invariants of records, questions and grants: I2, I3, I9-I12, I16, I17, A5, B6, E7, G4.

Job: look at each changed row, each grant, and the questions of changed rows. Must not know: requests and answers.
"""

from __future__ import annotations

import json
from typing import Any

from pollcore.facts import MINUTE, TRANSITIONS, Status
from tests.sim.ledger import ENDS, SLACK_MS, TTL_MS, Account, Ledger


class Records(Ledger):
    """What is checked of rows."""

    def _inserted(self, op: int, row: Any, now: Any) -> None:
        left = row.deadline_at - now.wall
        if not -SLACK_MS <= row.deadline_boot - now.boot - left <= SLACK_MS and not self._world.acting_late:
            self._no("B6", f"{row.id}: {left} ms are left, the boot clock got {row.deadline_boot - now.boot}")
        self._accounts[op] = Account(
            row.id,
            row.deadline_boot,
            row.boot,
            row.transport_failures_used,
            row.rate_limited_used,
            row.completed_polls,
        )

    # --- one changed row ----------------------------------------------------------------------------------------------

    def _row(self, op: int, old: Any, row: Any, grant: Any, now: Any) -> None:
        account = self._accounts[op]
        if old.status in ENDS and row.status != old.status:
            self._no("I9", f"{row.id}: {old.status} became {row.status}")
        if row.status != old.status and Status(row.status) not in TRANSITIONS[Status(old.status)]:
            self._no("I9", f"{row.id}: there is no way from {old.status} to {row.status}")
        if old.status in ENDS and row.status_requests_used != old.status_requests_used:
            self._no("I9", f"{row.id}: a request after its end")
        for name in ("version", "epoch", "status_requests_used", "transport_failures_used", "rate_limited_used",
                     "completed_polls", "extensions_used", "holds_used"):  # fmt: skip
            if getattr(row, name) < getattr(old, name):
                self._no("B2", f"{row.id}: {name} went from {getattr(old, name)} to {getattr(row, name)}")
        if row.lease_until is not None and (row.lease_until, row.lease_owner) != (old.lease_until, old.lease_owner):
            at = self._world.acting_now().wall
            if row.lease_until - at > max(TTL_MS, row.lease_ms or 0):
                self._no("I16", f"{row.id}: a lease of {row.lease_until - at} ms")
        self._limits(old, row, grant, account, now)
        if old.version == row.version and (old.status, old.contract, old.credential) != (
            row.status,
            row.contract,
            row.credential,
        ):
            self._no("G4", f"{row.id}: status, contract or credential changed under version {row.version}")
        if row.status == "escalated" and old.status != "escalated" and grant is None:
            self._reason(old, row, account)

    def _limits(self, old: Any, row: Any, grant: Any, account: Account, now: Any) -> None:
        """I3: limits are those of the submission plus what grants say, and nobody else writes them."""
        added = (0, 0, 0, 0)
        if grant is not None and grant["choice"]["kind"] != "approve_session":
            choice = grant["choice"]
            added = tuple(choice.get(k, 0) for k in ("minutes", "checks", "transport_failures", "rate_limited"))
        minutes, *counts = added
        names = ("max_status_requests", "max_transport_failures", "max_rate_limited")
        for name, count in zip(names, counts, strict=True):
            if getattr(row, name) != getattr(old, name) + count:
                self._no("I3", f"{row.id}: {name} {getattr(old, name)} -> {getattr(row, name)}, granted {count}")
        if row.status in ENDS:
            return
        if row.boot != account.boot:
            # boot times are counted anew from what the wall clock leaves, once a boot
            account.boot = row.boot
            account.deadline_boot = row.deadline_boot
            account.obligation = account.floor = 0
            if (
                row.deadline_boot - now.boot > old.deadline_at - now.wall + minutes * MINUTE + SLACK_MS
                and not self._world.acting_late
            ):
                self._no("I17", f"{row.id}: a new boot gave it more time")
        deadline = old.deadline_at
        if minutes:
            at = grant["granted_at"]
            deadline = max(old.deadline_at, at) + minutes * MINUTE
            boot = self._world.acting_now().boot
            account.deadline_boot = max(old.deadline_boot, boot) + minutes * MINUTE
        if row.deadline_at != deadline:
            self._no("I3", f"{row.id}: deadline {old.deadline_at} -> {row.deadline_at}, expected {deadline}")
        if row.deadline_boot > account.deadline_boot + SLACK_MS and not self._world.acting_late:
            self._no("I17", f"{row.id}: boot deadline {row.deadline_boot}, {account.deadline_boot} was granted")
        if row.useful_until != old.useful_until and not minutes:
            self._no("I3", f"{row.id}: useful_until moved without a grant")

    def _reason(self, old: Any, row: Any, account: Account) -> None:
        """A5: a stop's reason is borne out by the counters and the clocks."""
        now = self._world.now()
        reason = row.stop_reason
        if old.check_once or old.status == "held" or row.stop_detail == "second_submission":
            return
        wrong = {
            "request_budget_exhausted": row.status_requests_used < row.max_status_requests,
            "provider_failure": row.transport_failures_used < row.max_transport_failures,
            "delivery_ambiguous": row.transport_failures_used < row.max_transport_failures,
            "rate_limited": row.rate_limited_used < row.max_rate_limited and row.stop_detail != "quota_exhausted",
            "deadline_exceeded": now.wall < row.deadline_at and now.boot < row.deadline_boot,
        }.get(reason, False)
        # T9: once planned on the boot clock, a limit comes there, also if the wall clock was set back since
        planned = reason == "deadline_exceeded" and self._world.wall_steps > 0
        if planned and old.due_boot is not None and now.boot >= old.due_boot:
            return
        if wrong and not self._world.acting_late:
            self._no("A5", f"{row.id}: stopped as {reason}, which is not so")

    def _always(self, op: int, row: Any) -> None:
        """What holds of every row at every commit."""
        for used, most in (
            ("status_requests_used", "max_status_requests"),
            ("transport_failures_used", "max_transport_failures"),
            ("rate_limited_used", "max_rate_limited"),
        ):
            if not 0 <= getattr(row, used) <= max(getattr(row, most), row.carried):
                self._no("I2", f"{row.id}: {used} is {getattr(row, used)} of {getattr(row, most)}")
        count = self._world.sql.execute("SELECT count(*) FROM intent WHERE operation=?", (op,)).fetchone()[0]
        if count != row.status_requests_used - row.carried:
            self._no("I4", f"{row.id}: {row.status_requests_used} counted, {row.carried} carried over, {count} intents")
        if row.status == "waiting" and row.lease_owner is None:
            for used, most, reason in (
                ("status_requests_used", "max_status_requests", "request_budget_exhausted"),
                ("transport_failures_used", "max_transport_failures", "provider_failure"),
                ("rate_limited_used", "max_rate_limited", "rate_limited"),
            ):
                spent = getattr(row, used) >= getattr(row, most)
                if spent and (reason == "request_budget_exhausted" or not row.check_once):
                    self._no("I10", f"{row.id}: waits with {used} {getattr(row, used)} of {getattr(row, most)}")

    def _questions(self, rows: dict[int, Any]) -> None:
        """I11: at most one open question an operation; a stop that asks has one, an end that is over has none."""
        sql = self._world.sql
        for op, row in rows.items():
            open_ = sql.execute(
                "SELECT reason FROM escalation WHERE operation=? AND decided_at IS NULL", (op,)
            ).fetchall()
            if len(open_) > 1:
                self._no("I11", f"{row.id}: {len(open_)} open questions")
            if row.status == "escalated" and not open_:
                self._no("I10", f"{row.id}: escalated without an open question")
            if row.status in ("succeeded", "closed") and open_:
                self._no("E7", f"{row.id}: {row.status}, and the question {open_[0][0]} is open")
            if row.status == "escalated" and open_ and open_[0][0] != row.stop_reason:
                self._no("E7", f"{row.id}: stopped as {row.stop_reason}, asked is {open_[0][0]}")
        twice = sql.execute('SELECT escalation_id FROM "grant" GROUP BY escalation_id HAVING count(*) > 1').fetchone()
        if twice is not None:
            self._no("I12", f"the question {twice[0]} was granted twice")
        for key in sql.execute("SELECT origin, account, down_since FROM origin_state").fetchall():
            if key[2] is not None:
                self._down.setdefault(key[:2], self._intents)
            else:
                self._down.pop(key[:2], None)
        known = {tuple(k) for k in sql.execute("SELECT origin, account FROM origin_state").fetchall()}
        self._down = {k: v for k, v in self._down.items() if k in known}

    def _grant(self, op: int, escalation: str, version: int, body: str) -> None:
        """I12: bound to what was painted, used once."""
        grant = json.loads(body)
        shown = self._shown.get(grant["card_digest"])
        if shown is None:
            self._no("I12", f"grant {grant['grant_id']}: no such card was painted")
        elif shown != (escalation, version):
            self._no("I12", f"grant {grant['grant_id']}: shown {shown}, used on {(escalation, version)}")
        if escalation in self._granted:
            self._no("I12", f"the question {escalation} was granted twice")
        self._granted.add(escalation)
