"""What leaves the store for an archive: which operations and links may, their rows as records, and the one cut.

Job: SQL of the plan, of the records, of the transaction that removes them. Must not know: files, keys, signatures,
how a chain is verified. Reads page by page on whatever connection it is given.
Source: spec S7, B2, O6, A4. An operation leaves when it has ended, nothing is asked about it, no action of it is under
way, and its last event is older than the time given. Links leave by whole epochs that are over, and only if every event
in them is of such an operation, or of none, and as old.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from pollcore.adapters.store import event_rows
from pollcore.adapters.store.schema import OPEN_STATUSES
from pollcore.adapters.store.transaction import AUDIT_NOTE, Prev, Transaction
from pollcore.adapters.store.writes import must
from pollcore.chain.archive import Charge, ChargeLine, EventLine, OperationLine, Record, Seen
from pollcore.chain.layout import Kind
from pollcore.facts import AuditEvent, Instant, Stale

MAX_OPERATIONS: Final = 50_000
"""Of one archive, the oldest first: one transaction removes their rows. Called again, the next ones go."""
PAGE: Final = 1_000
_KIND: Final = "substr(blob, 70, 1)"
"""A link's kind, byte 69 (docs/audit.md)."""
_IS_OPEN: Final = ", ".join(f"'{status}'" for status in OPEN_STATUSES)
_SETTLED: Final = (
    f"o.status NOT IN ({_IS_OPEN}) AND o.lease_owner IS NULL "
    "AND NOT EXISTS(SELECT 1 FROM escalation q WHERE q.operation=o.op AND q.decided_at IS NULL) "
    "AND NOT EXISTS(SELECT 1 FROM action c WHERE c.operation=o.op AND c.outcome='intended') "
    "AND coalesce((SELECT e.at FROM event e WHERE e.seq=o.last_event), 0) < ?1"
)
_LEAVING: Final = (
    f"SELECT o.op FROM operation o WHERE {_SETTLED} AND NOT EXISTS(SELECT 1 FROM archived a WHERE a.op=o.op) "
    "ORDER BY o.op LIMIT ?2"
)
_SETTLED_OF: Final = (
    f"SELECT o.op FROM json_each(?2) j CROSS JOIN operation o ON o.id=j.value WHERE {_SETTLED} "
    "AND NOT EXISTS(SELECT 1 FROM archived a WHERE a.op=o.op)"
)
_BLOCKED: Final = (
    "SELECT e.seq, e.at, o.id FROM event e LEFT JOIN operation o ON o.op=e.operation WHERE e.seq>?1 AND (e.at>=?2 OR "
    "e.operation IS NOT NULL AND NOT EXISTS(SELECT 1 FROM archived a WHERE a.op=e.operation) "
    "AND e.operation NOT IN (SELECT value FROM json_each(?3))) ORDER BY e.seq LIMIT 1"
)
_EPOCHS: Final = f"SELECT seq, blob FROM audit WHERE seq>? AND {_KIND}=x'{Kind.EPOCH:02x}' ORDER BY seq"
_EVENTS: Final = (
    f"SELECT count(*) FROM audit WHERE seq>? AND seq<=? AND ({_KIND}=x'{Kind.EVENT:02x}' "
    "OR length(hash)<32 OR hash=zeroblob(32))"
)
_OPERATION: Final = (
    "SELECT o.id, o.provider, o.account, o.job_id, o.status, (SELECT count(*) FROM intent i WHERE i.operation=o.op) "
    "FROM operation o WHERE o.op=?"
)
_CHARGES: Final = """
SELECT i.n, i.id, i.request, i.step, i.epoch, i.at, i.boot, b.boot_id, p.text, g.text, r.method, w.text,
  s.answered_at, s.http_code, s.fault, s.state, s.verdict, s.decision, s.draw, s.envelope, l.body
FROM intent i LEFT JOIN request r ON r.id=i.request LEFT JOIN boot b ON b.no=r.boot_no
LEFT JOIN name p ON p.no=r.provider LEFT JOIN name g ON g.no=r.origin LEFT JOIN name w ON w.no=r.owner
LEFT JOIN observation s ON s.intent=i.id LEFT JOIN last_body l ON l.op=i.operation AND l.n=i.n
WHERE i.operation=? AND i.n>? ORDER BY i.n LIMIT ?
"""
_COLUMNS: Final = ", ".join(f"e.{c}" for c in event_rows.EVENT_COLUMNS)
_STORY: Final = (
    f"SELECT e.seq, o.id, {_COLUMNS} FROM event e LEFT JOIN operation o ON o.op=e.operation "
    "WHERE e.seq>? AND e.seq<=? ORDER BY e.seq LIMIT ?"
)

# A request that the charge of another operation went with (R39) stays until the last of them leaves. The newest of all
# stays, because the next one is numbered behind it.
_REQUESTS_OF: Final = (
    "id IN (SELECT i.request FROM json_each(?) j CROSS JOIN intent i ON i.operation=j.value) "
    "AND id NOT IN (SELECT request FROM intent WHERE operation NOT IN (SELECT value FROM json_each(?))) "
    "AND id < (SELECT max(id) FROM request)"
)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What leaves. Nothing: no operation, and *last* is *after*."""

    before: Instant
    ops: tuple[int, ...]
    after: int
    """The last link that left before; 0: none did."""
    last: int
    """The last link that leaves now."""
    head: bytes
    """Its hash; of link *after*, where none leaves (empty at the beginning of a log)."""
    events_after: int
    events: int
    """The last event that leaves with these links; *events_after*: none."""
    epochs_over: int = 0
    """Epochs behind *after* that are over, those that leave included."""
    epochs: int = 0
    """Epochs that leave."""
    held_by: str | None = None
    """Why the next epoch that is over stays."""
    more: bool = False
    """There were more than MAX_OPERATIONS."""

    @property
    def is_empty(self) -> bool:
        return not self.ops and self.last == self.after


class Cutting(msgspec.Struct, frozen=True, kw_only=True):
    """What is written in the transaction that removes the rows of *plan*."""

    plan: Plan
    path: str
    size: int
    sha256: bytes
    epoch: int
    signature: bytes
    charges: int
    """As the file counts them; the store must still have as many."""
    cut: bytes | None
    """The document that says where the links go on; None: no link leaves."""
    event: AuditEvent


def plan(conn: Any, before: Instant) -> Plan:
    """What may leave now. Called inside a read transaction."""
    ops = [row[0] for row in conn.execute(_LEAVING, (before, MAX_OPERATIONS + 1)).fetchall()]
    more, ops = len(ops) > MAX_OPERATIONS, ops[:MAX_OPERATIONS]
    after, events, _ = reached(conn)
    base = _events_before(conn, after, events)
    blocked = conn.execute(_BLOCKED, (events, before, json.dumps(ops))).fetchone()
    last, upto, over, leaving, held = after, events, 0, 0, None
    counted_to, counted = after, base
    for seq, _ in conn.execute(_EPOCHS, (after + 1,)).fetchall():
        over += 1
        counted += conn.execute(_EVENTS, (counted_to, seq - 1)).fetchone()[0]
        counted_to = seq - 1
        if blocked is not None and blocked[0] <= counted:
            held = held or (f"operation {blocked[2]}" if blocked[2] else f"event {blocked[0]} of no operation")
            continue
        last, upto, leaving = seq - 1, counted, over
    head = b""
    if last:
        row = conn.execute("SELECT hash FROM audit WHERE seq=?", (last,)).fetchone()
        head = bytes(row[0]) if row is not None else reached(conn)[2]
    return Plan(
        before=before, ops=tuple(ops), after=after, last=last, head=head, events_after=events, events=upto,
        epochs_over=over, epochs=leaving, held_by=held, more=more,
    )  # fmt: skip


def reached(conn: Any) -> tuple[int, int, bytes]:
    """The last link and the last event that left before, and the hash of that link; zeros: none did."""
    found = conn.execute("SELECT last, events, hash FROM archive ORDER BY no DESC LIMIT 1").fetchone()
    return (0, 0, b"") if found is None else (found[0], found[1], bytes(found[2]))


def _events_before(conn: Any, after: int, events: int) -> int:
    """The number of the event before the first link that is there."""
    if after:
        return events
    # a chain that began late: its first event links stand for the events after those recorded before
    (links,) = conn.execute(_EVENTS, (0, 1 << 62)).fetchone()
    (recorded,) = conn.execute("SELECT coalesce(max(seq), 0) FROM event").fetchone()
    return int(recorded) - int(links)


def resumed(conn: Any, before: Instant, ids: Sequence[str], after: int, last: int) -> Plan | None:
    """The plan of a file that was written before; None: it does not fit what the store has now."""
    ops = [row[0] for row in conn.execute(_SETTLED_OF, (before, json.dumps(list(ids)))).fetchall()]
    now = plan(conn, before)
    if len(ops) != len(ids) or now.after != after or last > now.last or (last != after and last != now.last):
        return None
    events = now.events if last == now.last else now.events_after
    return msgspec.structs.replace(now, ops=tuple(sorted(ops)), last=last, events=events)


def records(conn: Any, wanted: Plan) -> Iterator[Record]:
    """The lines of the file behind its links."""
    for op in wanted.ops:
        row = conn.execute(_OPERATION, (op,)).fetchone()
        yield OperationLine(*row)
        n = 0
        while found := conn.execute(_CHARGES, (op, n, PAGE)).fetchall():
            for one in found:
                seen = None if one[12] is None else Seen(*one[12:])
                yield ChargeLine(row[0], one[0], Charge(*one[1:12]), seen)
            n = found[-1][0]
    at = wanted.events_after
    while at < wanted.events and (found := conn.execute(_STORY, (at, wanted.events, PAGE)).fetchall()):
        for seq, name, *fields in found:
            yield EventLine(seq, name, event_rows.event_record(name, tuple(fields)))
        at = found[-1][0]


def archived(conn: Any, operation_id: str | None) -> tuple[int, str] | None:
    """The archive that holds the first events of an operation, or the newest that holds any: its number and file."""
    which = "a.events > coalesce((SELECT max(b.events) FROM archive b WHERE b.no < a.no), 0)"
    if operation_id is None:
        found = conn.execute(f"SELECT a.no, a.path FROM archive a WHERE {which} ORDER BY a.no DESC LIMIT 1")
    else:
        found = conn.execute(
            "SELECT a.no, a.path FROM operation o JOIN archived d ON d.op=o.op JOIN archive a ON a.no>=d.archive "
            f"WHERE o.id=? AND {which} ORDER BY a.no LIMIT 1",
            (operation_id,),
        )
    row = found.fetchone()
    return None if row is None else (int(row[0]), str(row[1]))


def cut(tx: Transaction, wanted: Cutting) -> int:
    """Remove what *wanted* holds, and say so; returns the number of the archive. Raises Stale: something moved."""
    conn, leaving = tx.conn, wanted.plan
    ops = json.dumps(leaving.ops)
    _require_unchanged(conn, leaving, ops, wanted.charges)
    (no,) = conn.execute("SELECT coalesce(max(no), 0) + 1 FROM archive").fetchone()
    (observations,) = conn.execute(
        "SELECT count(*) FROM json_each(?) j CROSS JOIN intent i ON i.operation=j.value "
        "JOIN observation s ON s.intent=i.id", (ops,)
    ).fetchone()  # fmt: skip
    requests, requests_to = conn.execute(
        f"SELECT count(*), coalesce(max(id), 0) FROM request WHERE {_REQUESTS_OF}", (ops, ops)
    ).fetchone()
    conn.execute(
        "INSERT INTO archive(no, at, before, path, bytes, sha256, after, last, hash, epoch, signature, operations, "
        "charges, observations, requests, requests_to, events) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        (
            *(no, tx.now.wall, leaving.before, wanted.path, wanted.size, wanted.sha256, leaving.after, leaving.last),
            *(leaving.head, wanted.epoch, wanted.signature, len(leaving.ops), wanted.charges, observations),
            *(requests, requests_to, leaving.events),
        ),
    )
    conn.execute(
        "INSERT INTO archived(op, sends, archive) SELECT j.value, (SELECT count(*) FROM intent i "
        "WHERE i.operation=j.value), ? FROM json_each(?) j",
        (no, ops),
    )
    # before its rows go: its number follows theirs
    tx.record(wanted.event, Prev(None, None))
    _remove(conn, leaving, ops, (requests, observations, wanted.charges))
    if wanted.cut is not None:
        conn.execute("INSERT OR REPLACE INTO document(kind, name, value) VALUES('audit', 'cut', ?)", (wanted.cut,))
    tx.next_change()
    return int(no)


def _require_unchanged(conn: Any, leaving: Plan, ops: str, charges: int) -> None:
    settled, counted = conn.execute(
        f"SELECT (SELECT count(*) FROM json_each(?2) j CROSS JOIN operation o ON o.op=j.value WHERE {_SETTLED} "
        "AND NOT EXISTS(SELECT 1 FROM archived a WHERE a.op=o.op)), "
        "(SELECT count(*) FROM json_each(?2) j CROSS JOIN intent i ON i.operation=j.value)",
        (leaving.before, ops),
    ).fetchone()
    last, _, _ = reached(conn)
    link = conn.execute("SELECT hash FROM audit WHERE seq=?", (leaving.last,)).fetchone()
    same = leaving.last == leaving.after or (link is not None and bytes(link[0]) == leaving.head)
    if (settled, counted, last) != (len(leaving.ops), charges, leaving.after) or not same:
        raise Stale("what was to be archived has changed meanwhile; nothing was removed: run it again")


def _remove(conn: Any, leaving: Plan, ops: str, counts: tuple[int, int, int]) -> None:
    requests, observations, charges = counts
    of = "operation IN (SELECT value FROM json_each(?))"
    gone = conn.execute(f"DELETE FROM request WHERE {_REQUESTS_OF}", (ops, ops)).rowcount
    must(gone, requests, "requests were removed")
    ids = "SELECT i.id FROM json_each(?) j CROSS JOIN intent i ON i.operation=j.value"
    seen = conn.execute(f"DELETE FROM observation WHERE intent IN ({ids})", (ops,)).rowcount
    must(seen, observations, "observations were removed")
    conn.execute("DELETE FROM last_body WHERE op IN (SELECT value FROM json_each(?))", (ops,))
    must(conn.execute(f"DELETE FROM intent WHERE {of}", (ops,)).rowcount, charges, "intents were removed")
    if leaving.last == leaving.after:
        return
    links = conn.execute("DELETE FROM audit WHERE seq<=?", (leaving.last,)).rowcount
    must(links, leaving.last - leaving.after, "links were removed")
    events = conn.execute("DELETE FROM event WHERE seq<=?", (leaving.events,)).rowcount
    must(events, leaving.events - leaving.events_after, "events were removed")
    conn.execute("DELETE FROM document WHERE kind=? AND name<=?", (AUDIT_NOTE, f"{leaving.last:020d}"))
