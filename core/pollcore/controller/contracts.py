"""Contract snapshots by digest, parsed once.

Job: give the loop the contract that an operation was submitted under (S8). Must not know: contract files, requests.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from pollcore.contract import Contract, from_snapshot
from pollcore.facts import ContractError, ContractUse, Snapshot
from pollcore.ports import Store

MAX_CACHED: Final = 256
"""Parsed contracts kept; a store with more contracts in use parses again."""


class Contracts:
    """A bounded cache over the store's snapshots."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._parsed: OrderedDict[str, Contract] = OrderedDict()
        self._uses: dict[str, ContractUse] = {}
        """Decided once for each digest and never changed: kept for ever."""

    def cached(self, digest: str) -> Contract | None:
        """The contract when it was parsed before; no I/O."""
        return self._parsed.get(digest)

    async def of(self, digest: str) -> Contract:
        """Raises ContractError: the snapshot is missing or no longer parses (a newer program wrote it)."""
        if (known := self._parsed.get(digest)) is not None:
            self._parsed.move_to_end(digest)
            return known
        snapshot = await self._store.snapshot(digest)
        if snapshot is None:
            raise ContractError(f"contract snapshot {digest[:12]} is not in the store")
        return self.remember(snapshot)

    async def use(self, contract: Contract) -> ContractUse | None:
        """X7: what the status requests under *contract* are: said by itself, else by an operator; None: undecided."""
        if not contract.asks_first_use:
            return ContractUse.ACTION if contract.observation == "action" else ContractUse.READ_ONLY
        use = self._uses.get(contract.digest)
        if use is None:
            use = (await self._store.contracts_known((contract.digest,)))[contract.digest].use
            if use is not None:
                self._uses[contract.digest] = use
        return use

    def remember(self, snapshot: Snapshot) -> Contract:
        """Parse and keep *snapshot*. Raises ContractError."""
        contract = from_snapshot(snapshot)
        self._parsed[snapshot.digest] = contract
        while len(self._parsed) > MAX_CACHED:
            self._parsed.popitem(last=False)
        return contract
