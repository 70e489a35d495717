"""The audit chain for the command line: verify, export, keys, what `doctor` says of it.

Job: gather what a verification is held against, call the core, hand reports back as documents. Must not know: output,
exit codes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pollconsole.proof_words import NOT_ASKED
from pollcore.facts import CredentialUnavailable, Instant, Refused, StoreUnusable, iso

if TYPE_CHECKING:
    from pollcore.assembly import Core
    from pollcore.chain.findings import Archived, Head, Report

MAX_COMPARED: Final = 3
"""Times that the links are read until no archive was made in between."""


def verify(
    home: Path | None,
    file: str | None,
    *,
    heads: Sequence[str] = (),
    key: str | None = None,
    archives: Sequence[str] = (),
    progress: Callable[[int], None] | None = None,
    **overrides: Any,
) -> dict[str, Any]:
    """Verify the home's store, or *file*; needs no key and writes nothing. Raises Refused, StoreUnusable.

    Args:
        heads: each a signed checkpoint, a file of one, or `NUMBER:HASH`.
        key: the verification key that was kept elsewhere.
        archives: archive files of this store, verified before what it still has, as one log.
    """
    from pollcore.adapters.audit_verify import Wanted, verify_file, verify_store
    from pollcore.assembly import open_core
    from pollcore.chain.notes import parse_key

    known = [_head(text) for text in heads]
    try:
        kept = parse_key(key) if key is not None else None
    except ValueError as error:
        raise Refused(f"--key: {error}", code="key") from None
    anchored = NOT_ASKED
    if file is None:
        core = open_core(home, **overrides)
        asked = asyncio.run(_anchor(core))
        anchored = asked.said
        paths = [Path(name) for name in archives]
        wanted = Wanted(
            key=kept, heads=[*known, *asked.heads()], progress=progress, archives=paths, no_anchor_in=asked.gone_from
        )
        report = verify_store(core.home.database, wanted)
    else:
        report = verify_file(Path(file), Wanted(key=kept, heads=known, progress=progress))
    return document(report) | {"anchor": anchored}


class Asked(msgspec.Struct, frozen=True):
    """What came of asking for the anchor. *said*: for people."""

    said: str
    anchor: Any = None
    gone_from: str | None = None
    """The place that has no anchor; None: it has one, or could not be asked."""

    def heads(self) -> list[Head]:
        """What a verification is held against."""
        from pollcore.chain.findings import Head

        found = self.anchor
        return [] if found is None else [Head(found.seq, found.hash, "the anchor", found.log_id)]


async def _anchor(core: Core) -> Asked:
    """The anchor of a home that is not opened; its settings say where it is looked for. As `anchor`."""
    try:
        core.configure()
    except Refused as error:
        return Asked(f"not compared: {error}")
    return await anchor(core)


async def anchor(core: Core) -> Asked:
    """The anchor of the home and what to say of it; the keyring is asked for nothing else, and nothing is opened."""
    try:
        found = await core.audit.room.anchor()
    except Refused as error:
        # an entry that is no anchor: whoever wrote it took the anchor away
        gone = core.audit.room.anchor_in if error.code == "anchor" else None
        return Asked(f"not compared: {error}", gone_from=gone)
    except CredentialUnavailable as error:
        return Asked(f"not compared: {error}")
    if found is None:
        return Asked(f"none in the {core.audit.room.anchor_in}", gone_from=core.audit.room.anchor_in)
    return Asked(f"link {found.seq:,}", found)


def _head(text: str) -> Head:
    from pollcore.adapters.user_files import open_plain
    from pollcore.chain.findings import Head
    from pollcore.chain.notes import parse_head

    path = Path(text)
    try:
        if len(text) < 4_000 and "\n" not in text and path.is_file():
            with open_plain(path) as file:
                text = file.read(4_096).decode("utf-8", "replace")
        log_id, seq, head = parse_head(text)
    except (ValueError, OSError) as error:
        raise Refused(f"--expect-head: {error}", code="head") from None
    return Head(seq, head, "the expected head", log_id)


def document(report: Report) -> dict[str, Any]:
    """A report as `audit verify --json` prints it, without `anchor`."""
    return {
        "verdict": report.verdict.value,
        "exit_code": report.verdict.exit_code,
        "faults": [{"kind": f.kind.value, "link": f.seq, "text": f.text} for f in report.faults],
        "fault_count": report.fault_count,
        "log": report.log,
        "key": report.key,
        "key_compared": report.key_compared,
        "keys_in": report.keys_in,
        "links": report.links,
        "first_link": report.first,
        "last_link": report.last,
        "head": None if report.head is None else f"{report.last}:{report.head.hex()}",
        "epoch": report.epoch,
        "checkpoints": report.notes,
        "signed_to": report.signed_to,
        "confirmed_to": report.known_to,
        "archives": [_archived(one) for one in report.archives],
        "remarks": list(report.remarks),
    }


def _archived(one: Archived) -> dict[str, Any]:
    """*held* true: the file was given, and is the one that the store names."""
    return {
        "archive": one.no,
        "at": iso(Instant(one.at)),
        "file": one.path,
        "bytes": one.size,
        "sha256": one.sha256.hex(),
        "first_link": one.after + 1 if one.last > one.after else None,
        "last_link": one.last if one.last > one.after else None,
        "operations": one.operations,
        "requests": one.charges,
        "held": one.held,
    }


async def export(core: Core, target: Path) -> dict[str, Any]:
    """Sign the head if key and store let it, write the evidence file with the checkpoints that are stored.

    A store that can only be read, as a copy that is evidence, gets no new checkpoint: `why` says so. Raises Refused,
    StoreUnusable.
    """
    from pollcore.adapters.audit_verify import write_evidence

    cannot = None
    if await core.audit.load(core.store):
        try:
            await core.audit.sign_head(core.store, core.clock.now())
        except StoreUnusable as error:
            cannot = str(error)
    made = await asyncio.to_thread(write_evidence, core.home.database, target)
    state = core.audit.state
    signed = made.last > 0 and made.signed_to == made.last
    return {"file": str(target), "links": made.links, "last_link": made.last, "signed_to": made.signed_to,
            "signed": signed, "key": state.key, "why": cannot or state.why}  # fmt: skip


async def compare_story(core: Core) -> dict[str, Any]:
    """Hold the clear rows against their sealed copies; needs the reading keys. Raises CredentialUnavailable.

    Grants are held against their sealed copies, records, questions and contracts against the events that are. A core
    may be at work meanwhile.
    """
    from pollconsole.bridge import contrary
    from pollcore.adapters.audit_grants import SealedGrants
    from pollcore.adapters.audit_parts import cut_from
    from pollcore.adapters.audit_read import compare

    for _ in range(MAX_COMPARED):
        cut = await cut_from(core.store)
        # before the links: what is given meanwhile is sealed, and not looked for
        grants = SealedGrants(await core.store.grant_bodies())
        found = await compare(core.store, core.audit.room, grants.hear)
        if await cut_from(core.store) == cut:
            break  # no link left for an archive while they were read
    # after them: what is given meanwhile has its row by now
    differing = grants.differing(await core.store.grant_bodies(), whole=found.before == 0)
    beside = [*differing, *await contrary.told(core)]
    return {"events": found.events, "unreadable": found.unreadable, "differing": [*found.differing, *beside],
            "differing_count": found.differing_count + len(beside)}  # fmt: skip


async def new_keys(core: Core, why: str) -> dict[str, Any]:
    """A new key epoch. Raises Refused, CredentialUnavailable."""
    from pollcore.adapters.audit_epochs import rotate

    await core.audit.load(core.store)
    log = await rotate(core.audit, core.store, core.clock.now(), why)
    return {"epoch": log.epoch}


async def forget(core: Core, epoch: int, because: str, operator: str | None = None) -> None:
    """Delete an old epoch's reading key for good, on record. Raises Refused, CredentialUnavailable."""
    await forget_epochs(core, [epoch], because, operator)


async def forget_epochs(core: Core, epochs: Sequence[int], because: str, operator: str | None = None) -> None:
    """The same for several. It is on record before the first key is gone: a call that is cut off is known."""
    from pollcore.adapters.audit_epochs import forget as delete
    from pollcore.adapters.audit_epochs import require_over
    from pollcore.adapters.audit_read import reading_keys
    from pollcore.facts import AuditEvent, EventName

    await core.prepare()
    public = await reading_keys(core.store)
    for epoch in epochs:
        if epoch not in public:
            raise Refused(f"the log has no epoch {epoch}", code="audit")
        require_over(core.audit, epoch)
    now = core.clock.now()
    text = f"reading keys of audit epochs {', '.join(map(str, epochs))} deleted"
    event = AuditEvent(at=now.wall, event=EventName.AUDIT_KEYS, text=text, detail=because, operator=operator)
    await core.store.record(now, (event,))
    for epoch in epochs:
        await delete(core.audit, epoch, public[epoch])


async def epochs(core: Core) -> list[dict[str, Any]]:
    """Every epoch of the log: `epoch`, `from`, `until` (null: it is in force), `readable`. Asks the keyring."""
    from pollcore.adapters.audit_read import epochs as every

    found = await every(core.store, core.audit.room)
    return [
        {"epoch": one.epoch, "from": iso(one.since), "until": None if one.until is None else iso(one.until),
         "readable": one.readable}
        for one in found
    ]  # fmt: skip


async def move_keys(core: Core, operator: str) -> dict[str, Any]:
    """Move keys out of files of the home to where the settings want them. Raises Refused, CredentialUnavailable."""
    from pollcore.adapters.audit_move import Move, settled
    from pollcore.adapters.worker_lock import Deaths
    from pollcore.facts import SECOND, AuditEvent, EventName

    await core.audit.load(core.store)
    now = core.clock.now()
    is_dead = Deaths(core.home.workers)
    recent = [one for one in await core.store.workers() if now.wall - one.beat_at < 60 * SECOND]
    live = [one for one in recent if not is_dead(one.owner)]
    if live:
        raise Refused(
            f"stop the core first, process {live[0].pid} on {live[0].host}: it holds the keys", code="running"
        )
    move = Move(core.home.home, core.vault, core.config.audit_key_file)
    where = await asyncio.to_thread(move.copy)
    text = f"keys moved from the home's files to {'the keyring' if where == 'keyring' else where}"
    event = AuditEvent(at=now.wall, event=EventName.AUDIT_KEYS, text=text, operator=operator)
    await core.store.record(now, (event,))
    await asyncio.to_thread(move.remove)
    epoch = await settled(core.audit, core.store, now)
    await asyncio.to_thread(move.end)
    return {"keys_in": where, "epoch": epoch}


async def accept_loss(core: Core, because: str) -> None:
    """Go on after a loss that the anchor knows of, on record. Raises CredentialUnavailable; Refused: nothing is lost.

    A whole log keeps no record of a loss that never was: everybody who verifies it would read that.
    """
    from pollcore.adapters.audit_epochs import accept_loss as accept

    await core.prepare()
    await core.audit.anchor(core.store, core.clock.now())
    state = core.audit.state
    if not state.alarm and state.why is None:
        raise Refused(
            "nothing is lost: the chain holds the link that the anchor knows ('pollconsole audit verify' proves it)",
            code="no_loss",
        )
    await accept(core.audit, core.store, core.clock.now(), because)
