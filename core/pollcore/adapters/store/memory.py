"""What one connection remembers of rows that never change: numbers of operations, names, contracts, boots, submissions.

Job: spare a look-up for each poll. Must not know: anything that a write may change. Forgotten after every rollback.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from pollcore.adapters.store.rows import UNREADABLE, Columns
from pollcore.facts import Submitted

MAX_KEPT: Final = 50_000


class Known:
    """Caches over one connection."""

    def __init__(self, conn: Any, columns: Columns) -> None:
        self._conn = conn
        self._columns = columns
        self.forget()

    def forget(self) -> None:
        """Drop everything."""
        self._ops: dict[str, int] = {}
        self._submitted: dict[int, Submitted] = {}
        self._names: dict[int, str] = {}
        self._numbers: dict[str, int] = {}
        self._contracts: dict[int, str] = {}
        self._boots: dict[int, str] = {}

    def op(self, operation_id: str) -> int | None:
        """The row number of an operation."""
        found = self._ops.get(operation_id)
        if found is None:
            row = self._conn.execute("SELECT op FROM operation WHERE id=?", (operation_id,)).fetchone()
            if row is None:
                return None
            found = int(row[0])
            self.keep_op(operation_id, found)
        return found

    def keep_op(self, operation_id: str, op: int) -> None:
        """Remember a row number that was just read."""
        if len(self._ops) >= MAX_KEPT:
            self._ops.clear()
        self._ops[operation_id] = op

    def submitted(self, op: int) -> Submitted:
        """What was handed over with the operation."""
        found = self._submitted.get(op)
        if found is None:
            row = self._conn.execute(
                "SELECT submitted, status_url, idempotency_key FROM submission WHERE op=?", (op,)
            ).fetchone()
            found = self._keep_submitted(op, row)
        return found

    def load_submitted(self, ops: Iterable[int]) -> None:
        """Read what was handed over with many operations in one statement; those that are known are left out."""
        wanted = [op for op in ops if op not in self._submitted]
        if not wanted:
            return
        found = self._conn.execute(
            "SELECT s.op, s.submitted, s.status_url, s.idempotency_key FROM json_each(?) j "
            "CROSS JOIN submission s ON s.op=j.value",
            (json.dumps(wanted),),
        )
        for op, *row in found.fetchall():
            self._keep_submitted(op, row)

    def _keep_submitted(self, op: int, row: Sequence[Any]) -> Submitted:
        found = self._columns.submitted(*row)
        if len(self._submitted) >= MAX_KEPT:
            self._submitted.clear()
        # what could not be opened is asked again: the reading key may come later
        if UNREADABLE not in (found.status_url, found.idempotency_key):
            self._submitted[op] = found
        return found

    def name(self, number: int) -> str:
        """The text behind a number of `name`."""
        found = self._names.get(number)
        if found is None:
            found = str(self._conn.execute("SELECT text FROM name WHERE no=?", (number,)).fetchone()[0])
            self._names[number] = found
        return found

    def number(self, name: str) -> int:
        """The number of a text, made if new (inside a write transaction)."""
        found = self._numbers.get(name)
        if found is None:
            row = self._conn.execute("SELECT no FROM name WHERE text=?", (name,)).fetchone()
            found = int(row[0] if row else self._conn.execute("INSERT INTO name(text) VALUES(?)", (name,)).lastrowid)
            self._numbers[name] = found
        return found

    def contract(self, number: int) -> str:
        """The digest of a contract snapshot."""
        found = self._contracts.get(number)
        if found is None:
            found = str(self._conn.execute("SELECT digest FROM contract WHERE no=?", (number,)).fetchone()[0])
            self._contracts[number] = found
        return found

    def boot(self, number: int) -> str:
        """A boot id."""
        found = self._boots.get(number)
        if found is None:
            found = str(self._conn.execute("SELECT boot_id FROM boot WHERE no=?", (number,)).fetchone()[0])
            self._boots[number] = found
        return found
