"""Credentials without their secrets.

Job: pass one secret to the keyring, hand out what may be known. Must not know: prompts, output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pollconsole import documents
from pollcore.facts import CredentialMode, Refused, Secret

if TYPE_CHECKING:
    from pollcore.assembly import Core


def memory_keyring() -> Any:
    """A keyring backend that forgets everything with the process: the demo touches no real one."""
    from pollcore.adapters.keyring_store import MemoryBackend

    return MemoryBackend()


async def credentials(core: Core) -> list[dict[str, Any]]:
    """What may be known of stored credentials; never a secret."""
    from pollcore.adapters.credential_ops import list_credentials

    live = await core.actions.sessions()
    return [documents.credential(info, live) for info in await list_credentials(core.credential_admin.meta)]


async def check_credential(core: Core, provider: str, name: str, *, by_settings: bool = False) -> None:
    """Raises Refused: the provider's contract wants no credential, or none of that name is stored; NotFound.

    *by_settings*: the provider's table in `config.toml` names it, not the command.
    """
    from pollcore.actions.given import check_stored, check_wanted

    contract = core.contracts.find(provider)
    instance = provider if by_settings else None
    check_wanted(contract, name, instance)
    await check_stored(core.credentials, name, contract.credential_kind, instance=instance)


async def set_credential(
    core: Core, name: str, *, kind: str, names: Sequence[str], origins: Sequence[str], secret: Secret
) -> None:
    """Store or replace a secret, pinned to *origins*. Raises Refused, CredentialUnavailable.

    In a new home the audit begins before it, so that no event is older than the chain.
    """
    import asyncio

    from pollcore.adapters.credential_ops import set_credential as store

    admin, now = core.credential_admin, core.clock.now().wall

    async def begin() -> None:
        # without a keyring nothing will be stored, and a home that is begun now would keep its keys in files
        await asyncio.to_thread(admin.vault.describe)
        await core.prepare()

    await store(
        admin.vault, admin.meta, name=name, kind=kind, names=tuple(names), origins=origins, secret=secret, now=now,
        begin=begin,
    )  # fmt: skip


def seller_names(kind: str, *, url: str | None, client_auth: str | None, scope: str | None) -> tuple[str, ...]:
    """Where and how a kind that buys tokens buys them, as it is kept. Raises Refused, naming the option."""
    from pollcore.adapters.token_kinds import seller_names as names

    return names(kind, url=url, client_auth=client_auth, scope=scope)


async def known_credential(core: Core, name: str) -> None:
    """Raises NotFound with near names: no credential of that name is stored."""
    from pollcore.adapters.credential_ops import existing

    await existing(core.credential_admin.meta, name)


async def remove_credential(core: Core, name: str) -> None:
    """Forget a secret. Raises NotFound, CredentialUnavailable."""
    from pollcore.adapters.credential_ops import remove_credential as forget

    await forget(core.credential_admin.vault, core.credential_admin.meta, name)


async def credential_mode(
    core: Core, name: str, mode: CredentialMode, by: str, because: str | None = None
) -> dict[str, Any] | None:
    """Change a mode; None: it is changed. A less strict one is only asked for (G2): the question. Raises NotFound."""
    from pollcore.adapters.credential_ops import change_mode

    try:
        await change_mode(core.credential_admin.meta, name, mode)
    except Refused as refused:
        if refused.code != "mode_needs_grant":
            raise
        return documents.credential_question(await core.actions.ask_mode(name, mode, by, because))
    return None
