"""Rows of leave to use a credential: one call, one session, and the time that a question about a call has.

Job: store them, use them up or count them in the running transaction, never twice; list what is left.
Must not know: who wants leave, what a digest is made of.
Source: spec G6, G7; reliability I14.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pollcore.adapters.store.memory import Known
from pollcore.adapters.store.transaction import Transaction
from pollcore.facts import BootMs, CallGrant, Instant, Session
from pollcore.ports import Window

MAX_OPEN_SESSIONS: Final = 1_000
"""Rows that one list holds, the newest; a store has one for each credential and run that nobody ended."""
KEPT_SCREENS: Final = 1_000
REPLACED: Final = "replaced by a newer one"

_UNUSED: Final = "used_at IS NULL AND replaced_at IS NULL"
# every condition once more in the statement: a leave that is gone, or not for this request, lets nothing out
_USE: Final = (
    f"UPDATE approval SET used_at=?, used_for=? WHERE grant_id=? AND operation=? AND digest=? AND {_UNUSED} "
    "AND expires_at>? AND (boot<>? OR expires_boot>?)"
)
_COUNT: Final = (
    "UPDATE session SET used=used+?1 WHERE session_id=?2 AND credential=?3 AND owner=?4 AND binding=?5 "
    "AND ended_at IS NULL AND used+?1<=calls AND until>?6 AND (boot<>?7 OR until_boot>?8)"
)
_APPROVAL: Final = (
    "INSERT INTO approval(grant_id, operation, digest, number, purpose, credential, granted_at, expires_at, boot, "
    "expires_boot, used_at, used_for) VALUES(?,?,?,?,?,?,?,?,?,?,?,?)"
)
_SESSION: Final = (
    "INSERT INTO session(session_id, credential, owner, binding, started_at, until, boot, until_boot, calls, used, "
    "granted_by, grant_id) VALUES(?,?,?,?,?,?,?,?,?,?,?,?)"
)


def save_approval(tx: Transaction, op: int, grant: CallGrant) -> None:
    """Store it; an unused one of the operation gives way to it."""
    tx.conn.execute(f"UPDATE approval SET replaced_at=? WHERE operation=? AND {_UNUSED}", (tx.now.wall, op))
    plain = (grant.grant_id, op, grant.digest, grant.number, grant.purpose, grant.credential, grant.granted_at)
    ends = (grant.expires_at, _boot(tx, grant.boot_id), grant.expires_boot)
    tx.conn.execute(_APPROVAL, (*plain, *ends, grant.used_at, grant.used_for))
    tx.wrote = True


def save_session(tx: Transaction, session: Session) -> None:
    """Store it, once; an older one of the same credential and run ends."""
    if tx.conn.execute("SELECT 1 FROM session WHERE session_id=?", (session.session_id,)).fetchone():
        return
    tx.conn.execute(
        "UPDATE session SET ended_at=?, ended=? WHERE credential=? AND owner=? AND ended_at IS NULL",
        (tx.now.wall, REPLACED, session.credential, session.owner),
    )
    who = (session.session_id, session.credential, session.owner, session.binding)
    ends = (session.started_at, session.until, _boot(tx, session.boot_id), session.until_boot)
    tx.conn.execute(_SESSION, (*who, *ends, session.calls, session.used, session.granted_by, session.grant_id))
    tx.wrote = True


def _boot(tx: Transaction, boot_id: str) -> int:
    """The number of a boot; one of another boot has no clock here and ends by its wall time alone."""
    if boot_id == tx.boot_id:
        return tx.boot
    found = tx.conn.execute("SELECT no FROM boot WHERE boot_id=?", (boot_id,)).fetchone()
    return int(found[0]) if found else 0


def use(tx: Transaction, op: int, grant: CallGrant, used_for: str) -> bool:
    """Use *grant* up, now, for one request; False: it is used, replaced, expired, or another request's."""
    now = tx.now
    found = tx.conn.execute(
        _USE, (now.wall, used_for, grant.grant_id, op, grant.digest, now.wall, tx.boot, now.boot)
    ).rowcount
    tx.wrote = tx.wrote or bool(found)
    return bool(found == 1)


def count(tx: Transaction, session: Session, owner: str, charges: int) -> bool:
    """Count *charges* requests of *owner* on the session; False: it is over, used up, or another run's."""
    now = tx.now
    found = tx.conn.execute(
        _COUNT,
        (charges, session.session_id, session.credential, owner, session.binding, now.wall, tx.boot, now.boot),
    ).rowcount
    tx.wrote = tx.wrote or bool(found)
    return bool(found == 1)


def end_sessions(tx: Transaction, why: str, credential: str | None, owner: str | None) -> int:
    """End those of *credential*, or of the run *owner*, for good. How many were open and had time and calls left."""
    where, name = ("credential", credential) if credential is not None else ("owner", owner)
    live = f"{where}=? AND ended_at IS NULL"
    over = "until<=? OR used>=calls"
    (count,) = tx.conn.execute(
        f"SELECT count(*) FROM session WHERE {live} AND NOT ({over})", (name, tx.now.wall)
    ).fetchone()
    tx.conn.execute(f"UPDATE session SET ended_at=?, ended=? WHERE {live}", (tx.now.wall, why, name))
    return int(count)


def mark_seen(tx: Transaction, op: int, escalation_id: str) -> bool:
    """The card of an open question was painted; the first time stays."""
    where = "WHERE escalation_id=? AND operation=? AND decided_at IS NULL"
    row = tx.conn.execute(f"SELECT seen_at FROM escalation {where}", (escalation_id, op)).fetchone()
    if row is not None and row[0] is None:
        tx.conn.execute(f"UPDATE escalation SET seen_at=? {where}", (tx.now.wall, escalation_id, op))
        tx.wrote = True
    return row is not None


def set_windows(tx: Transaction, windows: Sequence[Window]) -> int:
    """Start or stop the time of questions that are open and as they were read; each that moved is a change."""
    moved = 0
    for window in windows:
        row = tx.conn.execute(
            "UPDATE escalation SET expires_at=?, left_ms=? WHERE escalation_id=? AND decided_at IS NULL "
            "AND expires_at IS ? RETURNING operation",
            (window.expires_at, window.left_ms, window.escalation_id, window.before),
        ).fetchall()
        moved += len(row)
    if moved:
        tx.next_change()
    return moved


def present(tx: Transaction, owner: str, started_at: Instant) -> None:
    """A console is open on the store; the first time is a change, so that who polls looks at the questions now."""
    tx.conn.execute(
        "INSERT INTO screen(owner, started_at, beat_at) VALUES(?,?,?) "
        "ON CONFLICT(owner) DO UPDATE SET beat_at=excluded.beat_at",
        (owner, started_at, tx.now.wall),
    )
    tx.conn.execute(
        "DELETE FROM screen WHERE owner IN (SELECT owner FROM screen ORDER BY beat_at DESC LIMIT -1 OFFSET ?)",
        (KEPT_SCREENS,),
    )
    tx.wrote = True
    if started_at == tx.now.wall:
        tx.next_change()


def screens(conn: Any) -> tuple[tuple[Instant, Instant], ...]:
    """Start and newest sign of life of every console that is known, also of those that were closed."""
    return tuple(conn.execute("SELECT started_at, beat_at FROM screen").fetchall())


def unused(conn: Any, known: Known, operation_id: str) -> CallGrant | None:
    """The leave of an operation that is not used yet; it may have expired."""
    row = conn.execute(
        "SELECT grant_id, digest, number, purpose, credential, granted_at, expires_at, boot, expires_boot "
        f"FROM approval WHERE operation=? AND {_UNUSED}",
        (known.op(operation_id),),
    ).fetchone()
    if row is None:
        return None
    grant_id, digest, number, purpose, credential, granted_at, expires_at, boot, expires_boot = row
    return CallGrant(
        grant_id=grant_id,
        operation_id=operation_id,
        digest=digest,
        number=number,
        purpose=purpose,
        credential=credential,
        granted_at=Instant(granted_at),
        expires_at=Instant(expires_at),
        boot_id=known.boot(boot) if boot else "",
        expires_boot=BootMs(expires_boot),
    )


def sessions(conn: Any, known: Known) -> tuple[Session, ...]:
    """Those that nobody ended, oldest first."""
    found = conn.execute(
        "SELECT session_id, credential, owner, binding, started_at, until, boot, until_boot, calls, used, granted_by, "
        "grant_id FROM session WHERE ended_at IS NULL ORDER BY started_at DESC, rowid DESC LIMIT ?",
        (MAX_OPEN_SESSIONS,),
    ).fetchall()
    return tuple(
        Session(
            session_id=row[0],
            credential=row[1],
            owner=row[2],
            binding=row[3],
            started_at=Instant(row[4]),
            until=Instant(row[5]),
            boot_id=known.boot(row[6]) if row[6] else "",
            until_boot=BootMs(row[7]),
            calls=row[8],
            used=row[9],
            granted_by=row[10],
            grant_id=row[11],
        )
        for row in reversed(found)
    )
