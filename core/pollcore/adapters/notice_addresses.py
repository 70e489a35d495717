"""Addresses of notices: the address in the keyring, its name and service in the store.

Job: set, remove, list, send to a name. Must not know: what is sent, when. An address holds tokens: it is a secret, and
nothing but its scheme is ever shown (K1).
Source: spec K1, K2, A1 (a change is an audit event).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Protocol

import msgspec

from pollcore.adapters.bindings import Documents
from pollcore.adapters.keyring_store import MAX_VALUE, Vault
from pollcore.facts import AuditEvent, EventName, Instant, NotFound, Refused, Secret
from pollcore.ports import Clock

KIND: Final = "notice_address"
MAX_ADDRESSES: Final = 20
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,30})://[!-~]+", re.ASCII)


class Sends(Protocol):
    """What sends; `ChildSender`."""

    async def send(self, address: Secret, title: str, body: str) -> str | None: ...

    async def check(self, address: Secret) -> str | None: ...


class AddressInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What may be known of an address."""

    name: str
    service: str
    """The scheme: `mailto`, `slack`, `json`."""
    set_at: Instant


class NoticeAddresses:
    """The addresses of one home."""

    def __init__(self, vault: Vault, store: Documents, sender: Sends, clock: Clock) -> None:
        self._vault = vault
        self._store = store
        self._sender = sender
        self._clock = clock

    async def set(self, name: str, address: Secret, by: str) -> AddressInfo:
        """Store an address or replace it. Raises Refused (code `notice`), CredentialUnavailable: the keyring."""
        if not _NAME.fullmatch(name):
            raise Refused("an address's name is 1-64 ASCII letters, digits, '.', '_' and '-'", code="notice")
        match = _SCHEME.fullmatch(address.reveal())
        if match is None or len(address.reveal()) > MAX_VALUE:
            raise Refused(
                f"an address is written as apprise has it, SERVICE://..., at most {MAX_VALUE} characters of ASCII "
                "without spaces",
                code="notice",
            )
        if name not in (known := await self.infos()) and len(known) >= MAX_ADDRESSES:
            raise Refused(f"there are {MAX_ADDRESSES} addresses already; remove one", code="notice")
        why = await self._sender.check(address)
        if why is not None:
            raise Refused(f"not stored: {why.replace('the stored address', 'the address')}", code="notice")
        await self._vault.aset(_entry(name), address.reveal())
        now = self._clock.now()
        info = AddressInfo(name=name, service=match[1].lower(), set_at=now.wall)
        await self._store.put_document(now, KIND, name, msgspec.json.encode(info), (self._event(info, by, "set"),))
        return info

    async def remove(self, name: str, by: str) -> None:
        """Forget an address. Raises NotFound, CredentialUnavailable (then nothing was removed)."""
        info = (await self.infos()).get(name)
        if info is None:
            raise NotFound(f"no address {name!r}; 'pollconsole notice list' shows all")
        await self._vault.adelete(_entry(name))
        await self._store.put_document(self._clock.now(), KIND, name, None, (self._event(info, by, "removed"),))

    def _event(self, info: AddressInfo, by: str, what: str) -> AuditEvent:
        text = f"address of notices {info.name} ({info.service}) {what}"
        return AuditEvent(at=self._clock.now().wall, event=EventName.CREDENTIAL_CHANGED, text=text, caller=by)

    async def infos(self) -> Mapping[str, AddressInfo]:
        """What may be known, by name."""
        found = await self._store.documents(KIND)
        return {name: msgspec.json.decode(found[name], type=AddressInfo) for name in sorted(found)}

    async def names(self) -> tuple[str, ...]:
        """Of stored addresses, sorted."""
        return tuple(await self.infos())

    async def send(self, name: str, title: str, body: str) -> str | None:
        """None: the service took it; else why not. Raises LookupError: there is none of that name;
        CredentialUnavailable: the keyring.
        """
        if name not in await self.infos():
            raise LookupError(name)
        (kept,) = await self._vault.aget(_entry(name))
        if kept is None:
            return "its address is not in the keyring any more: set it again"
        return await self._sender.send(Secret(kept), title, body)


def _entry(name: str) -> str:
    return f"notice:{name}"
