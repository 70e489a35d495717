"""What the sealed links say, opened with the reading keys, and whether the clear rows of the story still say the same.

Job: open runs and links of every epoch whose key is at hand; compare the n-th event link with the n-th recorded event.
Must not know: SQL, how a chain is proved (that needs no key). Source: spec A3, A5.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final, Protocol

import msgspec
from cryptography.exceptions import InvalidTag

from pollcore.adapters.audit_chain import open_run
from pollcore.adapters.audit_keys import KeyRoom
from pollcore.adapters.audit_parts import cut_from
from pollcore.chain import control, layout
from pollcore.chain.layout import Header, Kind
from pollcore.chain.sealing import RowKeys
from pollcore.facts import AuditEvent, CredentialUnavailable, Instant, SealedUnreadable
from pollcore.ports import AuditLink

CHUNK: Final = 5_000
MAX_LISTED: Final = 100


class StoryStore(Protocol):
    """The part of the store that is compared."""

    async def audit_links(self, after: int = 0, limit: int = 10_000) -> Sequence[AuditLink]: ...

    async def events(
        self, operation_id: str | None = None, *, after: int = 0, limit: int = 10_000
    ) -> Sequence[tuple[int, AuditEvent]]: ...

    async def document(self, kind: str, name: str) -> bytes | None: ...


class Opened(msgspec.Struct, frozen=True):
    """One sealed link, opened. *plain* None: the key of its epoch is not at hand, or was deleted."""

    seq: int
    kind: Kind
    plain: bytes | None


class Compared(msgspec.Struct, frozen=True):
    """How the sealed copies and the clear rows agree."""

    events: int
    unreadable: int
    """Sealed under a key that is not at hand."""
    differing: tuple[str, ...]
    """Sentences, MAX_LISTED at most."""
    differing_count: int
    before: int = 0
    """Events that no link of these stands for: archived, or older than the log; 0: the log is whole."""


class _Keys:
    def __init__(self, room: KeyRoom) -> None:
        self._room = room
        self._epochs: dict[int, tuple[bytes, bool]] = {}
        self._runs: dict[bytes, RowKeys] = {}

    async def learn(self, header: Header, body: bytes) -> None:
        """A RUN link: open its key, if the epoch's reading key is at hand."""
        try:
            told = control.decode(body, control.Run)
            private = await self._room.reading(header.epoch, told.read)
            self._runs[header.writer] = open_run(private, header, told)
        except (ValueError, InvalidTag, CredentialUnavailable):
            return

    def open(self, header: Header, blob: bytes, before: bytes) -> bytes | None:
        keys = self._runs.get(header.writer)
        return keys.open(blob, before) if keys is not None else None


async def opened(store: StoryStore, room: KeyRoom) -> AsyncIterator[Opened]:
    """Every sealed link. Raises SealedUnreadable: one was altered."""
    keys, before, after = _Keys(room), b"", 0
    while links := await store.audit_links(after, CHUNK):
        for link in links:
            header = layout.header_of(link.blob)
            if header is None or len(link.hash) != layout.HASH or link.hash == bytes(layout.HASH):
                yield Opened(link.seq, Kind.EVENT, None)  # torn: it was an event as far as anybody knows
            elif header.kind == Kind.RUN:
                await keys.learn(header, layout.content(link.blob))
            elif header.kind in layout.SEALED:
                yield Opened(link.seq, Kind(header.kind), keys.open(header, link.blob, before))
            before = link.hash
        after = links[-1].seq


async def compare(store: StoryStore, room: KeyRoom, heard: Callable[[Opened], None] | None = None) -> Compared:
    """Hold the clear rows against their sealed copies. *heard*: is given every sealed link on the way."""
    count = unreadable = differing = 0
    said: list[str] = []
    cut, first = await cut_from(store), await store.audit_links(limit=1)
    if cut is not None:
        number = cut.events
    else:
        number = control.decode(layout.content(first[0].blob), control.Begin).events_before if first else 0
    rows: list[tuple[int, AuditEvent]] = []
    before, last = number, 0

    def differs(text: str) -> None:
        nonlocal differing
        differing += 1
        if len(said) < MAX_LISTED:
            said.append(text)

    async for link in _patient(opened(store, room), differs):
        last = link.seq
        if heard is not None:
            heard(link)
        if link.kind is not Kind.EVENT:
            continue
        count += 1
        number += 1
        if not rows:
            rows = list(reversed(await store.events(after=number - 1, limit=CHUNK)))
        there = rows.pop() if rows and rows[-1][0] == number else None
        if link.plain is None:
            unreadable += 1
        elif there is None:
            differs(f"link {link.seq}: its clear row, event {number}, is gone")
        elif msgspec.json.encode(there[1]) != link.plain:
            differs(f"link {link.seq}: the clear row, event {number}, says something else than the sealed copy")
    # asked in this order: an event comes with its link, so a core at work leaves none without one
    if await store.events(after=number, limit=1) and not await _goes_on(store, last):
        differs(f"there are clear rows after event {number} that no link covers")
    return Compared(count, unreadable, tuple(said), differing, before)


async def _goes_on(store: StoryStore, last: int) -> bool:
    """Whether a link of an event was added behind link *last*, after the links were read to their end."""
    while links := await store.audit_links(last, CHUNK):
        headers = [layout.header_of(link.blob) for link in links]
        if any(header is None or header.kind == Kind.EVENT for header in headers):
            return True
        last = links[-1].seq
    return False


async def _patient(links: AsyncIterator[Opened], tell: Callable[[str], None]) -> AsyncIterator[Opened]:
    try:
        async for link in links:
            yield link
    except SealedUnreadable as error:
        tell(f"the sealed copies cannot be read on: {error}")


class EpochFact(msgspec.Struct, frozen=True):
    """One epoch of a log. *until* None: it is in force. *readable*: its reading key is at hand."""

    epoch: int
    since: Instant
    until: Instant | None
    readable: bool


async def reading_keys(store: StoryStore) -> dict[int, bytes]:
    """The public reading key of every epoch of the log, archived ones included."""
    return {epoch: read for epoch, (_, read) in (await _key_links(store)).items()}


async def epochs(store: StoryStore, room: KeyRoom) -> list[EpochFact]:
    """Every epoch of the log, in order. Raises CredentialUnavailable: the keyring cannot be asked."""
    links = await _key_links(store)
    found = []
    for epoch, (since, read) in sorted(links.items()):
        later = links.get(epoch + 1)
        found.append(
            EpochFact(epoch, since, None if later is None else later[0], await room.holds("read", epoch, read))
        )
    return found


async def _key_links(store: StoryStore) -> dict[int, tuple[Instant, bytes]]:
    """By epoch: when it began, its public reading key."""
    found: dict[int, tuple[Instant, bytes]] = {}
    cut = await cut_from(store)
    if cut is not None:
        for blob in (cut.keys.begin, *(kept.link for kept in cut.keys.epochs)):
            _keep(found, blob)
    after = 0
    while links := await store.audit_links(after, CHUNK):
        for link in links:
            _keep(found, link.blob)
        after = links[-1].seq
    return found


def _keep(found: dict[int, tuple[Instant, bytes]], blob: bytes) -> None:
    header = layout.header_of(blob)
    try:
        if header is not None and header.kind == Kind.BEGIN:
            begin = control.decode(layout.content(blob), control.Begin)
            found[0] = (Instant(begin.at), begin.read)
        elif header is not None and header.kind == Kind.EPOCH:
            told = control.decode(layout.content(blob), control.Epoch)
            found[header.epoch] = (Instant(told.at), told.read)
    except ValueError:
        pass
