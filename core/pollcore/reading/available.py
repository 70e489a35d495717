"""From when on the provider lets a job be force-cancelled, as its last status answer names it.

Job: (contract, stored answer) -> a time, or why there is none. Must not know: who may choose it, requests, stores.
Source: contract need R35 (`cancel.force.available_at`). What cannot be read offers nothing.
"""

from __future__ import annotations

from pollcore.contract.model import Contract
from pollcore.contract.parts import JSON
from pollcore.facts import Exchange, Instant, Operation
from pollcore.reading import envelope, item
from pollcore.reading.look import RuleFailed, Seen
from pollcore.reading.observe import opened
from pollcore.reading.times import instant


def force_available_at(contract: Contract, operation: Operation, stored: bytes) -> Instant | None:
    """The time of `cancel.force.available_at` in the stored envelope; None: it names none that can be read."""
    plan = contract.cancel.force if contract.cancel is not None else None
    kept = envelope.unpack(stored)
    if plan is None or plan.available_at is None or kept is None or kept.cut:
        return None
    seen = Seen(submitted=operation.submitted, started_at=operation.started_at, memory=operation.memory)
    exchange = Exchange(kept.step, "", kept.answer, kept.others)
    look = opened(contract, seen, (exchange,), JSON if kept.tree else None)
    try:
        item.find(look)
        found = look.value(plan.available_at, "cancel.force.available_at")
        return None if found is None else instant(found, plan.unit, kept.answer.answered_at)
    except (RuleFailed, ValueError):
        return None
