"""A connection whose n-th statement fails with a chosen SQLite error, before or after it took effect.

It knows sqlite3's interface, little of the store. `Failing(conn, n, name)` counts execute and executemany alike;
`after=True` lets the statement happen and loses its answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pollcore.adapters.store.library import sqlite3

NAMES = (
    "SQLITE_BUSY",
    "SQLITE_BUSY_SNAPSHOT",
    "SQLITE_FULL",
    "SQLITE_IOERR_READ",
    "SQLITE_IOERR_WRITE",
    "SQLITE_IOERR_FSYNC",
    "SQLITE_IOERR_SHMMAP",
    "SQLITE_CORRUPT",
    "SQLITE_NOTADB",
    "SQLITE_READONLY",
    "SQLITE_CANTOPEN",
    "SQLITE_NOMEM",
    "SQLITE_PROTOCOL",
)
#: SQLite rolls the transaction back by itself on these.
ROLLS_BACK = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_NOMEM", "SQLITE_CORRUPT")


def error(name: str) -> Exception:
    """An OperationalError as SQLite raises it."""
    made: Exception = sqlite3.OperationalError(f"injected {name}")
    made.sqlite_errorname = name  # type: ignore[attr-defined]
    return made


class Failing:
    """Wraps a connection; n counts from 1. `calls` is what was counted so far; n = 0 never fails."""

    def __init__(self, conn: Any, n: int, name: str, *, after: bool = False) -> None:
        self._conn = conn
        self._n = n
        self._name = name
        self._after = after
        self.calls = 0
        self.failed: str | None = None

    def execute(self, sql: str, *values: Any) -> Any:
        return self._run(sql, lambda: self._conn.execute(sql, *values))

    def executemany(self, sql: str, values: Iterable[Any]) -> Any:
        return self._run(sql, lambda: self._conn.executemany(sql, values))

    def _run(self, sql: str, call: Any) -> Any:
        self.calls += 1
        if self.calls != self._n:
            return call()
        self.failed = sql
        if self._after:
            call()
        elif self._name.startswith(ROLLS_BACK) and self._conn.in_transaction:
            self._conn.execute("ROLLBACK")
        raise error(self._name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._conn, name)


def wrap(turns: Any, n: int, name: str, *, after: bool = False) -> Failing:
    """Put a failing connection into a SqliteTurns, everywhere it is used."""
    made = Failing(turns.conn, n, name, after=after)
    for holder in (turns, turns.reads, turns.writer):
        holder.conn = made
    turns.known._conn = made
    return made


def unwrap(turns: Any, failing: Failing) -> None:
    """Put the sound connection back."""
    for holder in (turns, turns.reads, turns.writer):
        holder.conn = failing._conn
    turns.known._conn = failing._conn
