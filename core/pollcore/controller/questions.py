"""The question that a stop raises.

Job: turn a stop into one durable escalation. Must not know: choices (computed when shown), SQL.
"""

from __future__ import annotations

from pollcore.facts import Escalate, Escalation, Moment, Operation
from pollcore.grants import open_question
from pollcore.ports import Chance


def question_for(after: Operation, stop: Escalate, now: Moment, chance: Chance) -> Escalation:
    """One open escalation for *after*, the record as the stop leaves it."""
    return open_question(
        after,
        new_id=f"esc-{chance.token(6)}",
        reason=stop.reason,
        detail=stop.detail.value if stop.detail is not None else None,
        now=now,
        cause=stop.cause,
    )
