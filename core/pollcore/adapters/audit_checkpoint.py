"""Checkpoints and grants of one home's audit chain: all that needs the keyring, outside any transaction.

Job: begin a log, load what signs, have the anchor compared before anything is sent and raised after commits, put every
grant on record and anchor that before it takes effect. Must not know: how a link is made (audit_chain), how an anchor
is judged (audit_anchor), SQL, what an operation is. New keys, and going on after a loss: audit_epochs.
Without the keyring polls go on inside old grants, `state` says so, and no new authority is given.
Source: spec A4, I20; reliability notes, section 11.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

import msgspec

from pollcore.adapters import audit_epochs
from pollcore.adapters.audit_anchor import SEE, Anchoring, AuditStore
from pollcore.adapters.audit_chain import ChainAudit, LogState, begin, decode_state
from pollcore.adapters.audit_keys import KeyRoom, Safes, new_keys
from pollcore.adapters.audit_parts import cut_from
from pollcore.adapters.audit_tail import judge_tail, keys_in
from pollcore.chain.layout import HASH, Kind
from pollcore.chain.notes import key_text
from pollcore.facts import CredentialUnavailable, Grant, Instant, Moment, Refused, iso
from pollcore.ports import AuditExtension, AuditTip, Granting

WAY_OUT: Final = (
    "unlock the keyring, or name [audit] key_file in config.toml where there is none; polls go on meanwhile"
)


class AuditState(msgspec.Struct, frozen=True):
    """What a screen and `doctor` say of the audit."""

    key: str | None
    """The verification key to keep elsewhere; None: no chain has begun."""
    keys_in: str
    """`keyring`, or `key file`."""
    epoch: int
    anchored_to: int
    unanchored_since: Instant | None
    why: str | None
    """Why it is unanchored, or why nothing is sent."""
    alarm: bool
    """The record is known to be damaged: nothing is sent, nothing granted."""


class AuditKeeper:
    """The audit of one process. Made with the core; `load` before the first write that Actions makes."""

    def __init__(self, chain: ChainAudit, safes: Safes) -> None:
        self.chain = chain
        self.room = KeyRoom(safes)
        self.anchoring = Anchoring(chain, self.room)
        self.log: LogState | None = None
        """The keys in force when they were last read; None: no chain has begun."""
        self._keys_in = "nowhere"
        self._since: Instant | None = None
        self._why: str | None = None

    @property
    def state(self) -> AuditState:
        """For people."""
        log, known = self.log, self.anchoring.known
        return AuditState(
            key_text(log.log_id, log.first) if log is not None else None,
            self._keys_in,
            log.epoch if log is not None else 0,
            known.seq if known is not None else 0,
            self._since,
            self.chain.alarm or self._why,
            self.chain.alarm is not None,
        )

    # --- a log's beginning ------------------------------------------------------------------------------------------

    async def load(self, store: AuditStore) -> bool:
        """What the store has of the chain; False: none has begun. Looks at the last links (torn, altered)."""
        tip = await store.audit_tip()
        raw = await store.document("audit", "log")
        if tip is None and raw is None:
            return False
        self.chain.begun = True
        if tip is None or raw is None:
            self.chain.alarm = f"the audit chain, or the record of its keys, is gone from the store: {SEE}"
            return True
        self.log = decode_state(raw)
        cut = await cut_from(store)
        first = await store.audit_links(limit=1)
        self._keys_in = keys_in(cut.keys.begin if cut else first[0].blob) if first else "nowhere"
        last = await store.audit_links(after=max(0, tip.seq - 3), limit=3)
        self.chain.torn, wrong = judge_tail(self.log, last)
        if wrong is not None:
            self.chain.alarm = f"{wrong}: {SEE}"
        return True

    async def begin(self, store: AuditStore, now: Moment, *, over: bool = False) -> str | None:
        """Begin this home's log, under the setup lock of the home. Returns a notice for the owner, or None.

        A home that had a log before (its anchor says so) gets none by itself, unless *over*: an alarm instead. Raises
        Refused: there is no place for the keys.
        """
        try:
            found = await self.room.anchor()
        except (CredentialUnavailable, Refused) as error:
            found = None
            self.unanchored(now, error)
        if found is not None and not over:
            self.chain.begun = True
            self.chain.alarm = (
                f"the audit of this home is gone; its anchor knows {found.seq:,} links of log {found.log_id.hex()}: "
                f"{SEE.partition(', then ')[2]}"
            )
            return None
        keys = new_keys(os.urandom(16), 0, now.wall, 1)
        where = await self.room.keep(keys)
        self.chain.signer = keys.signer()

        def make(tip: AuditTip | None, recorded: int) -> AuditExtension:
            if tip is not None:
                return AuditExtension()
            first = begin(keys.log, now.wall, recorded, where)
            return AuditExtension((first,), keys.log.encoded(), {1: self.chain.note(keys.log, 1, first.hash) or ""})

        await store.extend_audit(now, make)
        await self.load(store)
        await self.anchor(store, now)
        marked = "" if where == "keyring" else f"; its private keys lie in a {where}, and the audit is marked with that"
        return f"began this home's audit log; keep its verification key elsewhere: {self.state.key}{marked}"

    # --- anchor and checkpoints -------------------------------------------------------------------------------------

    async def ready(self, store: AuditStore, now: Moment) -> None:
        """Before a process polls: the signing key, the anchor against the chain. `state` tells what is wrong."""
        await self._try_signer(now)
        await self.anchor(store, now)
        if self._since is None:
            await audit_epochs.sweep(self)

    async def anchor(self, store: AuditStore, now: Moment) -> bool:
        """Raise the anchor to the tip that is committed now. False: not possible; `state` says why."""
        try:
            tip = await store.audit_tip()
            if tip is not None:
                await self.anchoring.raise_to(store, now, tip)
        except (CredentialUnavailable, Refused) as error:
            self.unanchored(now, error)
            return False
        if self.chain.alarm is not None:
            return False
        self._since = self._why = None
        return True

    def unanchored(self, now: Moment, error: Exception) -> None:
        """Remember since when and why."""
        self._since = self._since if self._since is not None else now.wall
        self._why = f"unanchored since {iso(self._since)}: {error}"

    async def beat(self, store: AuditStore, now: Moment) -> None:
        """With each heartbeat: raise the anchor; new keys when those in force are old."""
        if self.chain.signer is None:
            await self._try_signer(now)
        tip = await store.audit_tip()
        if tip is not None and audit_epochs.is_due(self, tip, now):
            try:
                await audit_epochs.rotate(self, store, now, "30 days or 2^20 links")
            except (CredentialUnavailable, Refused) as error:
                self.unanchored(now, error)
                return
        await self.anchor(store, now)

    async def finish(self, store: AuditStore, now: Moment) -> None:
        """At exit: a checkpoint over the last link, and the anchor."""
        await self.sign_head(store, now)
        await self.anchor(store, now)

    async def sign_head(self, store: AuditStore, now: Moment) -> bool:
        """A checkpoint over the last link. False: this process cannot sign."""
        await self._try_signer(now)
        if self.chain.signer is None or self.chain.alarm is not None:
            return False

        def make(tip: AuditTip | None, _: int) -> AuditExtension:
            if tip is None or len(tip.hash) != HASH:
                return AuditExtension()
            note = self.chain.note(self.chain.state(tip), tip.seq, tip.hash)
            return AuditExtension(notes={tip.seq: note} if note is not None else {})

        await store.extend_audit(now, make)
        return True

    async def open_signer(self) -> None:
        """The signing key of the epoch in force, into memory. Raises CredentialUnavailable, Refused."""
        log = self.log
        if log is not None and (self.chain.signer is None or self.chain.signer.public != log.sign):
            self.chain.signer = await self.room.signer(log)

    async def _try_signer(self, now: Moment) -> None:
        try:
            await self.open_signer()
        except (CredentialUnavailable, Refused) as error:
            self.unanchored(now, error)

    # --- grants -----------------------------------------------------------------------------------------------------

    async def authorise(self, store: AuditStore, now: Moment, writes: Sequence[Granting]) -> None:
        """Put the grants of *writes* on record and anchor that record, before any of them takes effect (A4, I20).

        Raises Refused (`unanchored`): it could not be anchored; nothing is granted.
        """
        grants = [write.grant for write in writes if write.grant is not None]
        if not grants:
            return
        why = self.chain.alarm
        try:
            if why is None:
                await self.room.anchor()  # before a row tells of a grant in vain
                await self.open_signer()
                tip = await store.extend_audit(now, lambda tip, _: self._on_record(tip, grants))
                if tip is not None:
                    await self.anchoring.raise_to(store, now, tip)
                why = self.chain.alarm
        except CredentialUnavailable as error:
            self.unanchored(now, error)
            why = self._why
        if why is not None:
            raise Refused(f"not granted, its audit row cannot be anchored: {why} ({WAY_OUT})", code="unanchored")
        self._since = self._why = None

    def _on_record(self, tip: AuditTip | None, grants: Sequence[Grant]) -> AuditExtension:
        if tip is None:
            raise Refused("not granted: this home has no audit chain yet", code="unanchored")
        told = [msgspec.json.encode(grant) for grant in grants]
        return AuditExtension(self.chain.seal(tip, Kind.AUTHORITY, told, sign=True))
