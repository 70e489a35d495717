"""The private keys of the audit: made, found again, deleted; each visit to their place aside with a time limit.

Job: key pairs of an epoch and their entries. Must not know: links, the store, when keys are changed.
Source: spec A4, K2.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from pollcore.adapters.aside import Aside
from pollcore.adapters.audit_chain import LogState, Signer
from pollcore.adapters.audit_safe import ANCHOR, Anchor, Safe, anchor_of, locked, swap
from pollcore.facts import CredentialUnavailable, Refused, StopDetail

T = TypeVar("T")
WAIT_S: Final = 5.0
"""One visit: the lock, a read, a write, a read back."""


class Safes(msgspec.Struct, frozen=True):
    """Where keys and anchor are looked for."""

    keys: Callable[[], Iterator[Safe]]
    """In the order of trust; the first that takes them keeps the keys of a new log."""
    anchor: Safe
    lock: Path


class NewKeys(msgspec.Struct, frozen=True):
    """The pairs of one epoch, fresh."""

    log: LogState
    signing: Ed25519PrivateKey
    reading: X25519PrivateKey

    def __repr__(self) -> str:
        return f"NewKeys(epoch {self.log.epoch})"

    def entries(self) -> dict[str, str]:
        """What is kept of them, by the names of its entries."""
        log = self.log
        return {
            entry("sign", log.epoch, log.sign): base64.b64encode(self.signing.private_bytes_raw()).decode(),
            entry("read", log.epoch, log.read): base64.b64encode(self.reading.private_bytes_raw()).decode(),
        }

    def signer(self) -> Signer:
        """For checkpoints of this epoch."""
        return Signer(self.log.sign, self.signing.sign)


def new_keys(log_id: bytes, epoch: int, at: int, seq: int, first: bytes | None = None) -> NewKeys:
    """*seq*: the link that begins the epoch. *first*: the key of epoch 0; None: this is epoch 0."""
    signing, reading = Ed25519PrivateKey.generate(), X25519PrivateKey.generate()
    sign, read = signing.public_key().public_bytes_raw(), reading.public_key().public_bytes_raw()
    return NewKeys(LogState(log_id, first or sign, epoch, sign, read, at, seq), signing, reading)


def entry(what: str, epoch: int, public: bytes) -> str:
    """The name of a private key's entry: `audit-sign/0-1f2e...`."""
    return f"audit-{what}/{epoch}-{public[:8].hex()}"


class KeyRoom:
    """Visits to keys and anchor. All raise CredentialUnavailable, Refused or TimeoutError."""

    def __init__(self, safes: Safes) -> None:
        self._safes = safes
        self._aside = Aside("audit")

    @property
    def anchor_in(self) -> str:
        """Where the anchor is looked for."""
        return self._safes.anchor.where

    async def keep(self, keys: NewKeys) -> str:
        """Keep fresh keys; returns where."""
        return await self._visit(lambda: self._first_that_takes(keys.entries()))

    async def signer(self, log: LogState) -> Signer:
        """The signing key in force."""
        raw = await self._visit(lambda: self._look(entry("sign", log.epoch, log.sign)))
        return Signer(log.sign, Ed25519PrivateKey.from_private_bytes(raw).sign)

    async def reading(self, epoch: int, public: bytes) -> X25519PrivateKey:
        """The private reading key of an epoch, unless it was deleted."""
        raw = await self._visit(lambda: self._look(entry("read", epoch, public)))
        return X25519PrivateKey.from_private_bytes(raw)

    async def holds(self, what: str, epoch: int, public: bytes) -> bool:
        """Whether a private key lies anywhere; a place that cannot be asked raises, unless another one has it."""

        def anywhere() -> bool:
            trouble: Exception | None = None
            for safe in self._safes.keys():  # noqa: SIM118 - as below
                try:
                    if safe.get(entry(what, epoch, public)) is not None:
                        return True
                except (CredentialUnavailable, Refused) as error:
                    trouble = error
            if trouble is not None and not isinstance(trouble, Refused) and not _is_absent(trouble):
                raise trouble
            return False

        return await self._visit(anywhere)

    async def delete(self, what: str, epoch: int, public: bytes) -> None:
        """Delete a private key wherever it lies. What a backup of that place holds is beyond us."""

        def everywhere() -> None:
            trouble: Exception | None = None
            found = False
            for safe in self._safes.keys():  # noqa: SIM118 - a function of ours, no mapping
                try:
                    if safe.get(entry(what, epoch, public)) is not None:
                        safe.delete(entry(what, epoch, public))
                        found = True
                except (CredentialUnavailable, Refused) as error:
                    trouble = error
            if trouble is not None and not found:
                raise trouble

        await self._visit(everywhere)

    async def anchor(self) -> Anchor | None:
        """The anchor that is there."""
        return await self._visit(lambda: anchor_of(self._safes.anchor.get(ANCHOR)))

    async def swap(self, expected: Anchor | None, new: Anchor) -> Anchor | None:
        """Put *new* in place of *expected*; returns what was there."""
        return await self._visit(lambda: swap(self._safes.anchor, self._safes.lock, expected, new))

    async def put(self, new: Anchor) -> None:
        """Put *new* in place of whatever is there: an operator accepted it."""

        def over() -> None:
            with locked(self._safes.lock):
                self._safes.anchor.set(ANCHOR, new.text())

        await self._visit(over)

    async def _visit(self, call: Callable[[], T]) -> T:
        try:
            return await self._aside.acall(call, WAIT_S)
        except TimeoutError:
            pass
        raise CredentialUnavailable(f"the keyring did not answer within {WAIT_S:g} s", StopDetail.KEYRING_TIMEOUT)

    def _first_that_takes(self, entries: dict[str, str]) -> str:
        trouble: Exception | None = None
        for safe in self._safes.keys():  # noqa: SIM118 - as above
            try:
                for name, value in entries.items():
                    safe.set(name, value)
            except (CredentialUnavailable, Refused) as error:
                trouble = _worse(trouble, error)
                continue
            return safe.where
        raise trouble or Refused("there is no place for the audit's keys", code="key_file")

    def _look(self, name: str) -> bytes:
        trouble: Exception | None = None
        for safe in self._safes.keys():  # noqa: SIM118 - as above
            try:
                found = safe.get(name)
            except (CredentialUnavailable, Refused) as error:
                trouble = _worse(trouble, error)
                continue
            if found is not None:
                return _raw(found, name)
        raise trouble or CredentialUnavailable(f"{name} is not where it was put", StopDetail.CREDENTIAL_MISSING)


def _is_absent(error: Exception) -> bool:
    """No keyring at all is a place that holds nothing; a locked one may."""
    return isinstance(error, CredentialUnavailable) and error.detail == StopDetail.KEYRING_ABSENT


def _worse(first: Exception | None, second: Exception) -> Exception:
    """Which of two failures is told: a full disk under the key file matters more than that there is no keyring."""
    return second if first is None or _is_absent(first) else first


def _raw(text: str, name: str) -> bytes:
    try:
        raw = base64.b64decode(text.encode("ascii"), validate=True)
    except ValueError:
        raw = b""
    if len(raw) != 32:
        raise Refused(f"{name}: what is kept there is no key", code="key_file")
    return raw
