"""Which place keeps the audit's keys and its anchor on this machine.

Job: the owner's key file if the settings name one, else the keyring; a file in the home for keys alone where there is
no keyring at all. Must not know: links, SQL. Source: spec A4, K2; design.md, "Records".

The keyring keeps the anchor, or the file that the owner named. A home that was begun on a host without a keyring (its
reading key lies in the home) keeps it in the file beside: whoever puts the whole folder back to an old state puts the
anchor back with it, and `doctor`, `audit limits` and the start say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from pollcore.adapters.audit_chain import ChainAudit
from pollcore.adapters.audit_checkpoint import AuditKeeper
from pollcore.adapters.audit_keys import Safes
from pollcore.adapters.audit_safe import SUFFIX, FileSafe, Safe, VaultSafe
from pollcore.adapters.keyring_store import Vault
from pollcore.adapters.reading_key import FILE_NAME

LOCK: Final = "audit.lock"


def keeper(chain: ChainAudit, home: Path, vault: Callable[[], Vault], key_file: Path | None) -> AuditKeeper:
    """*vault*: makes the home's keyring entries; called once. *key_file*: `[audit] key_file`."""
    if key_file is not None:
        named = FileSafe(beside(key_file))
        return AuditKeeper(chain, Safes(lambda: iter((named,)), named, home / LOCK))
    ring, own = VaultSafe(vault()), FileSafe(beside(home / FILE_NAME))

    def keys() -> Iterator[Safe]:
        if own.path.exists():
            yield own
            yield ring
        else:
            yield ring
            yield own

    return AuditKeeper(chain, Safes(keys, HomeOrRing(home / FILE_NAME, own, ring), home / LOCK))


class HomeOrRing:
    """The anchor's place where none was named: beside the reading key, if that lies in the home; else the keyring."""

    def __init__(self, reading_key: Path, own: FileSafe, ring: VaultSafe) -> None:
        self._reading_key = reading_key
        self._own = own
        self._ring = ring

    @property
    def where(self) -> str:
        """As Safe."""
        return self._place().where

    def get(self, name: str) -> str | None:
        """As Safe."""
        return self._place().get(name)

    def set(self, name: str, value: str) -> None:
        """As Safe."""
        self._place().set(name, value)

    def delete(self, name: str) -> None:
        """As Safe."""
        self._place().delete(name)

    def _place(self) -> Safe:
        return self._own if self._reading_key.exists() else self._ring


def beside(key_file: Path) -> Path:
    """The audit's file beside a reading key's file."""
    return key_file.with_name(key_file.name + SUFFIX)
