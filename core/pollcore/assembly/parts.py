"""Which adapter is used for which port, and nothing else decides that.

Job: the parts of one core, each made when it is first needed: what a command does not need is not imported and not
opened. Must not know: when the store is opened or closed, what any of the parts does with the others.
"""

from __future__ import annotations

import functools
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pollcore.adapters import places
from pollcore.adapters.audit_chain import ChainAudit
from pollcore.adapters.bindings import LazySealer, StoredMeta
from pollcore.adapters.config import Config, load_config
from pollcore.adapters.store import ThreadedStore
from pollcore.adapters.system import SystemChance, SystemClock
from pollcore.adapters.worker_lock import Deaths
from pollcore.assembly.overrides import Overrides
from pollcore.facts import Refused
from pollcore.ports import Chance, Clock, Transport

if TYPE_CHECKING:
    from pollcore.adapters.audit_checkpoint import AuditKeeper
    from pollcore.adapters.instances import Providers
    from pollcore.adapters.keyring_store import Vault
    from pollcore.adapters.notice_addresses import NoticeAddresses
    from pollcore.adapters.reading_key import ReadingKeys
    from pollcore.adapters.sealer import ReadingKey
    from pollcore.adapters.token_exchange import ExchangedCredentials
    from pollcore.controller.contracts import Contracts

AUDIT_LIMIT_S: Final = 2.0
"""Of one keyring call of the audit."""


class CredentialAdmin(msgspec.Struct, frozen=True):
    """What `pollconsole credential` works on."""

    vault: Any
    meta: StoredMeta


class Parts:
    """The parts of one core over one home folder; `store` is there while it is open."""

    store: ThreadedStore

    def __init__(self, home: Path | None, overrides: Overrides) -> None:
        self.home = places.find(str(home) if home is not None else None)
        self.clock: Clock = overrides.clock or SystemClock()
        self.chance: Chance = overrides.chance or SystemChance()
        self.config = Config()
        self._over = overrides
        self._vault: Vault | None = None
        self._credentials: ExchangedCredentials | None = None
        self._reading_keys: ReadingKeys | None = None
        self._transport: Transport | None = overrides.transport
        self._sealer = LazySealer(self._reading_key)
        self._chain = ChainAudit()

    def configure(self) -> None:
        """Read the settings; without more, keyring and key file can be asked while nothing is opened."""
        self.config = load_config(self.home.home)

    async def _open_store(self, *, when_full: bool) -> ThreadedStore:
        """*when_full*: on a full disk it is opened all the same, to be read. Raises StoreUnusable."""
        audit, is_dead = self._over.audit or self._chain, Deaths(self.home.workers)
        return await ThreadedStore.open(str(self.home.database), self._sealer, audit, is_dead, when_full=when_full)

    @cached_property
    def contracts(self) -> Providers:
        """Contract files and configured instances, by name."""
        from pollcore.adapters.contract_files import ContractFiles
        from pollcore.adapters.instances import Providers

        return Providers(ContractFiles(self.home.providers), self.config)

    @cached_property
    def snapshots(self) -> Contracts:
        """Contracts as operations were submitted under them (S8)."""
        from pollcore.controller.contracts import Contracts

        return Contracts(self.store)

    @property
    def vault(self) -> Vault:
        """The keyring entries of this home."""
        if self._vault is None:
            self._vault = self._make_vault()
        return self._vault

    def _make_vault(self, **limits: float) -> Vault:
        from pollcore.adapters.keyring_store import Vault

        return Vault(self.home.home, backend=self._over.backend, named=self.config.keyring_backend, **limits)

    @property
    def reading_keys(self) -> ReadingKeys:
        """Where the private part of the reading key is looked for."""
        if self._reading_keys is None:
            from pollcore.adapters.reading_key import ReadingKeys

            self._reading_keys = ReadingKeys(self.home.home, self.vault, self.config.audit_key_file)
        return self._reading_keys

    def _reading_key(self, public: str) -> ReadingKey | None:
        return self.reading_keys.load_or_none(public)

    @property
    def credentials(self) -> ExchangedCredentials:
        """Secrets by name."""
        if self._credentials is None:
            from pollcore.adapters.credentials import KeyringCredentials
            from pollcore.adapters.token_exchange import ExchangedCredentials

            kept = KeyringCredentials(self.vault, StoredMeta(self.store, self.clock), self.clock)
            # the transport brings httpx: it is made when the first token is bought
            self._credentials = ExchangedCredentials(kept, lambda: self.transport, self.clock)
        return self._credentials

    @property
    def credential_admin(self) -> CredentialAdmin:
        """Setting and removing credentials."""
        return CredentialAdmin(self.vault, StoredMeta(self.store, self.clock))

    @property
    def transport(self) -> Transport:
        """Sends requests; brings httpx with it."""
        if self._transport is None:
            from pollcore.adapters.quiet import hush_loggers
            from pollcore.adapters.transport import HttpTransport

            hush_loggers()
            network = self.config.network
            try:
                self._transport = HttpTransport(self.clock, ca_file=network.ca_file, proxy=network.proxy)
            except Refused as error:
                raise self.config.placed(error) from None
        return self._transport

    def _make_keeper(self) -> AuditKeeper:
        """What looks after the keys, checkpoints and anchor of the audit chain."""
        from pollcore.adapters.audit_places import keeper

        vault = functools.partial(self._make_vault, limit_s=AUDIT_LIMIT_S)
        return keeper(self._chain, self.home.home, vault, self.config.audit_key_file)

    def ships(self, text: str) -> bool:
        """Whether a contract's text ships with this program, so that no operator has to look at it (G5)."""
        from pollcore.adapters.contract_files import is_shipped

        more = self._over.shipped
        return is_shipped(text) or (more is not None and more(text))

    @property
    def notice_addresses(self) -> NoticeAddresses:
        """Where notices are sent: names in the store, addresses in the keyring."""
        from pollcore.adapters.notice_addresses import NoticeAddresses
        from pollcore.adapters.notice_sender import ChildSender

        network = self.config.network
        return NoticeAddresses(self.vault, self.store, ChildSender(network.proxy, network.ca_file), self.clock)
