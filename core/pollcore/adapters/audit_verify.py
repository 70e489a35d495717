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
from pollcore.adapters.audit_anchor import ANCHORED
from pollcore.adapters.audit_chain import decode_state
from pollcore.adapters.store import connecting
from pollcore.adapters.store.library import sqlite3
from pollcore.adapters.store.transaction import AUDIT_LOG, AUDIT_NOTE
from pollcore.adapters.user_files import open_plain, why_unwritten
from pollcore.chain import archive, evidence
from pollcore.chain.findings import ORDER, Fault, Head, Report, Verdict
from pollcore.chain.notes import key_text
from pollcore.chain.verify import Row, Start, Verifier
from pollcore.facts import Refused, StoreUnusable

CHUNK: Final = 2_000
"""Links that are read at once."""
CACHE_KIB: Final = 2_048
MAGIC: Final = b"SQLite format 3\x00"
_OF_LINKS: Final = frozenset({Verdict.OTHER_LOG, Verdict.ALTERED, Verdict.REORDERED, Verdict.TRUNCATED})
KEYS_GONE: Final = (
    "the record of the chain's keys is gone from the store, so nothing can be added to it: put the store back from a "
    "backup"
)
UNCONFIRMED: Final = (
    ": links at the end may have been cut, and nothing here can tell; hold it against a head that was kept elsewhere "
    "(--expect-head), then 'pollconsole audit accept-loss' goes on, on record. A copy of a home has no anchor of its "
    "own: verify its store by naming the file"
)
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
    no_anchor_in: str | None = None
    """The place that was asked for the anchor and has none; None: there is one, or it could not be asked."""


class Written(msgspec.Struct, frozen=True):
    """What an evidence file holds."""

    links: int
    last: int
    """The number of its last link; 0: none."""
    signed_to: int
    """The link that its last checkpoint signs; 0: it has none."""


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
            beside = _beside(conn, report, wanted.no_anchor_in)
    except sqlite3.Error as error:
        fault = Fault(Verdict.ALTERED, None, f"{path}: SQLite cannot read it ({type(error).__name__}): damaged")
        return Report(verdict=Verdict.ALTERED, faults=(fault,), fault_count=1)
    return _with_lost(_with(report, [*source.faults, *cut.faults]), beside)


def verify_file(path: Path, wanted: Wanted) -> Report:
    """Verify an evidence file, or a store by another name. Raises Refused: it is neither."""
    if path.name == STORE_NAME:
        return verify_store(path, wanted)
    try:
        with open_plain(path) as file:
            if file.read(len(MAGIC)) == MAGIC:
                file.close()
                return verify_store(path, wanted)
            file.seek(0)
            part = archive.FORMAT.encode() in file.readline(evidence.MAX_LINE + 1)[:100]
            file.seek(0)
            if part:
                return _verify_part(path, parts.lines(file), wanted)
            reader = evidence.Reader(parts.lines(file))
            with open_plain(path) as again:
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
    with open_plain(path) as again:
        verifier = _verifier(wanted, part.start())
        report = verifier.run(part.rows(), evidence.notes_of(parts.lines(again)))
    return _with(report, part.judged(report, verifier.keys, wanted.key))


def write_evidence(database: Path, target: Path) -> Written:
    """Write the log of the store as an evidence file, mode 0600, whole or not at all.

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
        except BaseException as error:
            target.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise Refused(f"{target}: {why_unwritten(error)}; nothing of it was kept", code="file") from None
            raise
    return Written(int(source.last) - (cut.seq if cut is not None else 0), int(source.last), source.signed_to)


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

    @property
    def signed_to(self) -> int:
        """The link that the last checkpoint signs; 0: there is none, or it is kept under a name of no link."""
        return int(self._last_note) if _is_link(self._last_note) else 0

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
                if _is_link(name):
                    yield int(name), bytes(value).decode("utf-8", "replace")
                else:
                    self.faults.append(Fault(Verdict.ALTERED, None, "a checkpoint is kept under a name of no link"))
            if not found:
                return
            after = found[-1][0]


def _is_link(name: object) -> bool:
    """Whether a checkpoint's name is the number of a link."""
    return isinstance(name, str) and len(name) == 20 and name.isascii() and name.isdecimal()


def _connect(path: Path) -> Any:
    conn = connecting.connect(str(path), read_only=True)
    conn.execute(f"PRAGMA cache_size=-{CACHE_KIB}")  # every page is read once
    return conn


def _tables(conn: Any) -> set[str]:
    return {name for (name,) in conn.execute("SELECT name FROM sqlite_master WHERE type='table'").fetchall()}


def _verifier(wanted: Wanted, start: Start | None = None) -> Verifier:
    return Verifier(key=wanted.key, heads=wanted.heads, progress=wanted.progress, start=start)


def _beside(conn: Any, report: Report, no_anchor_in: str | None) -> list[Fault]:
    """What the store ought to have beside its links, and an anchor where it says that one was put."""
    said = dict(conn.execute("SELECT name, value FROM document WHERE kind='audit' AND name<>'cut'").fetchall())
    keys, found = said.get(AUDIT_LOG[1]), []
    if keys is None and report.links:
        found.append(Fault(Verdict.MISSING, None, KEYS_GONE))
    elif keys is not None and (wrong := _unlike(bytes(keys), report)) is not None:
        found.append(wrong)
    if no_anchor_in is not None and said.get(ANCHORED[1]) == no_anchor_in.encode():
        what = f"its anchor was put in the {no_anchor_in}, and is gone{UNCONFIRMED}"
        found.append(Fault(Verdict.MISSING, None, what))
    return found


def _unlike(raw: bytes, report: Report) -> Fault | None:
    """What is wrong with the record of the keys in force beside the links; None: nothing that the links deny."""
    try:
        log = decode_state(raw)
    except StoreUnusable:
        return Fault(Verdict.ALTERED, None, "the record of the chain's keys is damaged in the store")
    if log.epoch > report.epoch and log.since_seq > report.last > 0:
        what = f"the store's record of keys knows link {log.since_seq:,}, the chain ends at {report.last:,}"
        return Fault(Verdict.TRUNCATED, None, what)
    told = (log.log_id.hex(), key_text(log.log_id, log.first))
    same = report.log in (None, told[0]) and report.key in (None, told[1])
    if not same or (report.links and log.epoch != report.epoch):
        return Fault(Verdict.ALTERED, None, "the store's record of the chain's keys names other keys than its links")
    return None


def _missing(text: str) -> Report:
    return Report(verdict=Verdict.MISSING, faults=(Fault(Verdict.MISSING, None, text),), fault_count=1)


def _with_lost(report: Report, faults: Sequence[Fault]) -> Report:
    """*report* and what is gone beside its links: what is wrong with the links themselves names the verdict."""
    if report.verdict in _OF_LINKS and faults:
        return msgspec.structs.replace(_with(report, faults), verdict=report.verdict)
    return _with(report, faults)


def _with(report: Report, faults: Sequence[Fault]) -> Report:
    """*report* and what is wrong around its links."""
    if not faults:
        return report
    listed = [fault for fault in report.faults if fault.kind is not Verdict.TAIL]
    worst = min((report.verdict, *(fault.kind for fault in faults)), key=ORDER.index)
    count = report.fault_count - (len(report.faults) - len(listed)) + len(faults)
    return msgspec.structs.replace(report, verdict=worst, faults=(*listed, *faults), fault_count=count)
