"""The one place that decides: the guard's proof and the card that was shown -> the core's `decide`, `decide_group`,
`decide_question`.

Job: hand over exactly what was shown, with what the guard measured. Must not know: keys, screens, what a choice
means. No other line of the console, command line or scripts calls either; a test counts them.

Source: spec G3, G4, G5, E10.
"""

from __future__ import annotations

from typing import Any, Protocol

from pollconsole.core_thread import CoreThread
from pollconsole.guard_facts import Evidence
from pollcore.facts import Escalation, Operation, Stale

DECIDE_LIMIT_S = 30.0
"""How long the screen waits for a decision to be carried out (a cancel sends a request); it is not torn off then."""


GROUP_LIMIT_S = 300.0
"""The same for one answer on thousands of operations; each of them is recorded by itself."""


class AnyShown(Protocol):
    """What `actions.card` gave: the very object that the screen drew."""

    @property
    def question(self) -> Escalation: ...
    @property
    def digest(self) -> str: ...


class AnyGroup(Protocol):
    """What `actions.group` gave: the list that the screen drew is the list that is executed."""

    @property
    def cause(self) -> str: ...
    @property
    def digest(self) -> str: ...


class AnyOutcome(Protocol):
    """What became of one answer for many."""

    @property
    def label(self) -> str: ...
    @property
    def done(self) -> tuple[str, ...]: ...
    @property
    def refused(self) -> tuple[tuple[str, str], ...]: ...
    @property
    def untouched(self) -> tuple[str, ...]: ...


async def approve(link: CoreThread, shown: AnyShown, evidence: Evidence, because: str | None = None) -> Operation:
    """Carry out the choice that *evidence* proves on the card *shown*.

    Args:
        because: the operator's note, as it stood on the card.

    Raises:
        TypeError: *evidence* was not made by the guard.
        Stale: the proof belongs to another card, or something changed since the card was drawn.
        PollconsoleError: the core refused; TooSlow: no answer in time, the outcome will be in the store.
    """
    _proves(evidence, shown.digest)
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
            because,
        )
        return after

    return await link.ask(body, limit_s=DECIDE_LIMIT_S, keep=True)


async def approve_question(
    link: CoreThread, shown: AnyShown, evidence: Evidence, because: str | None = None
) -> Escalation:
    """Carry out the choice that *evidence* proves on a card that belongs to a credential; the question, decided.

    Raises as `approve`; Stale also when the credential changed since it was asked.
    """
    _proves(evidence, shown.digest)
    question = shown.question

    async def body(core: Any) -> Escalation:
        operator = core.actions.operator()
        closed: Escalation = await core.actions.decide_question(
            question.escalation_id, evidence.choice, shown.digest, flat(evidence), operator, because
        )
        return closed

    return await link.ask(body, limit_s=DECIDE_LIMIT_S, keep=True)


async def approve_group(
    link: CoreThread, shown: AnyGroup, evidence: Evidence, because: str | None = None
) -> AnyOutcome:
    """Carry out the choice that *evidence* proves on every operation of the list that *shown* froze (E10).

    Raises as `approve`; Stale also when nothing of the list is as it was shown.
    """
    _proves(evidence, shown.digest)

    async def body(core: Any) -> AnyOutcome:
        operator = core.actions.operator()
        outcome: AnyOutcome = await core.actions.decide_group(
            shown.cause, evidence.choice, shown.digest, flat(evidence), operator, because
        )
        return outcome

    return await link.ask(body, limit_s=GROUP_LIMIT_S, keep=True)


def _proves(evidence: Evidence, digest: str) -> None:
    if not isinstance(evidence, Evidence):
        raise TypeError("a decision needs the guard's evidence")
    if evidence.card_digest != digest:
        raise Stale("the proof belongs to another card; nothing was done")


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
