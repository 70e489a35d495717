"""One archive file: what its lines are made of, writing it, giving it its name, holding it against the store.

Job: lines of a plan out of a store's rows; a file that is durable before it has its name; the proof that it holds what
the store holds. Must not know: what may leave the store, when it is removed. Source: spec S7, A4.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from pollcore.adapters import audit_parts as parts
from pollcore.adapters.audit_chain import LogState, Signer
from pollcore.adapters.audit_verify import Wanted, verify_file
from pollcore.adapters.store import archiving
from pollcore.adapters.store.transaction import AUDIT_NOTE
from pollcore.adapters.user_files import open_plain
from pollcore.chain import archive, layout
from pollcore.chain.evidence import MAX_LINE
from pollcore.chain.findings import Verdict
from pollcore.chain.layout import Kind
from pollcore.chain.lineage import KeyLink, Lineage, statement
from pollcore.chain.notes import key_text
from pollcore.facts import Refused, StoreUnusable

PART: Final = ".part"
PAGE: Final = 1_000
_NEW_KEYS: Final = (
    "SELECT a.blob, b.hash, d.value FROM audit a LEFT JOIN audit b ON b.seq=a.seq-1 "
    "LEFT JOIN document d ON d.kind=? AND d.name=printf('%020d', a.seq) "
    f"WHERE a.seq>? AND substr(a.blob, 70, 1)=x'{Kind.EPOCH:02x}' ORDER BY a.seq"
)
_LINKS: Final = "SELECT seq, blob, hash FROM audit WHERE seq>? AND seq<=? ORDER BY seq LIMIT ?"


class Job(msgspec.Struct, frozen=True):
    """All that the file is made of beside the rows."""

    plan: archiving.Plan
    log: LogState
    after: archive.After | None
    keys: Lineage


def job_of(conn: Any, log: LogState, plan: archiving.Plan) -> Job:
    """What the file of *plan* is made of."""
    cut = parts.cut_of(conn)
    if cut is None:
        (begin,) = conn.execute("SELECT blob FROM audit WHERE seq=1").fetchone()
        row = conn.execute("SELECT value FROM document WHERE kind=? AND name=?", (AUDIT_NOTE, f"{1:020d}")).fetchone()
        keys = Lineage(bytes(begin), "" if row is None else bytes(row[0]).decode())
    else:
        keys = cut.keys
    later = conn.execute(_NEW_KEYS, (AUDIT_NOTE, cut.seq if cut is not None else 1)).fetchall()
    behind = cut.hash if cut is not None else b""
    links = tuple(KeyLink(bytes(b or behind), bytes(link), bytes(note or b"").decode()) for link, b, note in later)
    keys = Lineage(keys.begin, keys.note, (*keys.epochs, *links))
    if not plan.last:
        plan = msgspec.structs.replace(plan, head=layout.genesis(log.log_id, log.first))
    return Job(plan, log, None if cut is None else archive.After(cut.seq, cut.hash), keys)


def up_to(keys: Lineage, seq: int) -> Lineage:
    """The epochs that began at *seq* or before."""
    begun = [link for link in keys.epochs if (header := layout.header_of(link.link)) is not None and header.seq <= seq]
    return Lineage(keys.begin, keys.note, tuple(begun))


def lines_of(conn: Any, job: Job) -> Iterator[tuple[bytes, type[msgspec.Struct] | None]]:
    """Head and body, each with its kind."""
    plan, log = job.plan, job.log
    first = archive.First(
        archive.FORMAT,
        log.log_id.hex(),
        key_text(log.log_id, log.first),
        job.after,
        plan.last,
        plan.head,
        plan.before,
        job.keys,
    )
    yield archive.encode(first), None
    # one link more: its new keys are signed by those of the links before it, and it is under a checkpoint
    upto = plan.last + 1 if plan.last != plan.after else plan.last
    rows = _paged(conn, plan.after, upto)
    notes = conn.execute(
        "SELECT name, value FROM document WHERE kind=? AND name>? AND name<=? ORDER BY name",
        (AUDIT_NOTE, f"{plan.after:020d}", f"{upto:020d}"),
    ).fetchall()
    told = ((int(name), bytes(value).decode()) for name, value in notes)
    for line in archive.body(rows, told, archiving.records(conn, plan)):
        yield archive.encode(line), type(line)


def _paged(conn: Any, after: int, upto: int) -> Iterator[tuple[int, bytes, bytes]]:
    while after < upto and (found := conn.execute(_LINKS, (after, upto, PAGE)).fetchall()):
        yield from found
        after = found[-1][0]


def signed(conn: Any, job: Job, signer: Signer) -> Iterator[bytes]:
    """All lines, the signed end included."""
    counted = archive.Counting()
    for line, kind in lines_of(conn, job):
        yield counted.add(line, kind)
    total, plan = counted.digest, job.plan
    message = statement(job.log.log_id, plan.after, plan.last, plan.head, total.digest())
    end = archive.Sum(*counted.numbers(), total.hexdigest(), job.log.epoch, signer.sign(message))
    yield archive.encode(archive.EndLine(end))


# --- the file ---------------------------------------------------------------------------------------------------------


def part_of(target: Path) -> Path:
    """Its name until it is verified."""
    return target.with_name(target.name + PART)


def write(target: Path, lines: Iterator[bytes]) -> None:
    """Under another name, mode 0600, synced."""
    place = part_of(target)

    def work() -> None:
        if os.path.lexists(target):
            raise FileExistsError(0, "it exists already, and is no archive of what is here now")
        place.unlink(missing_ok=True)
        handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            for line in lines:
                file.write(line)
            file.flush()
            os.fsync(file.fileno())

    try:
        _doing(target, work)
    except BaseException:
        place.unlink(missing_ok=True)
        raise


def publish(target: Path) -> None:
    """Give the verified file its name; nothing is overwritten."""
    place = part_of(target)

    def work() -> None:
        os.link(place, target)
        place.unlink()
        sync_folder(target.parent)

    _doing(target, work)


def withdraw(target: Path) -> None:
    """Remove a file that the store did not take. Raises Refused: it is still there, and says what it is."""
    try:
        target.unlink(missing_ok=True)
        sync_folder(target.parent)
    except OSError as error:
        raise Refused(
            f"{target}: no archive of this store, which changed meanwhile and still has all it holds; it cannot be "
            f"removed ({error.strerror}): remove it",
            code="file",
        ) from None


def _doing(target: Path, work: Callable[[], None]) -> None:
    try:
        work()
    except OSError as error:
        raise Refused(f"{target}: {error.strerror}; nothing was removed from the store", code="file") from None


def sync_folder(folder: Path) -> None:
    """Make the names in it durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def verified(conn: Any, job: Job, path: Path) -> tuple[archive.Counting, archive.Sum]:
    """The file as it lies there, against its keys and, line by line, against the store. Raises Refused."""
    try:
        report = verify_file(path, Wanted(key=(job.log.log_id, job.log.first)))
    except (Refused, StoreUnusable) as error:
        raise Refused(f"{path}: written, and cannot be verified: {error}; nothing was removed", code="file") from None
    if report.verdict is not Verdict.INTACT:
        why = report.faults[0].text if report.faults else report.verdict.value
        raise Refused(f"{path}: written, and not whole: {why}; nothing was removed", code="archive")
    counted = archive.Counting()
    with open_plain(path) as file:
        for line, kind in lines_of(conn, job):
            if file.readline(MAX_LINE + 1) != line:
                raise Refused(f"{path}: does not hold what the store holds; nothing was removed", code="archive")
            counted.add(line, kind)
        try:
            end = archive.parse(file.readline(MAX_LINE + 1))
        except ValueError:
            end = None
        if not isinstance(end, archive.EndLine) or end.end.sha256 != counted.digest.hexdigest():
            raise Refused(f"{path}: holds more than the store does; nothing was removed", code="archive")
    return counted, end.end
