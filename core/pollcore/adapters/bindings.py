"""Small ports of other adapters, kept in the store as documents.

Job: credential metadata, run keys and the public reading key as rows. Must not know: what they mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from pollcore.adapters.sealer import ReadingKey, RunKey, RunSealer
from pollcore.adapters.store.credential_rows import Held
from pollcore.facts import (
    AuditEvent,
    CredentialMode,
    Escalation,
    EventName,
    Grant,
    Instant,
    Moment,
    SealedUnreadable,
    Stale,
)
from pollcore.ports import Clock, CredentialAsked, CredentialInfo

CREDENTIAL: Final = "credential"
USED: Final = "credential_used"
LEFT: Final = "credential_left"
"""Modes of removed credentials: who removes one and sets it anew has not made its use easier."""
RUN_KEY: Final = "run_key"
PUBLIC_KEY: Final = "public_key"
PUBLIC_NAME: Final = "reading"
MANY_LEFT: Final = 1 << 28
"""A run's key is renewed when it may seal fewer blobs than this: months before its last one."""


class Documents(Protocol):
    """The part of the store that keeps small records of other adapters."""

    async def documents(self, kind: str) -> Mapping[str, bytes]: ...

    async def document(self, kind: str, name: str) -> bytes | None: ...

    async def put_document(
        self, now: Moment, kind: str, name: str, value: bytes | None, events: Sequence[AuditEvent] = ()
    ) -> None: ...

    async def change_documents(self, now: Moment, held: Sequence[Held], events: Sequence[AuditEvent] = ()) -> None: ...


class Questions(Protocol):
    """The part of the store that keeps questions about credentials."""

    async def ask_credential(
        self, now: Moment, asked: CredentialAsked, held: Held, event: AuditEvent
    ) -> CredentialAsked: ...

    async def settle_credential(
        self,
        now: Moment,
        closed: Escalation,
        events: Sequence[AuditEvent],
        grant: Grant | None = None,
        held: Held | None = None,
    ) -> None: ...

    async def credential_question(self, escalation_id: str) -> CredentialAsked | None: ...


class StoredMeta:
    """`CredentialMeta` over documents; changes are audit events."""

    def __init__(self, store: Documents, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._read = msgspec.json.Decoder(CredentialInfo)

    async def get(self, name: str) -> CredentialInfo | None:
        """One row."""
        found = await self._store.document(CREDENTIAL, name)
        return self._read.decode(found) if found is not None else None

    async def list(self) -> Sequence[CredentialInfo]:
        """By name."""
        found = await self._store.documents(CREDENTIAL)
        used = await self._store.documents(USED)
        return [self._with_use(self._read.decode(found[name]), used.get(name)) for name in sorted(found)]

    @staticmethod
    def _with_use(info: CredentialInfo, used: bytes | None) -> CredentialInfo:
        return info if used is None else msgspec.structs.replace(info, last_used_at=Instant(int(used)))

    async def put(self, info: CredentialInfo, former: CredentialInfo | None) -> None:
        """Insert or replace, with an audit event that names kind, origins and mode, never a value. Raises Stale."""
        now = self._clock.now()
        held = await self.held(info.name, former, info)
        left = Held(LEFT, info.name, await self._store.document(LEFT, info.name), None)
        await self._store.change_documents(now, (held, left), (changed_event(info, now),))

    async def held(self, name: str, former: CredentialInfo | None, after: CredentialInfo | None) -> Held:
        """The row as it lies there, to be replaced by *after*. Raises Stale: it is not *former*."""
        raw = await self._store.document(CREDENTIAL, name)
        if (None if raw is None else self._read.decode(raw)) != former:
            raise Stale(f"credential {name} has changed since it was read; nothing was done: look again")
        return Held(CREDENTIAL, name, raw, None if after is None else msgspec.json.encode(after))

    async def remove(self, name: str) -> None:
        """Remove the row; its mode stays known."""
        now = self._clock.now()
        info = await self.get(name)
        if info is None:
            return
        held = await self.held(name, info, None)
        left = Held(LEFT, name, await self._store.document(LEFT, name), info.mode.value.encode())
        event = AuditEvent(at=now.wall, event=EventName.CREDENTIAL_CHANGED, text=f"{name} removed")
        await self._store.change_documents(now, (held, left), (event,))

    async def left_mode(self, name: str) -> CredentialMode | None:
        """The mode of a removed credential of that name."""
        found = await self._store.document(LEFT, name)
        return None if found is None else CredentialMode(found.decode())

    async def touch(self, name: str, at: Instant) -> None:
        """Keep `last_used_at` in a row of its own: a whole row written back could undo a change of mode (G2)."""
        await self._store.put_document(self._clock.now(), USED, name, str(at).encode())


def changed_event(info: CredentialInfo, now: Moment) -> AuditEvent:
    """What a credential is from now on; never a value."""
    text = f"{info.name} {info.kind} for {', '.join(info.origins)}, {info.mode.value}"
    return AuditEvent(at=now.wall, event=EventName.CREDENTIAL_CHANGED, text=text)


class StoredModes:
    """`CredentialModes` over the store: the question, its grant and the changed row in one transaction (G4)."""

    def __init__(self, store: Questions, meta: StoredMeta) -> None:
        self._store = store
        self._meta = meta

    async def now_is(self, name: str) -> CredentialInfo | None:
        """What is stored of a credential."""
        return await self._meta.get(name)

    async def ask(self, now: Moment, asked: CredentialAsked, event: AuditEvent) -> CredentialAsked:
        """Store the question, or return the open one that asks for the same. Raises Stale."""
        held = await self._meta.held(asked.info.name, asked.info, asked.info)
        return await self._store.ask_credential(now, asked, held, event)

    async def asked(self, escalation_id: str) -> CredentialAsked | None:
        """The question, open or decided."""
        return await self._store.credential_question(escalation_id)

    async def settle(
        self,
        now: Moment,
        asked: CredentialAsked,
        closed: Escalation,
        events: Sequence[AuditEvent],
        grant: Grant | None = None,
        mode: CredentialMode | None = None,
    ) -> None:
        """Close the question; with a *mode* the credential has it from then on. Raises Stale."""
        held = None
        if mode is not None:
            after = msgspec.structs.replace(asked.info, mode=mode)
            held = await self._meta.held(asked.info.name, asked.info, after)
            events = (*events, changed_event(after, now))
        await self._store.settle_credential(now, closed, events, grant, held)


class LoadedRunKeys:
    """`RunKeys` in memory: loaded from the store at open; new ones are stored by `LazySealer.prepare`."""

    def __init__(self) -> None:
        self.keys: dict[bytes, RunKey] = {}
        self.new: list[RunKey] = []

    def put(self, key: RunKey) -> None:
        """Keep it; it is stored before the first seal."""
        self.keys[key.run_id] = key
        self.new.append(key)

    def get(self, run_id: bytes) -> RunKey | None:
        """The key of a run."""
        return self.keys.get(run_id)


class LazySealer:
    """A `Sealer` that costs nothing until something sealed is opened or something must be sealed.

    Reading commands open other runs' columns without ever storing a key; `prepare` comes before everything that writes.
    """

    def __init__(self, reading_key: Callable[[str], ReadingKey | None]) -> None:
        """*reading_key*: the private part for a public key text; asked when another run's blob is opened."""
        self.keys = LoadedRunKeys()
        self.public_key: str | None = None
        self._ask = reading_key
        self._run: RunSealer | None = None
        self._stored = False

    @property
    def is_prepared(self) -> bool:
        """Something can be sealed."""
        return self._stored

    async def load(self, store: Documents) -> None:
        """Take over the public key and the run keys that the store holds."""
        public = (await store.documents(PUBLIC_KEY)).get(PUBLIC_NAME)
        self.public_key = public.decode() if public is not None else None
        for name, value in (await store.documents(RUN_KEY)).items():
            key_id, _, wrapped = value.partition(b"\n")
            run_id = bytes.fromhex(name)
            self.keys.keys[run_id] = RunKey(run_id, key_id.decode(), wrapped)

    async def prepare(self, store: Documents, now: Moment) -> None:
        """Make this run's key and store it, sealed to the public key, before anything is sealed with it."""
        self._made()
        await self._store_new(store, now)
        self._stored = True

    async def _store_new(self, store: Documents, now: Moment) -> None:
        while self.keys.new:
            key = self.keys.new.pop()
            await store.put_document(now, RUN_KEY, key.run_id.hex(), key.key_id.encode() + b"\n" + key.wrapped)

    async def renew(self, store: Documents, now: Moment) -> None:
        """With each heartbeat: a key that has sealed much gives way to a new one, stored before it seals."""
        if self._stored and self._run is not None and self._run.seals_left < MANY_LEFT:
            fresh = RunSealer(self.public_key or "", self.keys, self._run.ask)
            await self._store_new(store, now)
            self._run = fresh

    def seal(self, purpose: str, plain: bytes) -> bytes:
        """Raises SealedUnreadable: `prepare` was not called (our fault, never the user's)."""
        if not self._stored:
            raise SealedUnreadable(f"{purpose}: this process has no sealing key yet")
        return self._made().seal(purpose, plain)

    def open(self, purpose: str, sealed: bytes) -> bytes:
        """Raises SealedUnreadable: no key at hand."""
        return self._made().open(purpose, sealed)

    def _made(self) -> RunSealer:
        if self._run is None:
            public = self.public_key
            if public is None:
                raise SealedUnreadable("this home has no reading key pair yet")
            self._run = RunSealer(public, self.keys, lambda: self._ask(public))
        return self._run
