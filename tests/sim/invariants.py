"""The invariants, after every commit and over the whole history at the end.

Job: compare the store with what it was one commit ago and hand each difference to its checks. Ids: I1 ... I28 as in the
reliability notes, L rules of leases, others are rules of the specification. Must not know: how the code under test
works.
"""

from __future__ import annotations

import json
from typing import Any

from pollcore.adapters.store import contrary
from tests.sim.charges import Charges
from tests.sim.leaves import Leaves
from tests.sim.ledger import ENDS, SELECT, Row
from tests.sim.records import Records


class Watch(Charges, Records, Leaves):
    """All invariants of one world."""

    # --- after every commit -------------------------------------------------------------------------------------------

    def committed(self) -> None:
        """Compare the store with what it was one commit ago."""
        self._commits += 1
        sql = self._world.sql
        now = self._world.now()
        found = {row[0]: row for row in sql.execute(SELECT).fetchall()}
        changed = {op: row for op, row in found.items() if self._rows.get(op) != row}
        before = {op: Row(*self._rows[op]) for op in changed if op in self._rows}
        rows = {op: Row(*row) for op, row in changed.items()}
        self._rows.update(changed)
        intents = sql.execute(
            "SELECT id, operation, n, epoch, at, boot FROM intent WHERE id > ? ORDER BY id", (self._intents,)
        ).fetchall()
        grants = sql.execute(
            'SELECT rowid, operation, escalation_id, version, body FROM "grant" WHERE rowid > ? ORDER BY rowid',
            (self._grants,),
        ).fetchall()
        observations = self._observations() if self._waiting or intents else []
        for op, row in rows.items():
            if op not in before:
                self._inserted(op, row, now)
        for _, op, escalation, version, body in grants:
            self._grants += 1
            self._grant(op, escalation, version, body)
        granted = {op: json.loads(body) for _, op, _, _, body in grants}
        for intent in intents:
            self._intent(intent, found, before, now)
        self._leaves_of(intents, rows)
        for op, row in rows.items():
            if op in before:
                self._row(op, before[op], row, granted.get(op), now)
        for one in observations:
            self._observation(one, now)
        for op, row in rows.items():
            self._always(op, row)
        if rows:
            self._questions(rows)
        for op, row in rows.items():
            lease = (row.lease_owner, row.epoch, row.renewed)
            if row.lease_owner is None:
                self._leases.pop(op, None)
            elif self._leases.get(op, (None, 0))[0] != lease:
                self._leases[op] = (lease, now.boot)
        self.checked += 1

    def _observations(self) -> list[Any]:
        marks = ",".join(str(i) for i in self._waiting) or "0"
        found: list[Any] = self._world.sql.execute(
            "SELECT intent, operation, n, http_code, fault, verdict, decision FROM observation "
            f"WHERE intent IN ({marks}) OR intent > {self._intents} ORDER BY intent"
        ).fetchall()
        return found

    # --- at the end ---------------------------------------------------------------------------------------------------

    def end(self) -> None:
        """The whole history, once everybody was healthy for long enough."""
        world = self._world
        now = world.now()
        for op, raw in self._rows.items():
            row = Row(*raw)
            if (
                row.status in ("waiting", "held", "awaiting_approval")
                and now.boot > row.deadline_boot + world.settle_ms
            ):
                self._no("I26", f"{row.id}: still {row.status}, {now.boot - row.deadline_boot} ms after its deadline")
            if row.status == "escalated" and not self._asked(op):
                self._no("I10", f"{row.id}: escalated for good, and nobody is asked")
            if row.lease_owner is not None and row.status not in ENDS:
                self._no("O2", f"{row.id}: leased by {self._owner(row.lease_owner)} at the end")
        for op, n, _ in self._waiting.values():
            row = Row(*self._rows[op])
            if row.status not in ENDS:
                self._no("I5", f"{row.id}: request {n} has no observation")
        self._unrecorded()
        for text in self._world.books():
            self._no("O6", text)
        for text in contrary.run(world.sql):
            self._no("A5", text)
        events, last = world.sql.execute("SELECT count(*), coalesce(max(seq), 0) FROM event").fetchone()
        if events != last:
            self._no("I18", f"{events} events, numbered to {last}")
        sent = dict(
            world.sql.execute("SELECT operation, count(*) FROM event WHERE event='sent' GROUP BY operation").fetchall()
        )
        for op, raw in self._rows.items():
            row = Row(*raw)
            if sent.get(op, 0) != row.status_requests_used - row.carried:
                text = f"{row.status_requests_used} counted, {row.carried} carried, {sent.get(op, 0)} audit intents"
                self._no("I4", f"{row.id}: {text}")

    def _asked(self, op: int) -> bool:
        sql = "SELECT 1 FROM escalation WHERE operation=? AND decided_at IS NULL"
        return self._world.sql.execute(sql, (op,)).fetchone() is not None

    def _unrecorded(self) -> None:
        """S9: an answer that came to a worker that nothing struck is recorded, unless a later lease or an end came."""
        for (name, n), (_, flight) in self._answers.items():
            if flight.process.dead or flight.process.stops != flight.stops:
                continue
            row = self._world.sql.execute(
                "SELECT o.epoch, o.status, (SELECT 1 FROM observation b WHERE b.operation=o.op AND b.n=?) "
                "FROM operation o WHERE o.id=?",
                (n, name),
            ).fetchone()
            if row[2] is None and row[0] == flight.epoch and row[1] not in ENDS:
                self._no("S9", f"{name}: the answer to request {n} came and was never recorded")
