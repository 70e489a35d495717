"""One counted request outside the loop: `provider try`.

Job: the same checks, lease, charge, intent and record as a poll of the loop, for one operation that is closed in the
write that records its answer. Must not know: contract files, who asks, what is shown.
Source: spec B2, B3, O2, O7, T8, T11, G5, X7. The gate is the poll's own (`prepare`): nothing is asked, nothing granted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from pollcore.contract import Contract
from pollcore.controller.contracts import Contracts
from pollcore.controller.exchange import Exchanger, Out
from pollcore.controller.prepare import Caps, Prepared, Preparer, Ready
from pollcore.controller.shared import Shared
from pollcore.facts import (
    Answer,
    AuditEvent,
    EventName,
    Fault,
    Instant,
    Moment,
    Operation,
    Status,
    StopDetail,
    StoreUnusable,
)
from pollcore.ports import Chance, Claimed, Clock, Credentials, Store, Transport, Turn, Write

TRIED: Final = "tried"
"""The decision of a try's events: something would have been decided, nothing was."""
TRIES: Final = 5
"""How often the record is written again when it moved while the request was out."""


class Sent(msgspec.Struct, frozen=True):
    """One request and what came of it."""

    operation: Operation
    """As recorded: closed."""
    claimed: Operation
    """As it was when the request went out."""
    brought: Answer | Fault
    draw: float | None
    url: str


class Trial:
    """What one command sends; it lives as long as the command."""

    def __init__(
        self,
        store: Store,
        transport: Transport,
        credentials: Credentials,
        clock: Clock,
        chance: Chance,
        owner: str,
        caps: Mapping[str, Caps],
    ) -> None:
        self._store = store
        self._clock = clock
        self._owner = owner
        self._shared = Shared()
        self._contracts = Contracts(store)
        self._prepare = Preparer(store, self._contracts, credentials, self._shared, chance, caps, owner)
        self._exchange = Exchanger(transport, clock, chance, self._shared, credentials.forget, self._contracts)

    async def prepare(self, operation: Operation, contract: Contract) -> Prepared:
        """What a poll of *operation* would do now: ready to send, or the write that says why not. Stores nothing.

        Raises StoreUnusable: also where the counters do not equal the recorded sends (O6).
        """
        if wrong := await self._store.check():
            raise StoreUnusable(f"the records do not add up, nothing is sent: {wrong[0]} (all: `pollconsole doctor`)")
        now = self._clock.now()
        self._shared.learn(await self._store.turn(Turn(now=now, owner=self._owner)))
        self._contracts.remember(contract.snapshot)
        return await self._prepare.prepare(operation, now)

    async def send(self, ready: Ready, stored: Operation, as_if: Callable[[Operation], Operation]) -> Sent | None:
        """Charge *stored*, send, record, close. None: the claim was not taken (caps, or the record moved).

        Args:
            ready: From `prepare` for the same operation.
            stored: The record as it stands in the store.
            as_if: The record under the limits that the answer is judged by; they are not stored.
        """
        now = self._clock.now()
        claim = msgspec.structs.replace(ready.claim, operation=stored)
        ready = msgspec.structs.replace(ready, claim=claim)
        cooldowns, origins, denials = self._shared.take_new()
        found = await self._store.turn(
            Turn(now=now, owner=self._owner, claims=(claim,), cooldowns=cooldowns, origins=origins, denials=denials)
        )
        self._shared.learn(found)
        claimed = found.claimed[0]
        if claimed is None:
            return None
        brought = await self._exchange.send(Out((ready, claimed)))
        return await self._record(ready, claimed, brought, as_if)

    async def _record(
        self, ready: Ready, claimed: Claimed, brought: Answer | Fault, as_if: Callable[[Operation], Operation]
    ) -> Sent:
        base = claimed.operation
        for attempt in range(TRIES):
            judged = Claimed(as_if(base), claimed.intents, claimed.charged_at)
            out = Out((ready, judged))
            if attempt == 0:
                read = self._exchange.record(out, brought)[0]
            else:
                read = await self._exchange.again(out, ready, judged, brought)
            write = self._closing(base, read)
            cooldowns, origins, denials = self._shared.take_new()
            now = self._clock.now()
            found = await self._store.turn(
                Turn(
                    now=now,
                    owner=self._owner,
                    writes=(write,),
                    cooldowns=cooldowns,
                    origins=origins,
                    denials=denials,
                )
            )
            if found.taken[0]:
                draw = write.stored.draw if write.stored is not None else None
                return Sent(write.after, judged.operation, brought, draw, ready.request.url)
            moved = found.moved[0] if found.moved else None
            if moved is None:
                break
            base = moved  # an operator changed the record while the request was out
        raise StoreUnusable(
            f"{base.operation_id}: the request was sent and is counted, its answer could not be recorded: "
            f"`pollconsole show {base.operation_id}`"
        )

    def _closing(self, stored: Operation, write: Write) -> Write:
        """*write* of an ordinary poll, as that of a try: counters and what was seen stay, nothing goes on or asks."""
        now = self._clock.now()
        limits: dict[str, Any] = {name: getattr(stored, name) for name in _LIMITS}
        after = msgspec.structs.replace(
            write.after,
            status=Status.CLOSED,
            version=stored.version + 1,
            next_poll_at=None,
            due_boot=None,
            guidance_until=None,
            delay_source=None,
            stop_reason=None,
            stop_detail=StopDetail.PROVIDER_TRY,
            stop_explanation=None,
            result=None,
            **limits,
        )
        told = [_told(event, after) for event in write.events]
        events = (*told, tried_event(after, now, write.events))
        return msgspec.structs.replace(write, after=after, events=events, open_question=None)


_LIMITS: Final = (
    "deadline_at", "deadline_boot", "useful_until", "max_status_requests", "max_transport_failures", "max_rate_limited",
)  # fmt: skip


def _told(event: AuditEvent, after: Operation) -> AuditEvent:
    """The answer's own event, without a plan and without a stop: neither was made."""
    return msgspec.structs.replace(
        event,
        decision=TRIED,
        reason=None,
        detail=None,
        text=None,
        next_poll_at=None,
        delay_source=None,
        max_requests=after.max_status_requests,
        deadline_at=after.deadline_at,
    )


def tried_event(after: Operation, now: Moment, read: tuple[AuditEvent, ...] = ()) -> AuditEvent:
    """The end of a try, with what a wait under this contract would have decided; without *read* nothing was sent."""
    judged = read[0] if read else None
    return AuditEvent(
        at=Instant(now.wall),
        event=EventName.TRIED,
        operation_id=after.operation_id,
        state_before=after.last_known_state,
        decision=None if judged is None else judged.decision,
        reason=None if judged is None else judged.reason,
        detail=None if judged is None else judged.detail,
        text=None if judged is None else judged.text,
        requests_used=after.status_requests_used,
        max_requests=after.max_status_requests,
        deadline_at=after.deadline_at,
        caller=f"{after.submitted.caller or 'unnamed'} (OS user {after.submitted.os_user or 'unknown'})",
    )
