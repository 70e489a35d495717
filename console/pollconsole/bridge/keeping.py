"""What must be kept with a copy of the store, and whether the reading key is there.

Job: paths of the home that a store cannot do without; is the private half of its public key at hand. Must not know:
output, what is sealed. Source: spec A4, K1.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pollcore.facts import CredentialUnavailable, Refused, StopDetail

if TYPE_CHECKING:
    from pollcore.assembly import Core

GONE: Final = frozenset({StopDetail.CREDENTIAL_MISSING, StopDetail.KEYRING_ABSENT})
"""Details that say: it is in no keyring of this machine; the others say: not now."""


async def public_key(core: Core) -> str | None:
    """The public half, which the store keeps; None: no key pair was made yet."""
    from pollcore.adapters.bindings import PUBLIC_KEY, PUBLIC_NAME

    found = await core.store.document(PUBLIC_KEY, PUBLIC_NAME)
    return None if found is None else found.decode()


async def lost_key(core: Core) -> tuple[str, bool] | None:
    """Why the private half cannot be had, and whether it is gone (True) or only not at hand now; None: it is here."""
    public = await public_key(core)
    if public is None:
        return None
    try:
        await asyncio.to_thread(core.reading_keys.load, public)
    except CredentialUnavailable as error:
        where = key_file(core)
        if error.detail in GONE:
            return f"its private half is neither in {where} nor in a keyring of this machine", True
        return f"its private half is not in {where}, and the keyring cannot be asked: {error}", False
    except Refused as error:
        return str(error), True
    return None


def key_file(core: Core) -> Path:
    """Where the reading key lies if it lies in a file."""
    from pollcore.adapters.reading_key import FILE_NAME

    return core.config.audit_key_file or core.home.home / FILE_NAME


async def kept_with(core: Core) -> dict[str, Any]:
    """What belongs to a copy of the store: `files` (path and why, those that are there), `keyring`, `missing`.

    *keyring*: the keys are in the keyring, under this home's path. *missing*: why the reading key is not to be had.
    """
    from pollcore.adapters.audit_places import beside

    key = key_file(core)
    wanted = [
        (key, "opens what is sealed: links of results, status addresses, idempotency keys, answers"),
        (beside(key), "signs and opens the audit"),
        (core.home.config, "settings"),
        (core.home.providers, "your contracts"),
    ]
    files = [{"path": str(path), "why": why} for path, why in wanted if path.exists()]
    lost = await lost_key(core)
    has_key = await public_key(core) is not None
    return {
        "files": files,
        "keyring": has_key and lost is None and not key.exists(),
        "missing": None if lost is None else lost[0],
    }
