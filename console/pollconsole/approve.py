"""The one place that decides: the guard's proof and the card that was shown -> the core's `decide`.

Job: hand over exactly what was shown, with what the guard measured. Must not know: keys, screens, what a choice
means. No
other line of the console, command line or scripts calls `decide(`; a test counts them.

Source: spec G3, G4, G5.
"""

from __future__ import annotations

from typing import Any, Protocol

from pollconsole.core_thread import CoreThread
from pollconsole.guard_facts import Evidence
from pollcore.facts import Escalation, Operation, Stale

DECIDE_LIMIT_S = 30.0
"""How long the screen waits for a decision to be carried out (a cancel sends a request); it is not torn off then."""


class AnyShown(Protocol):
    """What `actions.card` gave: the very object that the screen drew."""

    @property
    def question(self) -> Escalation: ...
    @property
    def digest(self) -> str: ...


async def approve(link: CoreThread, shown: AnyShown, evidence: Evidence) -> Operation:
    """Carry out the choice that *evidence* proves on the card *shown*.

    Raises:
        TypeError: *evidence* was not made by the guard.
        Stale: the proof belongs to another card, or something changed since the card was drawn.
        PollconsoleError: the core refused; TooSlow: no answer in time, the outcome will be in the store.
    """
    if not isinstance(evidence, Evidence):
        raise TypeError("a decision needs the guard's evidence")
    if evidence.card_digest != shown.digest:
        raise Stale("the proof belongs to another card; nothing was done")
    question = shown.question

    async def body(core: Any) -> Operation:
        operator = core.actions.operator()
        after: Operation = await core.actions.decide(
            question.operation_id,
            question.escalation_id,
            evidence.choice,
            shown.digest,
            flat(evidence),
            operator,
            None,
        )
        return after

    return await link.ask(body, limit_s=DECIDE_LIMIT_S, keep=True)


def flat(evidence: Evidence) -> dict[str, str | int | float]:
    """The guard's record as plain pairs, as it is stored with the grant. A fence that was never answered is -1."""
    record = evidence.record
    pairs: dict[str, str | int | float] = {
        "card_digest": record.card_digest,
        "text_digest": record.text_digest,
        "choice": record.choice,
        "label": record.label,
        "way": record.way.value,
        "rejected_keys": record.rejected_keys,
        "terminal": record.terminal,
    }
    for number, step in enumerate(record.steps, 1):
        pairs[f"step{number}_key"] = step.key
        pairs[f"step{number}_fence_ms"] = -1 if step.fence_ms is None else step.fence_ms
        pairs[f"step{number}_quiet_ms"] = step.quiet_ms
        pairs[f"step{number}_armed_ms"] = step.armed_ms
        pairs[f"step{number}_pressed_ms"] = step.pressed_ms
    return pairs
