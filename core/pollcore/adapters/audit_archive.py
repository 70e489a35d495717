"""What has ended long ago moves into a file that anybody can verify, and out of the store.

Job: write the file, make it durable, verify it, then have the store remove what it holds, in one transaction; take up
what an earlier call left behind. Must not know: what may leave and how it is removed (store.archiving), the file
(audit_archive_file). Source: spec S7, B2, O6, A4.

A process may die anywhere. Before the last step the store has all it had, and the file is a copy, under a name that no
reader takes for a whole one until it is verified. After it, the store names the file, its sum and its signature. Two
calls at once would write two files of which the store names one: the second is refused, and a file that the store did
not take is removed.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from pollcore.adapters import audit_archive_file as files
from pollcore.adapters import audit_parts as parts
from pollcore.adapters.audit_chain import LogState, Signer
from pollcore.adapters.audit_checkpoint import AuditKeeper
from pollcore.adapters.store import archiving, connecting
from pollcore.adapters.store.errors import unusable
from pollcore.adapters.store.library import sqlite3
from pollcore.adapters.user_files import open_plain
from pollcore.chain import archive
from pollcore.chain.lineage import Cut
from pollcore.facts import HOUR, AuditEvent, EventName, Instant, Moment, Refused, Stale

YOUNGEST_MS: Final = HOUR
"""What is younger stays: the caps of requests an hour count it (B1)."""
FOLDER: Final = "archives"
"""In the home, where no file is named."""
CACHE_KIB: Final = 2_048


class Store(Protocol):
    """The part of the store that archives. Beside it, the audit's keeper needs its own."""

    async def archive(self, now: Moment, wanted: archiving.Cutting) -> int: ...


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What was archived, or would be. Counts; sizes in bytes."""

    no: int | None
    """None: nothing was removed."""
    file: str | None
    size: int
    sha256: str
    operations: int
    requests: int
    events: int
    links: int
    epochs: int
    last_link: int
    held_by: str | None
    """Why a further epoch that is over stays."""
    epochs_over: int
    more: bool
    resumed: bool = False
    """The file was there already, from a call that was cut off."""


async def archive_ended(
    keeper: AuditKeeper,
    store: Any,
    database: Path,
    now: Moment,
    *,
    before: Instant,
    target: Path | None,
    dry_run: bool,
    operator: str,
) -> Outcome:
    """Archive what ended before *before*. *target* None: the next number in the home's folder.

    Raises Refused (`archive`, `unanchored`), CredentialUnavailable, StoreUnusable, Stale: nothing was removed.
    """
    if before > now.wall - YOUNGEST_MS:
        raise Refused("--before: what is younger than an hour is still counted; name an earlier time", code="archive")
    log = keeper.log if await keeper.load(store) else None
    if log is None or keeper.chain.alarm is not None:
        raise Refused(f"nothing is archived: {keeper.chain.alarm or 'there is no audit chain yet'}", code="archive")
    if dry_run:
        return await asyncio.to_thread(_weigh, database, log, before)
    await keeper.open_signer()
    signer = keeper.chain.signer
    if signer is None or not await keeper.anchor(store, now):
        raise Refused(f"nothing is archived without the audit's keys and anchor: {keeper.state.why}", code="unanchored")
    with _alone(database.parent):
        wanted = await asyncio.to_thread(_written, database, log, before, target, signer)
        if wanted is None:
            return await asyncio.to_thread(_weigh, database, log, before)
        made, cutting, resumed = wanted
        try:
            no = await store.archive(now, msgspec.structs.replace(cutting, event=_told(made, now, operator)))
        except Stale:
            # rolled back: it looks whole, and is no archive of this store
            await asyncio.to_thread(files.withdraw, Path(cutting.path))
            raise
    await keeper.sign_head(store, now)
    await keeper.anchor(store, now)
    return msgspec.structs.replace(made, no=no, resumed=resumed)


def _told(made: Outcome, now: Moment, operator: str) -> AuditEvent:
    links = f", links to {made.last_link}" if made.links else ""
    return AuditEvent(
        at=now.wall,
        event=EventName.ARCHIVED,
        operator=operator,
        detail=f"{made.operations} operations, {made.requests} requests{links}",
        text=f"{made.file}, sha256 {made.sha256}",
    )


def _weigh(database: Path, log: LogState, before: Instant) -> Outcome:
    """What an archive would hold, nothing written."""
    with _reading(database) as conn:
        job = files.job_of(conn, log, archiving.plan(conn, before))
        counted = archive.Counting()
        if not job.plan.is_empty:
            for line in files.lines_of(conn, job):
                counted.add(*line)
        return _outcome(job.plan, counted, None, "")


def _written(
    database: Path, log: LogState, before: Instant, target: Path | None, signer: Signer
) -> tuple[Outcome, archiving.Cutting, bool] | None:
    """The file, whole, durable and verified; None: there is nothing to archive."""
    with _reading(database) as conn:
        if target is None:
            (no,) = conn.execute("SELECT coalesce(max(no), 0) + 1 FROM archive").fetchone()
            target = database.parent / FOLDER / f"{no:04d}.jsonl"
        target = target.absolute()
        found = _left_behind(conn, log, before, target)
        if found is None:
            job = files.job_of(conn, log, archiving.plan(conn, before))
            if job.plan.is_empty:
                return None
            if target.parent == database.parent / FOLDER:
                target.parent.mkdir(mode=0o700, exist_ok=True)
            files.write(target, files.signed(conn, job, signer))
        else:
            job = found
        counted, end = files.verified(conn, job, target if found is not None else files.part_of(target))
        if found is None:
            files.publish(target)
        size = target.stat().st_size
        made = msgspec.structs.replace(_outcome(job.plan, counted, str(target), end.sha256), size=size)
        cut = Cut(job.plan.last, job.plan.head, job.plan.events, files.up_to(job.keys, job.plan.last))
        return (
            made,
            archiving.Cutting(
                plan=job.plan,
                path=str(target),
                size=size,
                sha256=bytes.fromhex(end.sha256),
                epoch=end.epoch,
                signature=end.signature,
                charges=end.charges,
                cut=None if job.plan.last == job.plan.after else msgspec.json.encode(cut),
                event=AuditEvent(at=Instant(0), event=EventName.ARCHIVED),
            ),
            found is not None,
        )


def _left_behind(conn: Any, log: LogState, before: Instant, target: Path) -> files.Job | None:
    """What a file of this name was to remove, written by a call that was cut off. Raises Refused: it is another one."""
    if not os.path.lexists(target):
        return None
    try:
        with open_plain(target) as file:
            reader = archive.Reader(parts.lines(file))
            for _ in reader.rows():
                pass
    except (OSError, ValueError) as error:
        raise Refused(f"{target}: it exists, and is no archive: {error}; name another file", code="file") from None
    first = reader.first
    known = (
        reader.end is not None
        and conn.execute("SELECT no FROM archive WHERE sha256=?", (bytes.fromhex(reader.end.sha256),)).fetchone()
    )
    if known and archiving.plan(conn, before).is_empty:
        return None  # a second call, after the first one came to its end
    if known:
        raise Refused(f"{target}: archive {known[0]} of this store already; name another file", code="file")
    after = 0 if first.after is None else first.after.seq
    ids = [line.operation for line in reader.records]
    plan = None
    if first.log == log.log_id.hex() and first.before is not None and not reader.faults:
        plan = archiving.resumed(conn, Instant(first.before), ids, after, first.cut)
    if plan is None:
        raise Refused(
            f"{target}: it exists, and does not hold what would be archived now; name another file with --to",
            code="file",
        )
    job = files.job_of(conn, log, plan)
    files.part_of(target).unlink(missing_ok=True)
    files.sync_folder(target.parent)
    return msgspec.structs.replace(job, keys=first.keys)


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """No other call archives this home meanwhile. Raises Refused: one does. The lock ends with the process."""
    handle = os.open(home, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Refused(
                f"another archive of {home} is under way: this one wrote and removed nothing; run it again when that "
                "one has ended",
                code="archive",
            ) from None
        yield
    finally:
        os.close(handle)


@contextmanager
def _reading(database: Path) -> Iterator[Any]:
    """A connection of its own that sees one state of the store."""
    try:
        with closing(connecting.connect(str(database), read_only=True)) as conn:
            conn.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
            conn.execute("BEGIN")
            yield conn
    except sqlite3.Error as error:
        raise unusable(error, str(database), "archiving") from error


def _outcome(plan: archiving.Plan, counted: archive.Counting, file: str | None, sha256: str) -> Outcome:
    _, _, operations, charges, events = counted.numbers()
    return Outcome(
        no=None,
        file=file,
        size=counted.size,
        sha256=sha256,
        operations=operations,
        requests=charges,
        events=events,
        links=plan.last - plan.after,
        epochs=plan.epochs,
        last_link=plan.last,
        held_by=plan.held_by,
        epochs_over=plan.epochs_over,
        more=plan.more,
    )
