"""The anchor: what is remembered outside the store of how far the chain had come.

Job: raise it after commits, and tell by it that links were cut or rewritten. Must not know: keys, how links are made,
when it is time. Source: spec A4, I19; reliability notes, section 11.

A chain that is ahead of its anchor is fine (a crash between commit and anchor). An anchor that is ahead of its chain,
or knows another link, or is gone though there was one, is an alarm: nothing is sent and nothing granted from then on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from pollcore.adapters.audit_chain import ChainAudit, LogState, decode_state
from pollcore.adapters.audit_keys import KeyRoom
from pollcore.adapters.audit_parts import cut_from
from pollcore.adapters.audit_safe import Anchor
from pollcore.chain.layout import HASH
from pollcore.facts import CredentialUnavailable, Moment, StopDetail
from pollcore.ports import AuditLink, AuditTip, MakeExtension

SWAPS: Final = 5
"""How often the anchor is tried again when another process moved it."""
GONE: Final = "its anchor is gone; links may have been cut"
SEE: Final = "see 'pollconsole audit verify', then put the store back or 'pollconsole audit accept-loss'"
ANCHORED: Final = ("audit", "anchored")
"""The document that says where an anchor of this chain was put."""


class AuditStore(Protocol):
    """The part of the store that keeps the chain."""

    async def audit_tip(self) -> AuditTip | None: ...

    async def audit_links(self, after: int = 0, limit: int = 10_000) -> Sequence[AuditLink]: ...

    async def extend_audit(self, now: Moment, make: MakeExtension) -> AuditTip | None: ...

    async def document(self, kind: str, name: str) -> bytes | None: ...

    async def put_document(self, now: Moment, kind: str, name: str, value: bytes | None) -> None: ...


class Anchoring:
    """The anchor as this process knows it."""

    def __init__(self, chain: ChainAudit, room: KeyRoom) -> None:
        self._chain = chain
        self._room = room
        self.known: Anchor | None = None
        """The newest anchor that was compared with this chain."""

    async def raise_to(self, store: AuditStore, now: Moment, tip: AuditTip) -> None:
        """Bring the anchor to *tip*, or to wherever another process has it. Sets the chain's alarm.

        Raises CredentialUnavailable, Refused: the anchor cannot be reached.
        """
        if self._chain.alarm is not None or tip.log is None:
            return
        log = decode_state(tip.log)
        if len(tip.hash) != HASH or tip.hash == bytes(HASH):
            await self._below_torn(store, log)
            return
        new = Anchor(log.log_id, tip.seq, log.epoch, tip.hash)
        for _ in range(SWAPS):
            before = self.known
            # asked first where nothing was written, too: a keyring that went away is noticed
            look = before is None or before == new
            found = await (self._room.anchor() if look else self._room.swap(before, new))
            if found is None and before is None and not await self._was_anchored(store):
                if await self._room.swap(None, new) is not None:
                    continue  # another process was first
                await store.put_document(now, *ANCHORED, self._room.anchor_in.encode())
                self.known = new
                return
            if found is not None and found == before:
                self.known = new
                return
            wrong = GONE if found is None else await compare(store, log, found)
            if wrong is not None:
                self._chain.alarm = f"{wrong}: {SEE}"
                return
            self.known = found
            if found is not None and found.seq >= tip.seq:
                return  # another process was there before us, with this chain
        raise CredentialUnavailable("the anchor kept moving: other processes raise it", StopDetail.KEYRING_TIMEOUT)

    async def _below_torn(self, store: AuditStore, log: LogState) -> None:
        """The last row waits for its repair: the anchor stays, but what it knows is compared all the same."""
        found = await self._room.anchor()
        wrong = None if found is None else await compare(store, log, found)
        if wrong is not None:
            self._chain.alarm = f"{wrong}: {SEE}"

    async def _was_anchored(self, store: AuditStore) -> bool:
        """Whether this chain had an anchor in the place where it is looked for now."""
        return await store.document(*ANCHORED) == self._room.anchor_in.encode()


async def compare(store: AuditStore, log: LogState, found: Anchor) -> str | None:
    """What is wrong between an anchor and the chain; None: the chain holds the link that the anchor knows."""
    if found.log_id != log.log_id:
        return f"the anchor is of another log, {found.log_id.hex()}; this store was replaced"
    cut = await cut_from(store)
    if cut is not None and found.seq <= cut.seq:
        # older than what was archived: only the archive's file could contradict it, at its end alone the store can
        same = found.seq < cut.seq or found.hash == cut.hash
        return None if same else f"altered; link {found.seq:,} is not the one that the anchor knows"
    there = await store.audit_links(after=found.seq - 1, limit=1)
    if not there or there[0].seq != found.seq:
        tip = await store.audit_tip()
        return f"truncated; the anchor knows link {found.seq:,}, the chain ends at {tip.seq if tip else 0:,}"
    if there[0].hash != found.hash:
        return f"altered; link {found.seq:,} is not the one that the anchor knows"
    return None
