"""Links and checkpoints out of a store or an evidence file, verified; and a store's log written as an evidence file.

Job: read in pieces, memory flat, with no transaction held open while it reads; hand to the pure verifier. Must not
know: what makes a log whole, private keys. Nothing is written to the store, and it is opened through SQLite alone.
Source: spec A3, A4.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import msgspec

from pollcore.adapters import audit_parts as parts
from pollcore.adapters.audit_chain import decode_state
from pollcore.adapters.store import connecting
from pollcore.adapters.store.library import sqlite3
from pollcore.adapters.store.transaction import AUDIT_LOG, AUDIT_NOTE
from pollcore.chain import archive, evidence
from pollcore.chain.findings import ORDER, Fault, Head, Report, Verdict
from pollcore.chain.notes import key_text
from pollcore.chain.verify import Row, Start, Verifier
from pollcore.facts import Refused

CHUNK: Final = 2_000
"""Links that are read at once."""
CACHE_KIB: Final = 2_048
MAGIC: Final = b"SQLite format 3\x00"
STORE_NAME: Final = "pollconsole.db"
"""A file of this name is a store; it is never opened by hand to find out (O6)."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a verification is to be held against."""

    key: tuple[bytes, bytes] | None = None
    """Log id and first verification key that were kept elsewhere."""
    heads: Sequence[Head] = ()
    progress: Callable[[int], None] | None = None
    """Called now and then with the number of links read."""
    archives: Sequence[Path] = ()
    """Archive files of this store, from the oldest wanted one to the newest: their links are verified before it."""


def verify_store(path: Path, wanted: Wanted) -> Report:
    """Verify the chain of a store or of a copy of one. Raises StoreUnusable: it cannot be opened at all."""
    if not path.exists():
        return _missing(f"{path}: there is no store")
    try:
        with closing(_connect(path)) as conn:
            tables = _tables(conn)
            if tables.isdisjoint({"audit"}):
                return _missing(f"{path}: there is no audit table in it")
            source = _Source(conn)
            cut = parts.Cuts(conn, tables, wanted.archives)
            verifier = _verifier(wanted, cut.start)
            report = verifier.run(cut.rows(source.rows()), cut.notes(source.notes()))
            report = cut.judged(report, verifier.keys)
    except sqlite3.Error as error:
        fault = Fault(Verdict.ALTERED, None, f"{path}: SQLite cannot read it ({type(error).__name__}): damaged")
        return Report(verdict=Verdict.ALTERED, faults=(fault,), fault_count=1)
    return _with(report, [*source.faults, *cut.faults])


def verify_file(path: Path, wanted: Wanted) -> Report:
    """Verify an evidence file, or a store by another name. Raises Refused: it is neither."""
    if path.name == STORE_NAME:
        return verify_store(path, wanted)
    try:
        with path.open("rb") as file:
            if file.read(len(MAGIC)) == MAGIC:
                file.close()
                return verify_store(path, wanted)
            file.seek(0)
            part = archive.FORMAT.encode() in file.readline(evidence.MAX_LINE + 1)[:100]
            file.seek(0)
            if part:
                return _verify_part(path, parts.lines(file), wanted)
            reader = evidence.Reader(parts.lines(file))
            with path.open("rb") as again:
                report = _verifier(wanted).run(reader.rows(), evidence.notes_of(parts.lines(again)))
    except FileNotFoundError:
        return _missing(f"{path}: there is no such file")
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}", code="file") from None
    except ValueError as error:
        raise Refused(f"{path}: {error}", code="evidence") from None
    if report.key is not None and report.key != reader.first.key:
        reader.faults.append(Fault(Verdict.ALTERED, None, "its head line names another key than its first link"))
    return _with(report, reader.faults)


def _verify_part(path: Path, source: Iterator[bytes], wanted: Wanted) -> Report:
    """An archive file alone: its links, its keys, its sum and its signature."""
    part = parts.Part(path, source)
    with path.open("rb") as again:
        verifier = _verifier(wanted, part.start())
        report = verifier.run(part.rows(), evidence.notes_of(parts.lines(again)))
    return _with(report, part.judged(report, verifier.keys, wanted.key))


def write_evidence(database: Path, target: Path) -> int:
    """Write the log of the store as an evidence file, mode 0600, whole or not at all; returns how many links.

    Where links were archived, the file begins behind them. Raises Refused: it exists, cannot be written, or there is
    no chain.
    """
    with closing(_connect(database)) as conn:
        raw = conn.execute("SELECT value FROM document WHERE kind=? AND name=?", AUDIT_LOG).fetchone()
        if raw is None:
            raise Refused("there is no audit chain in this home yet", code="audit")
        log = decode_state(bytes(raw[0]))
        source = _Source(conn)
        text = (log.log_id.hex(), key_text(log.log_id, log.first))
        cut = parts.cut_of(conn)
        written: Iterator[bytes]
        if cut is None:
            written = evidence.lines(evidence.First(evidence.FORMAT, *text), source.rows(), source.notes())
        else:
            written = parts.rest(text, cut, source.tip(), source.rows(), source.notes())
        try:
            handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Refused(f"{target}: {error.strerror}; nothing is overwritten", code="file") from None
        try:
            with os.fdopen(handle, "wb") as file:
                for line in written:
                    file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            target.unlink(missing_ok=True)
            raise
    return int(source.last) - (cut.seq if cut is not None else 0)


class _Source:
    """Links and checkpoints as they were at one moment, read in pieces."""

    def __init__(self, conn: Any) -> None:
        self._conn = conn
        self.faults: list[Fault] = []
        conn.execute("BEGIN")
        try:
            (self.last,) = conn.execute("SELECT coalesce(max(seq), 0) FROM audit").fetchone()
            (self._last_note,) = conn.execute("SELECT max(name) FROM document WHERE kind=?", (AUDIT_NOTE,)).fetchone()
        finally:
            conn.execute("ROLLBACK")

    def tip(self) -> tuple[int, bytes]:
        """Number and hash of the last link."""
        seq, head = self._conn.execute("SELECT seq, hash FROM audit WHERE seq=?", (self.last,)).fetchone()
        return int(seq), bytes(head)

    def rows(self) -> Iterator[Row]:
        """In the order of their numbers."""
        after = -(1 << 63)
        while True:
            found = self._conn.execute(
                "SELECT seq, blob, hash FROM audit WHERE seq>? AND seq<=? ORDER BY seq LIMIT ?",
                (after, self.last, CHUNK),
            ).fetchall()
            if not found:
                return
            yield from found
            after = found[-1][0]

    def notes(self) -> Iterator[tuple[int, str]]:
        """In the order of their numbers; a name that is no number is a fault."""
        after = ""
        while self._last_note is not None:
            found = self._conn.execute(
                "SELECT name, value FROM document WHERE kind=? AND name>? AND name<=? ORDER BY name LIMIT ?",
                (AUDIT_NOTE, after, self._last_note, CHUNK),
            ).fetchall()
            for name, value in found:
                if len(name) == 20 and name.isascii() and name.isdecimal():
                    yield int(name), bytes(value).decode("utf-8", "replace")
                else:
                    self.faults.append(Fault(Verdict.ALTERED, None, "a checkpoint is kept under a name of no link"))
            if not found:
                return
            after = found[-1][0]


def _connect(path: Path) -> Any:
    conn = connecting.connect(str(path), read_only=True)
    conn.execute(f"PRAGMA cache_size=-{CACHE_KIB}")  # every page is read once
    return conn


def _tables(conn: Any) -> set[str]:
    return {name for (name,) in conn.execute("SELECT name FROM sqlite_master WHERE type='table'").fetchall()}


def _verifier(wanted: Wanted, start: Start | None = None) -> Verifier:
    return Verifier(key=wanted.key, heads=wanted.heads, progress=wanted.progress, start=start)


def _missing(text: str) -> Report:
    return Report(verdict=Verdict.MISSING, faults=(Fault(Verdict.MISSING, None, text),), fault_count=1)


def _with(report: Report, faults: Sequence[Fault]) -> Report:
    """*report* and what is wrong around its links."""
    if not faults:
        return report
    listed = [fault for fault in report.faults if fault.kind is not Verdict.TAIL]
    worst = min((report.verdict, *(fault.kind for fault in faults)), key=ORDER.index)
    count = report.fault_count - (len(report.faults) - len(listed)) + len(faults)
    return msgspec.structs.replace(report, verdict=worst, faults=(*listed, *faults), fault_count=count)
