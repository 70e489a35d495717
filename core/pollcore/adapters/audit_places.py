"""Which place keeps the audit's keys and its anchor on this machine.

Job: the owner's key file if the settings name one, else the keyring; a file in the home for keys alone where there is
no keyring at all. Must not know: links, SQL. Source: spec A4, K2; design.md, "Records".

Only a place that the owner chose, or the keyring, keeps an anchor: a file beside the store would be put back with it.
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

    return AuditKeeper(chain, Safes(keys, ring, home / LOCK))


def beside(key_file: Path) -> Path:
    """The audit's file beside a reading key's file."""
    return key_file.with_name(key_file.name + SUFFIX)
