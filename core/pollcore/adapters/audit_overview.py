"""What a screen says of the audit chain: how long, how it ends, what is signed, read on a connection of its own.

Job: a few reads that cost the same however long the log is. Must not know: keys, whether the chain holds (that is the
verifier's), screens. It blocks: call it on a thread aside. Nothing is written.
Source: spec A3, A4, O6.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any, Final

import msgspec

from pollcore.adapters.audit_chain import LogState, decode_state
from pollcore.adapters.store import connecting
from pollcore.adapters.store.errors import unusable
from pollcore.adapters.store.library import sqlite3
from pollcore.adapters.store.transaction import AUDIT_LOG, AUDIT_NOTE
from pollcore.chain.layout import Kind
from pollcore.facts import Instant

MAX_TAIL: Final = 10_000
"""Links behind an anchor or a checkpoint that are looked through for the time of the last event before it."""
CACHE_KIB: Final = 1_024
KIND_AT: Final = 70
"""Place of a link's kind, counted from 1 as SQL does (docs/audit.md: byte 69)."""


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """The chain as it was committed a moment ago."""

    log: LogState | None
    """None: no chain has begun, or the record of its keys is gone."""
    links: int = 0
    head: bytes = b""
    """Hash of the last link; empty: it is torn, or there is none."""
    events: int = 0
    """Events of the story."""
    checkpoints: int = 0
    signed_to: int = 0
    note: str | None = None
    """The last checkpoint, as signed."""
    signed_at: Instant | None = None
    """Time of the last event under it; None: there is none, or it lies more than MAX_TAIL links back."""
    anchored_at: Instant | None = None
    """The same for the link that the caller named."""


def overview(database: Path, anchored_to: int = 0) -> Overview:
    """Read it. *anchored_to*: the link that the anchor knows; 0: none. Raises StoreUnusable."""
    try:
        with closing(connecting.connect(str(database), read_only=True)) as conn:
            conn.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
            conn.execute("BEGIN")
            try:
                return _read(conn, anchored_to)
            finally:
                conn.execute("ROLLBACK")
    except sqlite3.Error as error:
        raise unusable(error, str(database), "reading the audit") from error


def _read(conn: Any, anchored_to: int) -> Overview:
    tip = conn.execute("SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1").fetchone()
    raw = conn.execute("SELECT value FROM document WHERE kind=? AND name=?", AUDIT_LOG).fetchone()
    (events,) = conn.execute("SELECT coalesce(max(seq), 0) FROM event").fetchone()
    (checkpoints,) = conn.execute("SELECT count(*) FROM document WHERE kind=?", (AUDIT_NOTE,)).fetchone()
    last = conn.execute(
        "SELECT name, value FROM document WHERE kind=? ORDER BY name DESC LIMIT 1", (AUDIT_NOTE,)
    ).fetchone()
    signed_to = int(last[0]) if last is not None and str(last[0]).isdecimal() else 0
    return Overview(
        log=None if raw is None else decode_state(bytes(raw[0])),
        links=0 if tip is None else int(tip[0]),
        head=b"" if tip is None else bytes(tip[1]),
        events=int(events),
        checkpoints=int(checkpoints),
        signed_to=signed_to,
        note=None if last is None else bytes(last[1]).decode("utf-8", "replace"),
        signed_at=_last_event_at(conn, signed_to, int(events)),
        anchored_at=_last_event_at(conn, anchored_to, int(events)),
    )


def _last_event_at(conn: Any, link: int, events: int) -> Instant | None:
    """When the last event happened whose link is not after *link*: events are counted back from the end."""
    if link <= 0:
        return None
    many, told = conn.execute(
        f"SELECT count(*), coalesce(sum(kind = ?), 0) FROM (SELECT substr(blob, {KIND_AT}, 1) AS kind FROM audit "
        "WHERE seq > ? ORDER BY seq LIMIT ?)",
        (bytes([Kind.EVENT]), link, MAX_TAIL),
    ).fetchone()
    if many >= MAX_TAIL:
        return None
    found = conn.execute("SELECT at FROM event WHERE seq = ?", (events - int(told),)).fetchone()
    return None if found is None else Instant(int(found[0]))
