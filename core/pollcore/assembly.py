"""Which adapter is used for which port, and nothing else decides that.

Job: put one core together from a home folder, lazily: what a command does not need is not imported and not opened.
Must not know: what any of the parts does with the others.
"""

from __future__ import annotations

import asyncio
import functools
import os
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pollcore.adapters import places
from pollcore.adapters.audit_chain import ChainAudit
from pollcore.adapters.bindings import PUBLIC_KEY, PUBLIC_NAME, LazySealer, StoredMeta, StoredModes
from pollcore.adapters.config import Config, load_config
from pollcore.adapters.quiet import harden as harden
from pollcore.adapters.store import ThreadedStore
from pollcore.adapters.system import SystemChance, SystemClock, os_user
from pollcore.adapters.worker_lock import Deaths, WorkerLock
from pollcore.facts import Operator, StoreUnusable
from pollcore.ports import AuditLog, Chance, Clock, Credentials, Granting, Transport, Worker

if TYPE_CHECKING:
    from pollcore.actions import Actions, Desk
    from pollcore.adapters.audit_checkpoint import AuditKeeper
    from pollcore.adapters.instances import Providers
    from pollcore.adapters.keyring_store import Vault
    from pollcore.adapters.notice_addresses import NoticeAddresses
    from pollcore.adapters.reading_key import ReadingKeys
    from pollcore.adapters.sealer import ReadingKey
    from pollcore.adapters.token_exchange import ExchangedCredentials
    from pollcore.controller import Controller
    from pollcore.controller.contracts import Contracts
    from pollcore.controller.trial import Trial

WRITERS: Final = frozenset({"run", "console", "demo"})
"""Kinds of process that write from the start; the others make their sealing key when something must be sealed."""
SETUP_LOCK: Final = "setup"
AUDIT_LIMIT_S: Final = 2.0
"""Of one keyring call of the audit."""
AUDIT_BEAT_S: Final = 0.05
"""How long a heartbeat waits for the anchor; most visits to a keyring end within it."""
AUDIT_FOLLOW_S: Final = 2.0
"""How long the commit of a grant whose record was anchored is waited for, to anchor it, too."""
AUDIT_COMMAND_S: Final = 1.0
"""How long the end of a command that wrote may wait for the keyring; the next run anchors what it could not."""
AUDIT_END_S: Final = 3.0
"""How long the end of a process may wait for its last checkpoint and anchor."""
SETUP_TRIES: Final = 100
SETUP_PAUSE_S: Final = 0.1


class CredentialAdmin(msgspec.Struct, frozen=True):
    """What `pollconsole credential` works on."""

    vault: Any
    meta: StoredMeta


class Overrides(msgspec.Struct, frozen=True, kw_only=True):
    """What tests and the demo put in place of the real thing; None: the real one."""

    backend: Any = None
    """An in-memory keyring backend, used as it is."""
    clock: Clock | None = None
    chance: Chance | None = None
    transport: Transport | None = None
    slots: int | None = None
    audit: AuditLog | None = None
    """Another audit log, for measurements: no chain, no checkpoints, no anchor."""
    shipped: Callable[[str], bool] | None = None
    """Contract texts that count as shipped besides those that do (the demo's own)."""
    ready_later: bool = False
    """The opener shows rows first, and awaits `Core.ready` before it polls (keys cost a tenth of a second)."""


class Core:
    """One assembled core. Use as an async context manager, made by `open_core`."""

    store: ThreadedStore

    def __init__(self, home: Path | None, kind: str, overrides: Overrides) -> None:
        self.home = places.find(str(home) if home is not None else None)
        self.kind = kind
        self.clock: Clock = overrides.clock or SystemClock()
        self.chance: Chance = overrides.chance or SystemChance()
        self.notices: list[str] = []
        """What a newcomer must be told once (the reading key was made, and where it lies)."""
        self.config = Config()
        self._over = overrides
        self._vault: Vault | None = None
        self._credentials: ExchangedCredentials | None = None
        self._reading_keys: ReadingKeys | None = None
        self._transport: Transport | None = overrides.transport
        self._lock: WorkerLock | None = None
        self._sealer = LazySealer(self._reading_key)
        self._chain = ChainAudit()
        self._begun = False
        """The audit chain of this home was looked at; where there was none, one was begun."""
        self._anchoring: asyncio.Task[None] | None = None
        self._following: asyncio.Task[None] | None = None
        self._preparing = asyncio.Lock()

    # --- life ---------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Core:
        places.prepare(self.home)
        self.configure()
        self.store = await ThreadedStore.open(
            str(self.home.database), self._sealer, self._over.audit or self._chain, Deaths(self.home.workers)
        )
        try:
            for copy in await self.store.copies():
                self.notices.append(f"the store was brought up to date; what it was before is in {copy}")
            await self._sealer.load(self.store)
            if self.kind in WRITERS and not self._over.ready_later:
                await self.ready()
        except BaseException:
            await self.store.close()
            raise
        return self

    async def ready(self) -> None:
        """Before this process polls: keys, audit log and anchor. Done at the opening, unless `ready_later`."""
        await self.prepare()
        await self._audit_ready()

    def configure(self) -> None:
        """Read the settings; without more, keyring and key file can be asked while nothing is opened."""
        self.config = load_config(self.home.home)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._transport is not None:
            await self._transport.aclose()
        if self._lock is not None:
            self._lock.release()
        await self._audit_end()
        await self.store.close()

    async def prepare(self) -> None:
        """Before the first write that seals: the home's keys and audit log (made once) and this run's key."""
        async with self._preparing:
            if self._sealer.is_prepared:
                return
            if not self._begun:
                self._begun = self._over.audit is not None or await self.audit.load(self.store)
            if self._sealer.public_key is None or not self._begun:
                await self._make_home()
            await self._sealer.prepare(self.store, self.clock.now())

    async def _make_home(self) -> None:
        """The first writer on a new home makes the reading key pair and the audit log; two at once agree on one."""
        for attempt in range(SETUP_TRIES):
            try:
                lock = WorkerLock(self.home.workers, SETUP_LOCK)
                break
            except StoreUnusable:
                if attempt == SETUP_TRIES - 1:
                    raise
                await asyncio.sleep(SETUP_PAUSE_S)
        try:
            await self._sealer.load(self.store)
            if self._sealer.public_key is None:
                await self._make_pair()
            if not self._begun and not await self.audit.load(self.store):
                notice = await self.audit.begin(self.store, self.clock.now())
                if notice is not None:
                    self.notices.append(notice)
            self._begun = True
        finally:
            lock.release()

    async def _make_pair(self) -> None:
        from pollcore.adapters.reading_key import MemoryPublicKey

        made = await asyncio.to_thread(self.reading_keys.setup, MemoryPublicKey())
        text = made.public_key_text
        await self.store.put_document(self.clock.now(), PUBLIC_KEY, PUBLIC_NAME, text.encode())
        self._sealer.public_key = text
        self.notices.append(f"made this home's reading key pair; keep its public part elsewhere: {text}")
        if made.notice is not None:
            self.notices.append(made.notice)

    # --- audit --------------------------------------------------------------------------------------------------------

    @cached_property
    def audit(self) -> AuditKeeper:
        """Keys, checkpoints and anchor of the audit chain."""
        from pollcore.adapters.audit_places import keeper

        vault = functools.partial(self._make_vault, limit_s=AUDIT_LIMIT_S)
        return keeper(self._chain, self.home.home, vault, self.config.audit_key_file)

    async def _audit_ready(self) -> None:
        """Before a process polls: the anchor against the chain; what is wrong is told once."""
        if self._over.audit is not None:
            return
        await self.audit.ready(self.store, self.clock.now())
        if self.audit.state.why is not None:
            self.notices.append(f"audit: {self.audit.state.why}")

    async def _audit_end(self) -> None:
        """A process that polled leaves a checkpoint and an anchor, if store and keyring let it."""
        try:
            async with asyncio.timeout(AUDIT_END_S):
                if self._anchoring is not None:
                    await asyncio.wait([self._anchoring])
                if self._following is not None:
                    self._following.cancel()
                if self._over.audit is None and self.kind in WRITERS and self._begun:
                    await self.audit.finish(self.store, self.clock.now())
            if self._over.audit is None and self.kind not in WRITERS and self._chain.has_sealed:
                await self._audit_end_of_command()
        except (StoreUnusable, TimeoutError):
            pass  # told when it happened; the chain is as it was committed, its anchor behind it

    async def _audit_end_of_command(self) -> None:
        """A command that wrote leaves a checkpoint and an anchor, too, where the keyring answers at once."""
        async with asyncio.timeout(AUDIT_COMMAND_S):
            if self.audit.log is not None or await self.audit.load(self.store):
                await self.audit.finish(self.store, self.clock.now())

    async def _authorise(self, writes: Sequence[Granting]) -> None:
        if self._over.audit is None:
            before, change = self._chain.granted, await self.store.change()
            await self.audit.authorise(self.store, self.clock.now(), writes)
            self._following = asyncio.create_task(self._follow_grant(before, change))

    async def _follow_grant(self, before: int, change: int) -> None:
        """The rows that carry a grant out are anchored as soon as they are committed, beside loop and screen (A4)."""
        try:
            async with asyncio.timeout(AUDIT_FOLLOW_S):
                while True:
                    change = await self.store.wait_for_change(change, AUDIT_FOLLOW_S)
                    tip = await self.store.audit_tip()
                    if before != self._chain.granted and tip is not None and tip.seq >= self._chain.granted:
                        break
            await self.audit.anchor(self.store, self.clock.now())
        except (StoreUnusable, TimeoutError):
            pass  # not carried out, or told by the loop's own writes

    # --- parts, made when first needed --------------------------------------------------------------------------------

    @cached_property
    def contracts(self) -> Providers:
        """Contract files and configured instances, by name."""
        from pollcore.adapters.contract_files import ContractFiles
        from pollcore.adapters.instances import Providers

        return Providers(ContractFiles(self.home.providers), self.config.providers)

    @cached_property
    def snapshots(self) -> Contracts:
        """Contracts as operations were submitted under them (S8)."""
        from pollcore.controller.contracts import Contracts

        return Contracts(self.store)

    @cached_property
    def actions(self) -> Actions:
        """What people, scripts and screens can do."""
        from pollcore.actions import Actions

        return Actions(self._desk())

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
            self._transport = HttpTransport(self.clock, ca_file=network.ca_file, proxy=network.proxy)
        return self._transport

    def controller(self) -> Controller:
        """The worker of this process; it holds its lock file until the core is closed (proof of life)."""
        from pollcore.adapters.token_exchange import Impatient
        from pollcore.controller import Caps, Controller

        owner = f"{self.kind}-{os.getpid()}-{self.chance.token(4)}"
        self._lock = WorkerLock(self.home.workers, owner)
        now = self.clock.now()
        worker = Worker(
            owner=owner,
            pid=os.getpid(),
            host=socket.gethostname(),
            kind=self.kind,
            started_at=now.wall,
            beat_at=now.wall,
            beat_boot=now.boot,
            boot_id=now.boot_id,
        )
        caps = {name: Caps(one.concurrency, one.per_minute) for name, one in self.config.providers.items()}
        more: dict[str, Any] = {} if self._over.slots is None else {"slots": self._over.slots}
        # one slow seller of tokens holds up no other provider's requests
        ports = (self.store, self.transport, Impatient(self.credentials), self.clock, self.chance)
        return Controller(*ports, worker, caps=caps, each_beat=self._each_beat, **more)

    def trial(self) -> Trial:
        """What sends one request of a command outside any loop; holds a lock file, as a worker does."""
        from pollcore.controller import Caps
        from pollcore.controller.trial import Trial

        owner = f"{self.kind}-{os.getpid()}-{self.chance.token(4)}"
        self._lock = WorkerLock(self.home.workers, owner)
        caps = {name: Caps(one.concurrency, one.per_minute) for name, one in self.config.providers.items()}
        return Trial(self.store, self.transport, self.credentials, self.clock, self.chance, owner, caps)

    def is_gone(self, owner: str, host: str) -> bool:
        """Whether a worker is proved to have ended: it left its lock file, or the lock on it, on this very machine.

        False: it lives, it was stopped or is slow, or it ran elsewhere, where nothing but its silence tells.
        """
        return host == socket.gethostname() and Deaths(self.home.workers)(owner)

    async def _each_beat(self) -> None:
        await self._sealer.renew(self.store, self.clock.now())
        # beside the loop: a keyring that hangs holds up no poll
        if self._over.audit is None and (self._anchoring is None or self._anchoring.done()):
            self._anchoring = asyncio.create_task(self._audit_beat())
            await asyncio.wait([self._anchoring], timeout=AUDIT_BEAT_S)

    async def _audit_beat(self) -> None:
        try:
            await self.audit.beat(self.store, self.clock.now())
        except StoreUnusable:
            pass  # the loop's own writes tell it

    def _desk(self) -> Desk:
        from pollcore.actions import Caps, Desk, InstanceNames

        instances = {name: InstanceNames(one.credential, one.account) for name, one in self.config.providers.items()}
        policy = self.config.policy
        return Desk(
            store=self.store,
            contracts=self.contracts,
            snapshots=self.snapshots,
            credentials=lambda: self._credentials_port(),
            transport=lambda: self.transport,
            clock=self.clock,
            chance=self.chance,
            caps=Caps(self.config.ceilings, policy.open_operations, policy.requests_per_hour),
            operator=operator_of(self.config),
            os_user=os_user(),
            instances=instances,
            prepare=self.prepare,
            authorise=self._authorise,
            modes=StoredModes(self.store, StoredMeta(self.store, self.clock)),
            shipped=self.ships,
        )

    def ships(self, text: str) -> bool:
        """Whether a contract's text ships with this program, so that no operator has to look at it (G5)."""
        from pollcore.adapters.contract_files import is_shipped

        more = self._over.shipped
        return is_shipped(text) or (more is not None and more(text))

    def _credentials_port(self) -> Credentials:
        return self.credentials

    # --- outside ------------------------------------------------------------------------------------------------------

    @property
    def notice_addresses(self) -> NoticeAddresses:
        """Where notices are sent: names in the store, addresses in the keyring."""
        from pollcore.adapters.notice_addresses import NoticeAddresses
        from pollcore.adapters.notice_sender import ChildSender

        network = self.config.network
        return NoticeAddresses(self.vault, self.store, ChildSender(network.proxy, network.ca_file), self.clock)

    async def send_notices(self, say: Callable[[str], None]) -> None:
        """Send notices beside the loop until cancelled; returns at once where `[notices]` names no event.

        Of the processes that poll one store one sends: it holds the lock file `notices`.
        """
        from pollcore.adapters.notice_claim import Claim, minute_in
        from pollcore.controller.notifier import Notifier, forget

        rules = self.config.notices
        if not rules.events:
            await forget(self.store, self.clock.now())
            return
        claim = Claim(self.home.workers)
        try:
            notifier = Notifier(
                self.store, self.notice_addresses, self.clock, rules, socket.gethostname(),
                claim=claim.take, minute=minute_in(rules.time_zone), say=say,
            )  # fmt: skip
            await notifier.run()
        finally:
            claim.release()

    def metrics(self, controller: Controller, listen: tuple[str, int]) -> tuple[str, Callable[[], Awaitable[None]]]:
        """Listen on a loopback address: where, and what takes the figures until it is cancelled, and then closes.

        Raises Refused, code `metrics`: it cannot listen there, or the library is not installed.
        """
        from pollcore.adapters.audit_overview import overview
        from pollcore.adapters.metrics_http import MetricsServer
        from pollcore.controller.measuring import AuditFigures, Measuring

        async def last_event() -> int:
            return (await asyncio.to_thread(overview, self.home.database)).events

        async def pauses() -> int:
            now = self.clock.now().wall
            return sum(until > now for _, _, until in (await self.store.health()).pauses)

        def audit() -> AuditFigures:
            state = self.audit.state
            return AuditFigures(state.why is None, state.alarm, state.unanchored_since)

        def health() -> str | None:
            return controller.health

        taken = Measuring(self.store, self.clock, last_event=last_event, audit=audit, pauses=pauses, health=health)
        server = MetricsServer(*listen, lambda: taken.latest, self.clock.now)

        async def tell() -> None:
            try:
                await taken.run()
            finally:
                server.close()

        return server.address, tell

    async def facts(self) -> Mapping[str, Any]:
        """What `doctor` prints of this core."""
        health = await self.store.health()
        found: dict[str, Any] = {
            "store": msgspec.to_builtins(health),
            "public_key": self._sealer.public_key,
            "boot_id": self.clock.now().boot_id,
        }
        if self._over.audit is None:
            from pollcore.adapters.audit_facts import audit_fact

            found["audit"] = await audit_fact(
                self.audit, self.store, self.clock.now(), named=self.config.audit_key_file is not None
            )
        return found


def operator_of(config: Config) -> Operator:
    """Who acts: the name in the configuration or the OS user, host and terminal; unverified."""
    try:
        terminal = os.ttyname(0)
    except OSError:
        terminal = "no terminal"
    return Operator(config.operator_name or os_user(), socket.gethostname(), terminal)


def open_core(home: Path | None = None, *, kind: str = "cli", **overrides: Any) -> Core:
    """A core on *home*, to be entered with `async with`.

    Args:
        kind: `run`, `console`, `demo` (they run the polling core), or `cli`.
        overrides: fields of `Overrides`.
    """
    return Core(home, kind, Overrides(**overrides))
