"""From a due operation to a claim, or to the write that says why not.

Job: the checks of one poll before its lease, in the order of O7, with everything that the send will need made ready.
Must not know: sockets, SQL, what an answer means.
Source: spec O7, T8, T11, H3, K2, K3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from pollcore import decide, outcome
from pollcore.contract import Contract, normalise_origin, requests
from pollcore.controller.contracts import Contracts
from pollcore.controller.leaves import Leave, Leaves
from pollcore.controller.shared import Shared
from pollcore.controller.unsent import Unsent
from pollcore.facts import (
    BUYS_BEARER,
    AuditEvent,
    ContractError,
    CredentialPending,
    CredentialUnavailable,
    DelaySource,
    Escalate,
    EventName,
    Moment,
    Operation,
    Policy,
    Refused,
    Request,
    Secret,
    StopDetail,
    StopReason,
    StoreUnusable,
)
from pollcore.ports import Chance, Claim, CredentialInfo, Credentials, Store, Write

LEASE_MS: Final = 30_000
LEASE_MARGIN_MS: Final = 5_000
"""A long poll's lease outlives its answer limit by this."""


class Caps(msgspec.Struct, frozen=True):
    """T8: what `[providers.NAME]` allows at once; None: the contract's own. No part of the contract's digest."""

    concurrency: int | None = None
    per_minute: int | None = None


class Ready(msgspec.Struct, frozen=True):
    """A claim with what the send needs; the secret lives only as long as this."""

    claim: Claim
    contract: Contract
    request: Request
    secret: Secret | None
    secret_digest: str | None
    bought: bool = False
    """The secret is a token that the credential buys."""
    shares: bool = False
    """R39: its request may ask for other operations as well."""


Group = tuple[Ready, ...]
"""What goes out in one request: one operation, or several that share it (R39)."""


NO_CAPS: Final = Caps()

Prepared = Ready | Write | None
"""None: nothing to do now (leased, changed, not due)."""


class Preparer:
    """Applies the checks before a request to one due operation."""

    def __init__(
        self,
        store: Store,
        contracts: Contracts,
        credentials: Credentials,
        shared: Shared,
        chance: Chance,
        caps: Mapping[str, Caps],
        owner: str,
    ) -> None:
        self.leaves = Leaves(store, chance, owner)
        self.unsent = Unsent(store, shared, chance)
        self._caps = caps
        self._contracts = contracts
        self._credentials = credentials
        self._shared = shared

    async def policy(self, operation: Operation) -> Policy:
        """The numbers of the operation's contract; defaults where its snapshot cannot be read."""
        try:
            return (await self._contracts.of(operation.contract_digest)).policy
        except ContractError:
            return Policy()

    async def prepare(self, operation: Operation, now: Moment) -> Prepared:
        """Decide whether *operation* may send now. Raises StoreUnusable alone: our own failure stops this operation."""
        try:
            return await self._prepare(operation, now)
        except StoreUnusable:
            raise
        except Exception as error:
            text = f"pollconsole could not prepare this request ({type(error).__name__})"
            reason = StopReason.INTEGRATION_FAILURE
            return self.unsent.stop_for(operation, now, reason, StopDetail.INTERNAL, text)

    async def _prepare(self, operation: Operation, now: Moment) -> Prepared:
        try:
            contract = self._contracts.cached(operation.contract_digest) or await self._contracts.of(
                operation.contract_digest
            )
        except ContractError as error:
            reason = StopReason.INTEGRATION_FAILURE
            return self.unsent.stop_for(operation, now, reason, StopDetail.CONTRACT_MISSING, str(error))
        match decide.before(operation, now=now):
            case decide.Leave():
                return None
            case Escalate() as stop:
                return self.unsent.stop(operation, stop, now)
            case decide.EndHold():
                return await self.unsent.end_hold(operation, now)
            case decide.LimitPassed() as passed:
                after, events = outcome.after_limit(operation, passed, now=now)
                return Write(after=after, fence_change=operation.change, events=events)
            case decide.Rearm():
                return Write(after=outcome.after_rearm(operation, now=now), fence_change=operation.change)
            case decide.Due():
                return await self._due(operation, contract, now)
        raise AssertionError("decide.before is total")

    async def _due(self, operation: Operation, contract: Contract, now: Moment) -> Prepared:
        policy = contract.policy
        caps = self._caps.get(operation.submitted.provider, NO_CAPS)
        batch = contract.steps[0].batch
        most = batch.most if batch is not None else 1
        per_minute = caps.per_minute or contract.per_minute
        if (waits := self.unsent.shared_wait(operation, policy, now, per_minute, most)) is not None:
            return waits
        use = await self._contracts.use(contract)
        if use is None:
            # X7: a contract that was adopted, or that an older program let wait, is asked about before it sends
            return self.unsent.stop(operation, decide.stop(operation, StopReason.FIRST_USE), now)
        try:
            request = requests.status_request(contract, operation, operation.credential)
        except Refused as refused:
            detail = StopDetail.FOREIGN_ORIGIN if refused.code == "foreign_origin" else StopDetail.ADDRESS_MISSING
            return self.unsent.stop_for(operation, now, StopReason.INTEGRATION_FAILURE, detail, str(refused))
        origin = normalise_origin(request.url)
        if not self._shared.may_probe(operation, origin, now):
            return self.unsent.wait_for_origin(operation, origin, policy, now)
        if (waits := self.unsent.turn_after_outage(operation, origin, policy, now, most)) is not None:
            return waits
        info = await self._info(operation, request, origin, now)
        if isinstance(info, Write):
            return info
        leave = await self.leaves.of(operation, contract, request, info, use, now)
        if not isinstance(leave, Leave):
            return leave if isinstance(leave, Write) else None
        secret, digest = None, None
        if info is not None:
            outcome_ = await self._secret(operation, info, origin, now)
            if isinstance(outcome_, Write):
                return outcome_
            secret, digest = outcome_
        down = self._shared.is_down(operation, origin)
        if down:
            self._shared.probing(operation, origin, now, request.total_ms)
        claim = Claim(
            operation=operation,
            step=operation.memory.step or "status",
            origin=origin,
            method=request.method,
            event=sent_event(operation, now),
            lease_ms=max(LEASE_MS, request.total_ms + LEASE_MARGIN_MS),
            concurrency=caps.concurrency or contract.concurrency,
            per_minute=per_minute,
            scopes=contract.scopes,
            secret_digest=digest,
            approval=leave.approval,
            session=leave.session,
        )
        bought = info is not None and info.kind in BUYS_BEARER
        shares = batch is not None and leave.approval is None and not down
        return Ready(claim, contract, request, secret, digest, bought, shares)

    async def _info(
        self, operation: Operation, request: Request, origin: str, now: Moment
    ) -> CredentialInfo | Write | None:
        """The credential that goes with *request*, its secret not read; the stop where it may not go; None: none."""
        if request.slot is None:
            return None
        name, unavailable = request.slot.credential, StopReason.CREDENTIAL_UNAVAILABLE
        try:
            info = await self._credentials.info(name)
        except CredentialUnavailable as error:
            return self.unsent.stop_for(operation, now, unavailable, StopDetail(error.detail), str(error))
        if origin not in info.origins:
            way = f"pollconsole credential set {name} --origin {origin} --kind {info.kind}"
            text = f"credential {name} is not pinned to {origin}; `{way}`"
            return self.unsent.stop_for(operation, now, unavailable, StopDetail.ORIGIN_NOT_PINNED, text)
        return info

    async def _secret(
        self, operation: Operation, info: CredentialInfo, origin: str, now: Moment
    ) -> tuple[Secret, str] | Write:
        """The secret for one send, or the stop that its absence is (K2: nothing was charged)."""
        name, unavailable = info.name, StopReason.CREDENTIAL_UNAVAILABLE
        denial = self._shared.denial(name, origin)
        bought = info.kind in BUYS_BEARER
        if denial is not None and bought and denial.unproved:
            # H3: a new token is a rotated credential, and nobody but the operator rotates one
            entered_since = info.created_at > denial.at
            if not (operation.check_once or entered_since):
                text = (
                    f"a token that credential {name} bought was refused by {origin}; no other one is sent there unasked"
                )
                return self.unsent.stop_for(operation, now, StopReason.AUTHORIZATION_DENIED, None, text, origin=origin)
        refused = denial.secret_digest if denial is not None else None
        try:
            value = await self._credentials.read(name, info)
            if value.digest == refused:
                another = self._credentials.digest(name, (refused,)) if bought else self._credentials.digest(name)
                if await another != value.digest:
                    # what is remembered is the refused one, but there is another by now
                    value = await self._credentials.read(name)
        except CredentialPending:
            return self.unsent.soon(operation, now, source=DelaySource.TOKEN_PENDING)
        except CredentialUnavailable as error:
            return self.unsent.stop_for(operation, now, unavailable, StopDetail(error.detail), str(error))
        if value.digest == refused:
            text = f"credential {name} was refused by {origin}; it is not sent there again until the secret changes"
            return self.unsent.stop_for(operation, now, StopReason.AUTHORIZATION_DENIED, None, text, origin=origin)
        return value.secret, value.digest


def sent_event(operation: Operation, now: Moment) -> AuditEvent:
    """The audit intent of a request that is about to be counted and sent (B3)."""
    return AuditEvent(
        at=now.wall,
        event=EventName.SENT,
        operation_id=operation.operation_id,
        planned_at=operation.next_poll_at,
        requests_used=operation.status_requests_used + 1,
        max_requests=operation.max_status_requests,
        deadline_at=operation.deadline_at,
    )
