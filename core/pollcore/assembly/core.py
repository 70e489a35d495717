"""One core on one home folder, from its opening to its end, and what works with it: actions, a worker, a trial.

Job: open and close in the right order, and hand each of them its parts. Must not know: which adapter stands for which
port (that is `parts`), what anything does with it.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pollcore.adapters import places
from pollcore.adapters.bindings import StoredMeta, StoredModes
from pollcore.adapters.config import Config
from pollcore.adapters.system import os_user
from pollcore.adapters.worker_lock import Deaths, WorkerLock
from pollcore.assembly.audit_side import AuditSide
from pollcore.assembly.home_keys import HomeKeys
from pollcore.assembly.overrides import Overrides
from pollcore.assembly.parts import Parts
from pollcore.facts import Operator
from pollcore.ports import Worker

if TYPE_CHECKING:
    from pollcore.actions import Actions, Desk
    from pollcore.adapters.audit_checkpoint import AuditKeeper
    from pollcore.controller import Controller
    from pollcore.controller.trial import Trial

LOST_EVERY_MS: Final = 60_000
"""A polling core looks so often for actions whose process died; its first beat looks, too."""
WRITERS: Final = frozenset({"run", "console", "demo"})
"""Kinds of process that write from the start; the others make their sealing key when something must be sealed."""


class Core(Parts):
    """One assembled core. Use as an async context manager, made by `open_core`."""

    def __init__(self, home: Path | None, kind: str, overrides: Overrides) -> None:
        super().__init__(home, overrides)
        self.kind = kind
        self.notices: list[str] = []
        """What a newcomer must be told once (the reading key was made, and where it lies)."""
        self._lock: WorkerLock | None = None
        self._lost_due = 0
        """Boot time of the next look for actions whose process died."""
        off, polls = overrides.audit is not None, kind in WRITERS
        self._audit = AuditSide(self._chain, self._make_keeper, self.clock, off=off, polls=polls)
        self._keys = HomeKeys(
            self._sealer,
            self._audit,
            self.clock,
            reading_keys=lambda: self.reading_keys,
            locks=self.home.workers,
            say=lambda text: self.notices.append(text),
        )

    # --- life ---------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Core:
        places.prepare(self.home)
        self.configure()
        self.store = await self._open_store(when_full=self.kind not in WRITERS)
        self._audit.open(self.store)
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
        why = await self._audit.ready()
        if why is not None:
            self.notices.append(f"audit: {why}")

    async def prepare(self) -> None:
        """Before the first write that seals: the home's keys and audit log (made once) and this run's key."""
        await self._keys.prepare(self.store)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._transport is not None:
            await self._transport.aclose()
        if self._lock is not None:
            self._lock.release()
        await self._audit.end()
        await self.store.close()

    # --- what works with it -------------------------------------------------------------------------------------------

    @cached_property
    def actions(self) -> Actions:
        """What people, scripts and screens can do."""
        from pollcore.actions import Actions

        return Actions(self._desk())

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
        await self._audit.beat()
        await self._settle_lost()

    async def _settle_lost(self) -> None:
        """O5: what another process, or this home's last one, began and nobody will end."""
        now = self.clock.now()
        if now.boot >= self._lost_due:
            await self.actions.settle_lost()
            self._lost_due = now.boot + LOST_EVERY_MS

    @contextlib.contextmanager
    def _carrying(self, action_id: str) -> Iterator[None]:
        """A lock file of the action's own: held while it is carried out, free once this process has ended."""
        lock = WorkerLock(self.home.workers, action_id)
        try:
            yield
        finally:
            lock.release()

    @property
    def audit(self) -> AuditKeeper:
        """Keys, checkpoints and anchor of the audit chain."""
        return self._audit.keeper

    def _desk(self) -> Desk:
        from pollcore.actions import Caps, Desk, InstanceNames

        instances = {name: InstanceNames(one.credential, one.account) for name, one in self.config.providers.items()}
        policy = self.config.policy
        return Desk(
            store=self.store,
            contracts=self.contracts,
            snapshots=self.snapshots,
            credentials=lambda: self.credentials,
            transport=lambda: self.transport,
            clock=self.clock,
            chance=self.chance,
            caps=Caps(self.config.ceilings, policy.open_operations, policy.requests_per_hour),
            operator=operator_of(self.config),
            os_user=os_user(),
            instances=instances,
            prepare=self.prepare,
            authorise=self._audit.authorise,
            modes=StoredModes(self.store, StoredMeta(self.store, self.clock)),
            shipped=self.ships,
            carrying=self._carrying,
            is_gone=Deaths(self.home.workers),
        )

    # --- outside ------------------------------------------------------------------------------------------------------

    async def send_notices(self, say: Callable[[str], None]) -> None:
        """Send notices beside the loop until cancelled; returns at once where `[notices]` names no event."""
        from pollcore.assembly import outside

        await outside.send_notices(
            self.store, self.clock, self.config, self.home.workers, lambda: self.notice_addresses, say
        )

    def metrics(self, controller: Controller, listen: tuple[str, int]) -> tuple[str, Callable[[], Awaitable[None]]]:
        """Listen on a loopback address: where, and what takes the figures until it is cancelled, and then closes.

        Raises Refused, code `metrics`: it cannot listen there, or the library is not installed.
        """
        from pollcore.assembly import outside

        return outside.metrics(self.store, self.clock, self.home.database, lambda: self.audit, controller, listen)

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
