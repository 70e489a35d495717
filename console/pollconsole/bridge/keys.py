"""Credentials without their secrets, and what `doctor` asks an open core.

Job: pass one secret to the keyring, hand out what may be known. Must not know: prompts, output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    health = facts.pop("store", None)
    if isinstance(health, dict):
        facts["sqlite"] = _sqlite(health)
        for number, line in enumerate(health.get("warnings", ()), 1):
            facts[f"store {number}"] = {"state": "note", "text": line}
    needed = sorted(
        {info["name"] for info in await credentials(core)}
        | {one.credential for one in core.config.providers.values() if one.credential}
    )
    try:
        facts["keyring"] = {"state": "ok", "text": await asyncio.to_thread(core.vault.describe)}
    except PollconsoleError as error:
        state = "wrong" if needed else "note"
        facts["keyring"] = {"state": state, "text": f"{error}; credentials in use: {', '.join(needed) or 'none'}"}
    views = providers(core)
    facts["contracts"] = f"{sum(not view['error'] for view in views)} usable"
    for view in views:
        if view["error"]:
            facts[f"provider {view['name']}"] = {"state": "wrong", "text": view["error"]}
        elif view["shadows"]:
            facts[f"contract {view['name']}"] = {
                "state": "note",
                "text": f"{view['source']} is used, not the shipped one",
            }
    facts["clock"] = f"{iso(core.clock.now().wall)} by this machine's clock"
    return facts


def _sqlite(health: Mapping[str, Any]) -> dict[str, Any]:
    text = (
        f"SQLite {health.get('sqlite_version')} ({health.get('library')}), journal mode {health.get('journal_mode')}, "
        f"synchronous {health.get('synchronous')}, schema {health.get('schema')}, {health.get('path')}"
    )
    if health.get("wal_reset_bug"):
        return {
            "state": "note",
            "text": f"{text}; it can damage a WAL that two processes write: the slower rollback journal is used",
            "mend": "use a Python whose SQLite is 3.51.3 or newer, or install pysqlite3",
        }
    return {"state": "ok", "text": text}
