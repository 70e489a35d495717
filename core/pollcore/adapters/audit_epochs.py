"""New keys for a log, old keys forgotten, and going on after a loss: what changes rarely, and is itself on record.

Job: these three steps, each in one transaction and with its visits to the keys around it. Must not know: when an
operator wants them. Source: spec A4; reliability notes, section 11 (epochs, retention).
"""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

from pollcore.adapters.audit_anchor import Anchoring, AuditStore
from pollcore.adapters.audit_chain import ChainAudit, LogState, decode_state
from pollcore.adapters.audit_keys import KeyRoom, new_keys
from pollcore.adapters.audit_safe import Anchor
from pollcore.chain import control
from pollcore.chain.layout import HASH, Kind
from pollcore.facts import CredentialUnavailable, Moment, Refused
from pollcore.ports import AuditExtension, AuditTip

EPOCH_LINKS: Final = 1 << 20
EPOCH_MS: Final = 30 * 24 * 3_600_000


class Keeping(Protocol):
    """What these steps need of the audit's keeper."""

    chain: ChainAudit
    room: KeyRoom
    anchoring: Anchoring
    log: LogState | None

    async def open_signer(self) -> None: ...

    async def anchor(self, store: AuditStore, now: Moment) -> bool: ...

    async def begin(self, store: AuditStore, now: Moment, *, over: bool = False) -> str | None: ...

    def unanchored(self, now: Moment, error: Exception) -> None: ...


def is_due(keeper: Keeping, tip: AuditTip, now: Moment) -> bool:
    """Whether the keys in force are old, and this process could make new ones."""
    log, chain = keeper.log, keeper.chain
    if log is None or chain.signer is None or chain.alarm is not None:
        return False
    return now.wall - log.since >= EPOCH_MS or tip.seq - log.since_seq >= EPOCH_LINKS


async def rotate(keeper: Keeping, store: AuditStore, now: Moment, why: str) -> LogState:
    """New keys from here on, signed by the old ones; the old signing key is deleted.

    Raises CredentialUnavailable, Refused (damaged record, or another process was first).
    """
    chain, old = keeper.chain, keeper.log
    if old is None or chain.alarm is not None:
        raise Refused(f"no new keys now: {chain.alarm or 'there is no chain yet'}", code="audit")
    await keeper.open_signer()
    signer = chain.signer
    keys = new_keys(old.log_id, old.epoch + 1, now.wall, 0, old.first)
    await keeper.room.keep(keys)

    def make(tip: AuditTip | None, _: int) -> AuditExtension:
        if tip is None or signer is None or chain.state(tip) != old or len(tip.hash) != HASH:
            raise Refused("no new keys now: another process made some, or the last row waits for repair", code="audit")
        new = keys.log
        message = control.epoch_message(old.log_id, tip.seq + 1, tip.hash, new.epoch, new.sign, new.read)
        told = control.Epoch(new.sign, new.read, now.wall, why, signer.sign(message))
        new = msgspec.structs.replace(new, since_seq=tip.seq + 1, previous=old.sign)
        return AuditExtension(chain.first_of_epoch(tip, new, control.encode(told), keys.signer()), new.encoded())

    tip = await store.extend_audit(now, make)
    if tip is None or tip.log is None:
        raise Refused("no new keys now: the chain is gone", code="audit")
    keeper.log, chain.signer = decode_state(tip.log), keys.signer()
    await sweep(keeper)
    await keeper.anchor(store, now)
    return keeper.log


async def sweep(keeper: Keeping) -> None:
    """Delete the signing key of the epoch before: after new keys, and at each start, because a crash may have kept it.

    Where it cannot be deleted now it lives on until the next start.
    """
    log = keeper.log
    if log is None or log.previous is None:
        return
    try:
        await keeper.room.delete("sign", log.epoch - 1, log.previous)
    except (CredentialUnavailable, Refused):
        pass


def require_over(keeper: Keeping, epoch: int) -> None:
    """Raises Refused: the epoch is in force, or later."""
    if keeper.log is None or epoch >= keeper.log.epoch:
        raise Refused("only an epoch that is over can be forgotten: make new keys first", code="audit")


async def forget(keeper: Keeping, epoch: int, public: bytes) -> None:
    """Delete the reading key of an epoch that is over: what it sealed cannot be read again, the chain stays provable.

    *public*: that epoch's public reading key, as its link has it. Raises CredentialUnavailable, Refused.
    """
    require_over(keeper, epoch)
    await keeper.room.delete("read", epoch, public)


async def accept_loss(keeper: Keeping, store: AuditStore, now: Moment, because: str) -> None:
    """Go on although the anchor knows links that are gone; the chain records it, for everybody who verifies it.

    Raises CredentialUnavailable, Refused: there is no chain, or its last link itself is damaged.
    """
    chain = keeper.chain
    try:
        lost = await keeper.room.anchor()
    except Refused:
        lost = None  # an entry that is no anchor
    if keeper.log is None:
        chain.begun = False
        await keeper.begin(store, now, over=True)  # the whole log is gone: another one, that says so
    log = keeper.log
    if log is None:
        raise Refused("no other log could be begun: take another home", code="audit")
    await keeper.open_signer()
    told = control.Loss(lost.seq if lost else 0, lost.hash if lost else bytes(HASH), now.wall, because)

    def make(tip: AuditTip | None, _: int) -> AuditExtension:
        if tip is None or len(tip.hash) != HASH:
            raise Refused("the end of the chain is damaged: put the store back, or take another home", code="audit")
        return AuditExtension(chain.control(tip, Kind.LOSS, control.encode(told), sign=True))

    tip = await store.extend_audit(now, make)
    if tip is None:
        raise Refused("the chain is gone: put the store back, or take another home", code="audit")
    keeper.anchoring.known = Anchor(log.log_id, tip.seq, log.epoch, tip.hash)
    await keeper.room.put(keeper.anchoring.known)
    chain.alarm = None
