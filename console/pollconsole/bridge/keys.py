"""Credentials without their secrets, and what `doctor` asks an open core.

Job: pass one secret to the keyring, hand out what may be known. Must not know: prompts, output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pollconsole import documents
from pollconsole.bridge.contracts import providers
from pollcore.facts import CredentialMode, PollconsoleError, Secret, iso

if TYPE_CHECKING:
    from pollcore.assembly import Core


async def credentials(core: Core) -> list[dict[str, Any]]:
    """What may be known of stored credentials; never a secret."""
    from pollcore.adapters.credential_ops import list_credentials

    return [documents.credential(info) for info in await list_credentials(core.credential_admin.meta)]


async def set_credential(
    core: Core, name: str, *, kind: str, names: Sequence[str], origins: Sequence[str], secret: Secret
) -> None:
    """Store or replace a secret, pinned to *origins*. Raises Refused, CredentialUnavailable."""
    from pollcore.adapters.credential_ops import set_credential as store

    admin, now = core.credential_admin, core.clock.now().wall
    await store(
        admin.vault, admin.meta, name=name, kind=kind, names=tuple(names), origins=origins, secret=secret, now=now
    )


async def remove_credential(core: Core, name: str) -> None:
    """Forget a secret. Raises NotFound, CredentialUnavailable."""
    from pollcore.adapters.credential_ops import remove_credential as forget

    await forget(core.credential_admin.vault, core.credential_admin.meta, name)


async def credential_mode(core: Core, name: str, mode: CredentialMode) -> None:
    """Change a mode. Raises NotFound, Refused (less strict than now: only an operator grants that, G2)."""
    from pollcore.adapters.credential_ops import change_mode

    await change_mode(core.credential_admin.meta, name, mode)


async def doctor_facts(core: Core) -> dict[str, Any]:
    """What an open core can tell `doctor`; each `{"state", "text", "mend"}` is judged already."""
    import asyncio

    facts = dict(await core.facts())
    try:
        facts["keyring"] = {"state": "ok", "text": await asyncio.to_thread(core.vault.describe)}
    except PollconsoleError as error:
        facts["keyring"] = {"state": "wrong", "text": str(error)}
    broken = [f"{view['name']}: {view['error']}" for view in providers(core) if view["error"]]
    for line in broken:
        facts[f"provider {line.partition(':')[0]}"] = {"state": "wrong", "text": line}
    shadowing = [view["name"] for view in providers(core) if view["shadows"]]
    for name in shadowing:
        facts[f"contract {name}"] = {"state": "note", "text": "a file in providers/ is used instead of the shipped one"}
    facts["clock"] = {"state": "ok", "text": f"{iso(core.clock.now().wall)} by this machine's clock"}
    return facts
