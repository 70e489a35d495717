"""Seals, and the chain of audit links.

Job: how plain bytes are sealed, how events become links inside a transaction of the store, and what makes a link of its
own. Must not know: keys, formats, what an event means, when a checkpoint is due.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from pollcore.facts import AuditEvent, Grant


class Sealer(Protocol):
    """Seals columns. Sealing needs no secret of the operator; opening may (the reading key)."""

    def seal(self, purpose: str, plain: bytes) -> bytes:
        """*purpose* is bound into the seal (`operation.status_url`)."""
        ...

    def open(self, purpose: str, sealed: bytes) -> bytes:
        """Raises SealedUnreadable."""
        ...


class AuditTip(msgspec.Struct, frozen=True):
    """The last link of the chain as read inside the running transaction."""

    seq: int
    hash: bytes
    log: bytes | None = None
    """What the store keeps of the log's keys beside the chain (document `audit`, `log`)."""


class AuditLink(msgspec.Struct, frozen=True):
    """One link to insert: bytes exactly as hashed."""

    seq: int
    blob: bytes
    hash: bytes
    note: str = ""
    """A signed checkpoint over this link, stored with it."""


class AuditExtension(msgspec.Struct, frozen=True):
    """Links that no event of the story stands behind: a log's beginning, new keys, a grant about to be used."""

    links: Sequence[AuditLink] = ()
    log: bytes | None = None
    """Replaces what the store keeps of the log's keys."""
    notes: Mapping[int, str] = {}
    """Further checkpoints, by the number of their link."""


MakeExtension = Callable[[AuditTip | None, int], AuditExtension]
"""From the tip and the number of events recorded so far, both as read inside the transaction."""


class AuditLog(Protocol):
    """Turns events into links. Called inside the store's transaction: no I/O, no waiting."""

    def links(self, tip: AuditTip | None, events: Sequence[AuditEvent]) -> Sequence[AuditLink]:
        """Raises anything: then the transaction does not happen (O6)."""
        ...


class Granting(Protocol):
    """What uses a grant up, or not: a write of an operation, a decision about a credential."""

    @property
    def grant(self) -> Grant | None: ...
