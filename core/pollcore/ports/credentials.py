"""Secrets, what may be known of them, and the durable questions about their modes.

Job: a secret for one use, its keyed digest, its metadata. Must not know: what a request looks like, how a secret is
kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import Protocol

import msgspec

from pollcore.facts import AuditEvent, CredentialMode, Escalation, Grant, Instant, Moment, Secret


class CredentialInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What may be known of a credential: never its value."""

    name: str
    kind: str
    names: tuple[str, ...] = ()
    """Header names (kind header) or the query parameter's name (kind query)."""
    origins: tuple[str, ...] = ()
    mode: CredentialMode = CredentialMode.STANDING
    created_at: Instant
    last_used_at: Instant | None = None

    @property
    def binding(self) -> str:
        """Digest of what a leave to use it is bound to: another kind, origin or secret makes another one (G4)."""
        bound = msgspec.json.encode([self.name, self.kind, self.names, sorted(self.origins), self.created_at])
        return hashlib.sha256(bound).hexdigest()


class CredentialAsked(msgspec.Struct, frozen=True, kw_only=True):
    """G2: a looser mode that was asked for: a question that belongs to a credential and to no operation."""

    question: Escalation
    """`operation_id` is empty, the cause `mode_change:NAME`."""
    info: CredentialInfo
    """The credential as it was when it was asked; anything else makes the question stale."""
    after: CredentialMode


class CredentialModes(Protocol):
    """Credentials' modes and the durable questions about them (G2, G6). One open question a credential."""

    async def now_is(self, name: str) -> CredentialInfo | None:
        """What is stored of a credential; None: no such credential."""
        ...

    async def ask(self, now: Moment, asked: CredentialAsked, event: AuditEvent) -> CredentialAsked:
        """Store the question, in place of an open one that asked for something else; the open one where it is the same.

        Raises Stale: the credential is not as *asked* says.
        """
        ...

    async def asked(self, escalation_id: str) -> CredentialAsked | None:
        """The question, open or decided."""
        ...

    async def settle(
        self,
        now: Moment,
        asked: CredentialAsked,
        closed: Escalation,
        events: Sequence[AuditEvent],
        grant: Grant | None = None,
        mode: CredentialMode | None = None,
    ) -> None:
        """Close the question, use the grant up and set the mode, in one transaction.

        Raises Stale: it was decided, or (with a *mode*) the credential is not as it was asked about.
        """
        ...


class CredentialValue(msgspec.Struct, frozen=True):
    """A secret for one use, with the keyed digest that tells a rotated one (K5)."""

    info: CredentialInfo
    secret: Secret
    digest: str


class Credentials(Protocol):
    """Secrets in the OS keyring; metadata in the store. Calls run aside with a time limit (K2)."""

    async def info(self, name: str) -> CredentialInfo:
        """What may be known of it; no secret is read. Raises CredentialUnavailable: credential_missing, or
        keyring_absent where none can be stored on this machine.
        """
        ...

    async def read(self, name: str, info: CredentialInfo | None = None) -> CredentialValue:
        """Raises CredentialUnavailable (detail: credential_missing, keyring_locked, keyring_timeout,
        keyring_absent). *info*: what `info` just said, so that it is not asked twice.
        """
        ...

    async def digest(self, name: str, refused: Collection[str] = ()) -> str:
        """The keyed digest of the stored secret. Raises CredentialUnavailable.

        *refused*: digests of what was refused. Of a kind that buys its token the answer is then the digest of a token,
        bought anew where the one at hand is among them and a purchase is due; else it is one of them.
        """
        ...

    def forget(self, name: str | None = None) -> None:
        """Drop what is kept in memory of *name*, or of all: after a denial."""
        ...

    async def known(self) -> Sequence[CredentialInfo]:
        """All that is known of every credential, but its value."""
        ...
