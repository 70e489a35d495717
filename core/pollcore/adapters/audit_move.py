"""Keys of a home that was begun without a keyring, moved to where the settings want them now.

Job: reading key, audit keys and anchor from the files of the home to the keyring, or to the file of `[audit] key_file`;
the files removed last. Must not know: links, what the keys open. A call that is cut off leaves them in both places, or
a lock file alone where they were and new keys are still due; the same call again ends it. Source: spec A4, K1, K2.
"""

from __future__ import annotations

from pathlib import Path

from pollcore.adapters.audit_anchor import ANCHORED, AuditStore
from pollcore.adapters.audit_checkpoint import AuditKeeper
from pollcore.adapters.audit_epochs import rotate
from pollcore.adapters.audit_places import beside
from pollcore.adapters.audit_safe import FileSafe, Safe, VaultSafe
from pollcore.adapters.keyring_store import Vault
from pollcore.adapters.reading_key import FILE_NAME, copy_reading_key
from pollcore.facts import Moment, Refused


class Move:
    """One move: from the files in *home* to *key_file*, or to the keyring where none is named."""

    def __init__(self, home: Path, vault: Vault, key_file: Path | None) -> None:
        self._key = home / FILE_NAME
        self._kept = FileSafe(beside(self._key))
        self._lock = self._kept.path.with_name(self._kept.path.name + ".lock")
        self._vault = vault
        self._named = key_file

    def copy(self) -> str:
        """Copy all and read it back; returns where to. Blocks. Raises Refused, CredentialUnavailable: all is as it was.

        Refused also where there is nothing to move.
        """
        if self._named is not None and self._named.absolute() == self._key.absolute():
            raise Refused("[audit] key_file names the file where the keys lie now: name another one", code="key_file")
        if not self._key.exists() and not self._kept.path.exists():
            if self._lock.exists():  # a call was cut off after `remove`: what follows is still due
                return self._where
            raise Refused(f"{self._key}: no keys lie in this home; there is nothing to move", code="key_file")
        there: Safe = VaultSafe(self._vault) if self._named is None else FileSafe(beside(self._named))
        for name, value in self._kept.entries().items():
            if there.get(name) != value:
                there.set(name, value)
            if there.get(name) != value:
                raise Refused(f"{name} was written and reads differently: nothing was removed", code="key_file")
        if self._key.exists():
            copy_reading_key(self._key, self._vault, self._named)
        return self._where

    @property
    def _where(self) -> str:
        return VaultSafe(self._vault).where if self._named is None else str(self._named)

    def remove(self) -> None:
        """Remove the keys in the home, the one that says where to look first."""
        self._lock.touch(mode=0o600)
        self._key.unlink(missing_ok=True)
        self._kept.path.unlink(missing_ok=True)

    def end(self) -> None:
        """New keys have followed: nothing of the move is due any more."""
        self._lock.unlink(missing_ok=True)


async def settled(keeper: AuditKeeper, store: AuditStore, now: Moment) -> int:
    """After a move: the anchor in its new place, and new keys, which no file of the home ever held; their epoch."""
    await store.put_document(now, *ANCHORED, keeper.room.anchor_in.encode())
    if not await keeper.anchor(store, now):
        raise Refused(f"moved, and not anchored there yet: {keeper.state.why}", code="unanchored")
    return (await rotate(keeper, store, now, "keys moved")).epoch
