"""From a due operation to a claim, or to the write that says why not.

Job: the checks of one poll before its lease, in the order of O7, with everything that the send will need made ready.
Must not know: sockets, SQL, what an answer means.
Source: spec O7, T8, T11, H3, K2, K3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from pollcore import decide, grants, outcome
from pollcore.contract import Contract, normalise_origin, requests
from pollcore.controller.contracts import Contracts
from pollcore.controller.leaves import Leave, Leaves
from pollcore.controller.questions import question_for
from pollcore.controller.shared import Shared
from pollcore.facts import (
    BUYS_BEARER,
    AuditEvent,
    ContractError,
    CredentialPending,
    CredentialUnavailable,
    DelaySource,
    Escalate,
    EventName,
    Instant,
    Moment,
    Operation,
    Policy,
    Refused,
    Request,
    Secret,
    Status,
    StopDetail,
    StopReason,
    StoreUnusable,
    Wait,
)
from pollcore.ports import Chance, Claim, CredentialInfo, Credentials, Store, Write

LEASE_MS: Final = 30_000
LEASE_MARGIN_MS: Final = 5_000
"""A long poll's lease outlives its answer limit by this."""
RECHECK_MS: Final = 20_000
"""How long an operation waits for an origin that is down before it looks again (it is let go spread)."""
CAP_PAUSE_MS: Final = 1_000


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
        self._store = store
        self.leaves = Leaves(store, chance, owner)
        self._caps = caps
        self._contracts = contracts
        self._credentials = credentials
        self._shared = shared
        self._chance = chance

    async def policy(self, operation: Operation) -> Policy:
        """The numbers of the operation's contract; defaults where its snapshot cannot be read."""
        try:
            return (await self._contracts.of(operation.contract_digest)).policy
        except ContractError:
            return Policy()

    def contract(self, operation: Operation) -> Contract | None:
        """The operation's contract where it was read before; no I/O."""
        return self._contracts.cached(operation.contract_digest)

    async def prepare(self, operation: Operation, now: Moment) -> Prepared:
        """Decide whether *operation* may send now. Raises StoreUnusable alone: our own failure stops this operation."""
        try:
            return await self._prepare(operation, now)
        except StoreUnusable:
            raise
        except Exception as error:
            text = f"pollconsole could not prepare this request ({type(error).__name__})"
            reason = StopReason.INTEGRATION_FAILURE
            return self._stop(operation, Policy(), now, reason, StopDetail.INTERNAL, text)

    async def _prepare(self, operation: Operation, now: Moment) -> Prepared:
        try:
            contract = self._contracts.cached(operation.contract_digest) or await self._contracts.of(
                operation.contract_digest
            )
        except ContractError as error:
            return self._stop(
                operation,
                Policy(),
                now,
                StopReason.INTEGRATION_FAILURE,
                StopDetail.CONTRACT_MISSING,
                str(error),
            )
        policy = contract.policy
        match decide.before(operation, policy=policy, now=now):
            case decide.Leave():
                return None
            case Escalate() as stop:
                return self.stop(operation, stop, policy, now)
            case decide.EndHold():
                return await self._end_hold(operation, now)
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
        if (waits := self._shared_wait(operation, policy, now, per_minute, most)) is not None:
            return waits
        use = await self._contracts.use(contract)
        if use is None:
            # X7: a contract that was adopted, or that an older program let wait, is asked about before it sends
            return self.stop(operation, decide.stop(operation, StopReason.FIRST_USE), policy, now)
        try:
            request = requests.status_request(contract, operation, operation.credential)
        except Refused as refused:
            detail = StopDetail.FOREIGN_ORIGIN if refused.code == "foreign_origin" else StopDetail.ADDRESS_MISSING
            return self._stop(operation, policy, now, StopReason.INTEGRATION_FAILURE, detail, str(refused))
        origin = normalise_origin(request.url)
        if not self._shared.may_probe(operation, origin, now):
            return self._wait_for_origin(operation, policy, now)
        info = await self._info(operation, request, origin, policy, now)
        if isinstance(info, Write):
            return info
        leave = await self.leaves.of(operation, contract, request, info, use, now)
        if not isinstance(leave, Leave):
            return leave if isinstance(leave, Write) else None
        secret, digest = None, None
        if info is not None:
            outcome_ = await self._secret(operation, info, origin, policy, now)
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
        self, operation: Operation, request: Request, origin: str, policy: Policy, now: Moment
    ) -> CredentialInfo | Write | None:
        """The credential that goes with *request*, its secret not read; the stop where it may not go; None: none."""
        if request.slot is None:
            return None
        name, unavailable = request.slot.credential, StopReason.CREDENTIAL_UNAVAILABLE
        try:
            info = await self._credentials.info(name)
        except CredentialUnavailable as error:
            return self._stop(operation, policy, now, unavailable, StopDetail(error.detail), str(error))
        if origin not in info.origins:
            text = f"credential {name} is not pinned to {origin}; `pollconsole credential set {name} --origin {origin}`"
            return self._stop(operation, policy, now, unavailable, StopDetail.ORIGIN_NOT_PINNED, text)
        return info

    async def _secret(
        self, operation: Operation, info: CredentialInfo, origin: str, policy: Policy, now: Moment
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
                return self._stop(operation, policy, now, StopReason.AUTHORIZATION_DENIED, None, text, origin=origin)
        refused = denial.secret_digest if denial is not None else None
        try:
            value = await self._credentials.read(name, info)
            if value.digest == refused:
                another = self._credentials.digest(name, (refused,)) if bought else self._credentials.digest(name)
                if await another != value.digest:
                    # what is remembered is the refused one, but there is another by now
                    value = await self._credentials.read(name)
        except CredentialPending:
            return self.capped(operation, policy, now)
        except CredentialUnavailable as error:
            return self._stop(operation, policy, now, unavailable, StopDetail(error.detail), str(error))
        if value.digest == refused:
            text = f"credential {name} was refused by {origin}; it is not sent there again until the secret changes"
            return self._stop(operation, policy, now, StopReason.AUTHORIZATION_DENIED, None, text, origin=origin)
        return value.secret, value.digest

    # --- writes that say why not --------------------------------------------------------------------------------------

    def stop(self, operation: Operation, stop: Escalate, policy: Policy, now: Moment) -> Write:
        """The write of a stop without a request."""
        after = outcome.after_stop(operation, stop, policy=policy, now=now)
        return Write(
            after=after,
            fence_change=operation.change,
            events=outcome.stop_events(operation, after, stop, now=now),
            open_question=question_for(after, stop, now, self._chance) if stop.asks else None,
        )

    def _stop(
        self,
        operation: Operation,
        policy: Policy,
        now: Moment,
        reason: StopReason,
        detail: StopDetail | None,
        text: str,
        *,
        origin: str | None = None,
    ) -> Write:
        cause = decide.cause_of(operation, reason, detail, origin=origin)
        stop = Escalate(status=Status.ESCALATED, reason=reason, detail=detail, explanation=text, cause=cause)
        return self.stop(operation, stop, policy, now)

    async def _end_hold(self, operation: Operation, now: Moment) -> Write:
        """The hold is over: its own question is settled, a held stop asks anew, a held wait goes on."""
        question = next(iter(await self._store.questions(operation.operation_id)), None)
        ended = grants.end_of_hold(operation, question, now=now, new_id=f"esc-{self._chance.token(6)}")
        return Write(
            after=ended.operation or operation,
            fence_change=operation.change,
            events=ended.events,
            open_question=ended.opened,
            close_question=ended.closed,
        )

    def _shared_wait(
        self, operation: Operation, policy: Policy, now: Moment, per_minute: int | None, most: int
    ) -> Write | None:
        """Pauses and cool-downs, before any lease (O7). *most*: operations that one request can ask for."""
        cooldown = self._shared.cooldown(operation, now)
        pause = self._shared.pause(operation, now)
        cooling = cooldown.until_boot - now.boot if cooldown is not None else 0
        paused = pause.until - now.wall if pause is not None else 0
        left = max(cooling, paused)
        if left <= 0:
            return None
        decision = decide.shared_wait(
            operation,
            left,
            policy=policy,
            now=now,
            draw=self._chance.draw(),
            source=DelaySource.SHARED_COOLDOWN,
            guidance=cooling >= paused,
            waiting=1 if cooldown is None else self._shared.place(operation, cooldown.until_boot, most),
            per_minute=per_minute,
            notes=() if cooling >= paused else ("paused by hand",),
        )
        if isinstance(decision, Escalate):
            return self.stop(operation, decision, policy, now)
        return self.reschedule(operation, decision, policy, now)

    def _wait_for_origin(self, operation: Operation, policy: Policy, now: Moment) -> Write:
        decision = decide.shared_wait(
            operation,
            int(RECHECK_MS * (0.5 + self._chance.draw() / 2)),
            policy=policy,
            now=now,
            draw=0.0,
            source=DelaySource.ORIGIN_DOWN,
        )
        if isinstance(decision, Escalate):
            return self.stop(operation, decision, policy, now)
        return self.reschedule(operation, decision, policy, now)

    def capped(self, operation: Operation, policy: Policy, now: Moment, draw: float | None = None) -> Write:
        """The provider's caps are reached, or a token is being bought: look again a little later, quietly.

        *draw*: the same for those that would have gone together.
        """
        at = Instant(now.wall + CAP_PAUSE_MS + int(CAP_PAUSE_MS * (self._chance.draw() if draw is None else draw)))
        wait = Wait(next_poll_at=at, delay_ms=at - now.wall, source=DelaySource.SHARED_COOLDOWN)
        after = outcome.after_schedule(operation, wait, policy=policy, now=now)
        return Write(after=after, fence_change=operation.change)

    def reschedule(self, operation: Operation, wait: Wait, policy: Policy, now: Moment) -> Write:
        """Move the next request without one having been sent; told once, not at every look."""
        after = outcome.after_schedule(operation, wait, policy=policy, now=now)
        told = operation.delay_source is wait.source is DelaySource.ORIGIN_DOWN
        events = () if told else outcome.schedule_events(operation, after, wait, now=now)
        return Write(after=after, fence_change=operation.change, events=events)


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
