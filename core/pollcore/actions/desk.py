"""What every action needs at hand.

Job: one bundle of ports, and the reads that several actions share. Must not know: what any action does.
"""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final, Protocol

import msgspec

from pollcore.contract import Contract
from pollcore.controller.contracts import Contracts
from pollcore.facts import Escalation, Limits, NotFound, Operation, Operator
from pollcore.ports import Chance, Clock, CredentialModes, Credentials, Filter, Granting, Store, Transport

NEAR: Final = 3
"""How many near names a miss lists."""


async def unrecorded(writes: Sequence[Granting]) -> None:
    """For stores whose audit has no anchor (the simulation)."""
    del writes


def never(text: str) -> bool:
    """No text ships, no action is given up: what tests and the simulation make."""
    del text
    return False


def unmarked(action_id: str) -> AbstractContextManager[object]:
    """No other process can see what this one carries out (the simulation)."""
    del action_id
    return contextlib.nullcontext()


class ContractSource(Protocol):
    """Contract files and configured instances, by name."""

    def find(self, name: str) -> Contract:
        """With instance settings applied. Raises NotFound, ContractError."""
        ...


class Caps(msgspec.Struct, frozen=True):
    """`[ceilings]` and `[policy]` of the configuration (B1)."""

    ceilings: Limits = Limits()
    open_operations: int | None = None
    requests_per_hour: int | None = None


class InstanceNames(msgspec.Struct, frozen=True):
    """What `[providers.NAME]` says of who asks there."""

    credential: str | None = None
    account: str | None = None


class Desk(msgspec.Struct, frozen=True):
    """The ports of one process. *transport* is made when first needed: most commands send nothing."""

    store: Store
    contracts: ContractSource
    snapshots: Contracts
    credentials: Callable[[], Credentials]
    """Made when first needed: most commands read no secret."""
    transport: Callable[[], Transport]
    clock: Clock
    chance: Chance
    caps: Caps
    operator: Operator
    os_user: str
    instances: Mapping[str, InstanceNames]
    prepare: Callable[[], Awaitable[None]]
    """Before the first write of a process that may seal something."""
    authorise: Callable[[Sequence[Granting]], Awaitable[None]] = unrecorded
    """Before a commit that uses up grants: their record is anchored, else Refused (A4)."""
    modes: CredentialModes | None = None
    """Credentials' modes and the questions about them; None: this core keeps no credentials (the simulation)."""
    shipped: Callable[[str], bool] = never
    """Whether a contract's text ships with this program (G5: everything else is new until an operator has seen it)."""
    carrying: Callable[[str], AbstractContextManager[object]] = unmarked
    """Held from before an action's intent is stored until its outcome is: proof to other processes that this one lives
    and carries it out. Raises StoreUnusable: it cannot be shown, so nothing is begun."""
    is_gone: Callable[[str], bool] = never
    """Whether nobody carries the action of this id out any more: its process ended, or gave it up."""

    def default_credential(self, provider: str) -> str | None:
        """The credential that the instance of that name is asked with."""
        found = self.instances.get(provider)
        return found.credential if found is not None else None

    def instance_account(self, provider: str) -> str | None:
        """The account that the instance of that name belongs to."""
        found = self.instances.get(provider)
        return found.account if found is not None else None

    async def operation(self, operation_id: str) -> Operation:
        """The record. Raises NotFound with near names."""
        found = await self.store.operation(operation_id)
        if found is not None:
            return found
        known = [o.operation_id for o in await self.store.operations(Filter(limit=1_000))]
        near = difflib.get_close_matches(operation_id, known, NEAR, 0.6)
        hint = f"; did you mean {' or '.join(near)}?" if near else "; `pollconsole list` shows what is there"
        raise NotFound(f"no operation {operation_id!r}{hint}")

    async def question(self, operation_id: str) -> Escalation | None:
        """The open question of an operation (one at most, E7)."""
        return next(iter(await self.store.questions(operation_id)), None)

    async def contract(self, operation: Operation) -> Contract:
        """The contract that *operation* was submitted under (S8). Raises ContractError."""
        return await self.snapshots.of(operation.contract_digest)
