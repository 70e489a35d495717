"""Figures over the records, and the requests of one operation, as documents.

Job: read operations, questions and events one operation at a time, hand them to the core's report. Must not know:
output. Source: spec A5.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pollconsole import documents
from pollconsole.bridge.records import find, operations
from pollcore.facts import AuditEvent, ContractError, Escalation, EventName, Instant, Operation, Verdict, iso

if TYPE_CHECKING:
    from pollcore.assembly import Core

MAX_REPORTED: Final = 100_000
"""Operations that one report looks at, newest change first."""
PAGE: Final = 10_000
MAX_LOOKS: Final = 5
"""Times that one record and its events are read until nobody wrote in between."""
MAX_STEPS: Final = 10_000
"""Clock steps on record that a report looks at, the newest."""


class _Contracts:
    """What each contract says of its states, parsed once."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._known: dict[str, Mapping[str, Verdict] | None] = {}

    async def states(self, digest: str) -> Mapping[str, Verdict] | None:
        from pollcore.contract.known import known_states

        if digest not in self._known:
            try:
                self._known[digest] = known_states(await self._core.snapshots.of(digest))
            except ContractError:
                self._known[digest] = None
        return self._known[digest]


async def report(core: Core, since: Instant, now: Instant) -> dict[str, Any]:
    """The figures of A5 over the operations since *since*. `more`: there were more than MAX_REPORTED."""
    from pollcore.report import Tally

    found = await operations(core, since=since, limit=MAX_REPORTED)
    asked: dict[str, list[Escalation]] = {}
    for question in await core.store.questions(open_only=False):
        asked.setdefault(question.operation_id, []).append(question)
    tally, contracts, steps = Tally(now=now, since=since), _Contracts(core), await _clock_steps(core)
    for operation in found:
        name = operation.operation_id
        states = await contracts.states(operation.contract_digest)
        charges = await core.store.intents(name)
        tally.add(operation, asked.get(name, ()), await _events(core, name, steps), states, charges)
    figures = documents.report(tally.report())
    return {"since": iso(since), "until": iso(now), "more": len(found) >= MAX_REPORTED, **figures}


async def report_one(core: Core, operation_id: str, now: Instant) -> dict[str, Any]:
    """One operation: each request with what permitted it, who extended what, what does not add up. Raises NotFound."""
    from pollcore.report import Tally, requests_of

    operation: Operation = await find(core, operation_id)
    events = await _events(core, operation_id, await _clock_steps(core))
    charges = await core.store.intents(operation_id)
    asked: Sequence[Escalation] = await core.store.questions(operation_id, open_only=False)
    tally = Tally(now=now)
    states = await _Contracts(core).states(operation.contract_digest)
    tally.add(operation, asked, events, states, charges)
    figures = documents.report(tally.report())
    kept = ("share_guidance_obeyed", "guidance_given", "guidance_obeyed", "guidance_unprovable", "requests_sent",
            "requests_permitted", "fixed_interval_requests", "by_reason", "extensions", "contradictions")  # fmt: skip
    return {
        "operation_id": operation_id,
        "status": operation.status.value,
        "status_requests_used": operation.status_requests_used,
        "deadline_at": iso(operation.deadline_at),
        **{name: figures[name] for name in kept},
        "requests": [documents.request_fact(fact) for fact in requests_of(events, charges)],
    }


async def stories(core: Core, limit: int) -> AsyncIterator[tuple[Operation, list[AuditEvent]]]:
    """Each operation with its events, newest change first, *limit* at most; of a core at work, see `story`.

    The events are read later than the record: they may hold more than it.
    """
    for operation in await operations(core, limit=limit):
        yield operation, await _events(core, operation.operation_id, ())


async def story(core: Core, operation_id: str) -> tuple[Operation, list[AuditEvent]] | None:
    """One operation with the events of the same moment; None: it moves faster than it is read, or is gone.

    Records and events are read one after the other: only a record that is the same before and after belongs to them.
    """
    before = await core.store.operation(operation_id)
    for _ in range(MAX_LOOKS):
        events = await _events(core, operation_id, ())
        after = await core.store.operation(operation_id)
        if before is None or after is None:
            return None
        if after.change == before.change:
            return after, events
        before = after
    return None


async def _clock_steps(core: Core) -> Sequence[tuple[int, AuditEvent]]:
    """What is on record of clocks that were set; it belongs to every operation of that time."""
    return await core.store.events_named(EventName.CLOCK_STEP, limit=MAX_STEPS)


async def _events(core: Core, operation_id: str, steps: Sequence[tuple[int, AuditEvent]]) -> list[AuditEvent]:
    """Its events in the order written, with the clock steps that were recorded between its first and its last."""
    events: list[tuple[int, AuditEvent]] = []
    last = 0
    while page := await core.store.events(operation_id, after=last, limit=PAGE):
        events += page
        last = page[-1][0]
        if len(page) < PAGE:
            break
    if events and steps:
        events += [one for one in steps if events[0][0] < one[0] < last]
        events.sort(key=lambda one: one[0])
    return [event for _, event in events]
