"""The one place where a write transaction begins, ends or falls back.

Job: BEGIN IMMEDIATE, numbers (change, event, intent), events with their audit links, COMMIT, and what is known after a
COMMIT whose answer was lost. Must not know: what is written, or why.
Source: spec O6, A3; reliability sections 4 (deferred BEGIN, commit) and 12 (commit succeeded, answer lost).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

import msgspec

from pollcore.adapters.store import event_rows
from pollcore.adapters.store.errors import FULL, DatabaseTrouble, unusable
from pollcore.adapters.store.library import sqlite3
from pollcore.facts import AuditEvent, Moment, PollconsoleError, StoreUnusable
from pollcore.ports import AuditExtension, AuditLink, AuditLog, AuditTip

T = TypeVar("T")
KEPT_TOUCHES: Final = 1 << 17
PRUNE_EVERY: Final = 1 << 14
"""How many change numbers are listed for readers that ask "what since?"; older questions are answered by a scan."""
MAX_MARKS: Final = 200
AUDIT_LOG: Final = ("audit", "log")
"""The document that keeps the audit's public keys."""
AUDIT_NOTE: Final = "audit_note"
"""Documents that keep signed checkpoints, named by the number of their link in 20 digits."""


class Chained(Protocol):
    """An operation to whose newest event another one is added."""

    last: int | None

    @property
    def op(self) -> int | None:
        """Its row number; None: an event of no operation."""


class Prev(msgspec.Struct):
    """The newest event of one operation while a transaction adds more."""

    op: int | None
    last: int | None


class Transaction:
    """One running write transaction."""

    def __init__(self, conn: Any, now: Moment) -> None:
        self.conn = conn
        self.now = now
        found = conn.execute(
            "SELECT change, intents, boot, (SELECT boot_id FROM boot WHERE no = meta.boot) FROM meta"
        ).fetchone()
        self.change: int = found[0]
        self.intents: int = found[1]
        self.boot: int = found[2]
        self.boot_id: str | None = found[3]
        self._start = self.change
        self._seq: int | None = None
        self._events: list[AuditEvent] = []
        self._event_rows: dict[tuple[int, ...], list[list[Any]]] = {}
        self.touched: list[tuple[int, int]] = []
        self.wrote = False
        """Anything beside operations and events was written."""

    def next_change(self, op: int | None = None) -> int:
        """Raise the store's change number for one write of *op*."""
        self.change += 1
        if op is not None:
            self.touched.append((self.change, op))
        return self.change

    def record(self, event: AuditEvent, prev: Chained) -> None:
        """Add *event* behind `prev.last`; the caller stores the new `prev.last` with its operation."""
        if self._seq is None:
            self._seq = self.conn.execute("SELECT max(seq) FROM event").fetchone()[0] or 0
        self._seq += 1
        filled, row, stored = event_rows.event_row(self._seq, prev.op, prev.last, event)
        self._events.append(stored)
        self._event_rows.setdefault(filled, []).append(row)
        prev.last = self._seq

    @property
    def dirty(self) -> bool:
        """Something has to be committed."""
        return self.wrote or self.change != self._start or bool(self._events)

    def finish(self, audit: AuditLog) -> None:
        """Write events, audit links, touches and the numbers. Raises StoreUnusable when the audit refuses (O6)."""
        if self._events:
            if self.change == self._start:
                self.change += 1
            for filled, rows in self._event_rows.items():
                self.conn.executemany(event_rows.insert(filled), rows)
            self._link(self._links(audit))
        if self.touched:
            self.conn.executemany("INSERT INTO touched(change, op) VALUES(?,?)", self.touched)
        if self.change // PRUNE_EVERY != self._start // PRUNE_EVERY:
            self.conn.execute("DELETE FROM touched WHERE change <= ?", (self.change - KEPT_TOUCHES,))
        self.conn.execute("UPDATE meta SET change=?, intents=?, boot=?", (self.change, self.intents, self.boot))

    def _tip(self) -> AuditTip | None:
        return audit_tip(self.conn)

    def extend(self, made: AuditExtension) -> None:
        """Add links that no event stands behind."""
        self._link(made.links)
        keep = "INSERT OR REPLACE INTO document(kind, name, value) VALUES(?,?,?)"
        if made.log is not None:
            self.conn.execute(keep, (*AUDIT_LOG, made.log))
        self._keep_notes(made.notes)
        self.wrote = self.wrote or bool(made.links or made.log or made.notes)

    def _links(self, audit: AuditLog) -> Sequence[AuditLink]:
        tip = self._tip()
        try:
            return audit.links(tip, tuple(self._events))
        except PollconsoleError:
            raise
        except Exception as error:
            raise StoreUnusable(
                f"the audit row cannot be written ({type(error).__name__}), so nothing was done: "
                "run `pollconsole doctor`"
            ) from error

    def _link(self, links: Sequence[AuditLink]) -> None:
        self.conn.executemany(
            "INSERT INTO audit(seq, blob, hash) VALUES(?,?,?)", [(k.seq, k.blob, k.hash) for k in links]
        )
        if links and any(k.note for k in links):
            self._keep_notes({k.seq: k.note for k in links if k.note})

    def _keep_notes(self, notes: Mapping[int, str]) -> None:
        # the first checkpoint over a link stays: a second one, of another process, says the same
        self.conn.executemany(
            "INSERT OR IGNORE INTO document(kind, name, value) VALUES(?,?,?)",
            [(AUDIT_NOTE, f"{seq:020d}", note.encode()) for seq, note in notes.items()],
        )


def audit_tip(conn: Any) -> AuditTip | None:
    """The last link, and what is kept of the log's keys."""
    found = conn.execute(
        "SELECT seq, hash, (SELECT value FROM document WHERE kind=? AND name=?) FROM audit ORDER BY seq DESC LIMIT 1",
        AUDIT_LOG,
    ).fetchone()
    return None if found is None else AuditTip(*found)


class Writer:
    """Runs write transactions on one connection, one at a time."""

    def __init__(self, conn: Any, where: str, audit: AuditLog, forget: Callable[[], None]) -> None:
        """*forget*: called after every rollback, so that no memory of what never happened stays."""
        self.conn = conn
        self.where = where
        self.audit = audit
        self.was_full = False
        self._forget = forget
        self._token = secrets.token_hex(8)
        self._mark = 0

    def run(self, now: Moment, doing: str, work: Callable[[Transaction], T]) -> T:
        """*work* inside one BEGIN IMMEDIATE; committed if it wrote anything, rolled back if anything raises.

        Raises:
            StoreUnusable: SQLite or the audit refused; nothing of it happened.
            Exception: whatever *work* raises; nothing of it happened.
        """
        try:
            if self.conn.in_transaction:  # an earlier ROLLBACK failed
                self.conn.execute("ROLLBACK")
            self.conn.execute("BEGIN IMMEDIATE")
            tx = Transaction(self.conn, now)
            result = work(tx)
            if not tx.dirty:
                self.conn.execute("ROLLBACK")
                return result
            tx.finish(self.audit)
            self._leave_mark()
        except BaseException as error:
            self._undo()
            if isinstance(error, sqlite3.Error):
                raise self._told(error, doing) from error
            raise
        self._commit(doing)
        return result

    def _leave_mark(self) -> None:
        """A row of this connection alone: after a lost answer it tells whether the COMMIT took place."""
        self._mark += 1
        if self._mark == 1:
            self.conn.execute(
                "DELETE FROM writer WHERE rowid NOT IN (SELECT rowid FROM writer ORDER BY rowid DESC LIMIT ?)",
                (MAX_MARKS,),
            )
            self.conn.execute("INSERT INTO writer(token, mark) VALUES(?, 1)", (self._token,))
            return
        changed = self.conn.execute("UPDATE writer SET mark=? WHERE token=?", (self._mark, self._token)).rowcount
        if not changed:
            self.conn.execute("INSERT INTO writer(token, mark) VALUES(?,?)", (self._token, self._mark))

    def _commit(self, doing: str) -> None:
        try:
            self.conn.execute("COMMIT")
        except BaseException as error:
            landed = self._landed()
            if landed and isinstance(error, sqlite3.Error):
                return
            self._undo()
            if isinstance(error, sqlite3.Error):
                raise self._told(error, doing) from error
            raise

    def _landed(self) -> bool:
        """Whether the transaction is in the store although COMMIT raised: asked of the store, never repeated."""
        if self.conn.in_transaction:
            return False
        try:
            found = self.conn.execute("SELECT mark FROM writer WHERE token=?", (self._token,)).fetchone()
        except sqlite3.Error:
            return False
        return found is not None and found[0] == self._mark

    def _undo(self) -> None:
        try:
            # FULL, IOERR, NOMEM and CORRUPT may have rolled back by themselves
            if self.conn.in_transaction:
                self.conn.execute("ROLLBACK")
        except sqlite3.Error:
            pass
        finally:
            self._forget()

    def _told(self, error: sqlite3.Error, doing: str) -> DatabaseTrouble:
        trouble = unusable(error, self.where, doing)
        if trouble.name == FULL:
            self.was_full = True
        return trouble
