"""May this operation's request ask for others as well?

Job: (operation) -> with whom it may go, or alone. Must not know: who is due, what is sent.
Source: contract need R39; spec G6, X7: an approval is given for one call of one operation.
"""

from __future__ import annotations

from pollcore import decide
from pollcore.contract import Contract
from pollcore.contract.batch_requests import Together, together
from pollcore.controller.contracts import Contracts
from pollcore.escalation.approvals import Approval, approval_needed
from pollcore.facts import ContractError, CredentialUnavailable, Moment, Operation, StoreUnusable
from pollcore.ports import Credentials

MAX_KNOWN = 10_000
"""Operations of which is remembered with whom they go."""


class Sharing:
    """Answers for one worker."""

    def __init__(self, contracts: Contracts, credentials: Credentials) -> None:
        self._contracts = contracts
        self._credentials = credentials
        self._known: dict[str, tuple[int, Together | None]] = {}

    def goes_alone(self, operation: Operation) -> bool:
        """Its contract, read before, asks for one operation at a time; no I/O."""
        contract = self._contracts.cached(operation.contract_digest)
        return contract is not None and contract.steps[0].batch is None

    async def of(self, operation: Operation, now: Moment) -> tuple[Together, Contract] | None:
        """With whom *operation* may share its next request; None: it goes alone, or not at all.

        Raises StoreUnusable alone: where we fail ourselves it goes alone, and what prepares it says so.
        """
        try:
            return await self._of(operation, now)
        except StoreUnusable:
            raise
        except Exception:
            return None

    async def _of(self, operation: Operation, now: Moment) -> tuple[Together, Contract] | None:
        try:
            contract = await self._contracts.of(operation.contract_digest)
        except ContractError:
            return None
        if contract.steps[0].batch is None or not isinstance(decide.before(operation, now=now), decide.Due):
            return None
        key = self._key(operation, contract)
        return None if key is None or not await self._without_a_question(operation, contract) else (key, contract)

    def _key(self, operation: Operation, contract: Contract) -> Together | None:
        found = self._known.get(operation.operation_id)
        if found is None or found[0] != operation.change:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            found = (operation.change, together(contract, operation))
            self._known[operation.operation_id] = found
        return found[1]

    async def _without_a_question(self, operation: Operation, contract: Contract) -> bool:
        """No request of *operation* needs an approval of its own. What cannot be known is asked about alone."""
        use = await self._contracts.use(contract)
        if use is None:
            return False
        mode = None
        if operation.credential is not None:
            try:
                mode = (await self._credentials.info(operation.credential)).mode
            except CredentialUnavailable:
                return False
        return approval_needed(mode, contract.policy.least_mode, use) is not Approval.CALL
