"""Whether the keyring reads the credentials of operations, and whether a refused secret was changed since.

Job: each credential asked once, a keyring that answers nothing asked once for all. Must not know: what follows from it,
which operations they belong to.
Source: spec H3, K2, K5.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from pollcore.actions.desk import Desk
from pollcore.decide.cause import MACHINE_WIDE
from pollcore.facts import CredentialUnavailable
from pollcore.ports import Denial


class KeyringLook(msgspec.Struct, frozen=True):
    """Does the keyring read a credential, why not, and did the secret change since it was refused."""

    reads: bool
    problem: str | None = None
    rotated: bool = False


async def look(
    desk: Desk, names: Sequence[str], denials: Sequence[Denial], stopped: Collection[str]
) -> dict[str, KeyringLook]:
    """Each credential once; a keyring that is locked, absent or silent is asked once for all.

    *stopped*: those whose refusal stopped an operation; for no other one is a token bought to look at it.
    """
    found: dict[str, KeyringLook] = {}
    closed: KeyringLook | None = None
    for name in names:
        if closed is not None:
            found[name] = closed
            continue
        refused = [d.secret_digest for d in denials if d.credential == name]
        try:
            now = await desk.credentials().digest(name, refused if name in stopped else ())
        except CredentialUnavailable as error:
            found[name] = KeyringLook(False, str(error))
            if error.detail in MACHINE_WIDE:
                closed = found[name]
            continue
        found[name] = KeyringLook(True, None, bool(refused) and now not in refused)
    return found
