"""Submit, apply a grant, cancel, resubmit, fetch: the steps of each, in order. They decide nothing themselves."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from pollcore.actions import gate, lowering, one_answer, results, submit, together
from pollcore.actions.desk import Caps, Desk, InstanceNames
from pollcore.actions.gate import Shown
from pollcore.actions.one_answer import GroupOutcome
from pollcore.actions.spec import SubmitSpec
from pollcore.actions.submit import Submission
from pollcore.actions.together import ShownGroup
from pollcore.card import GroupCard
from pollcore.facts import ActionRecord, ChoiceKind, Escalation, Instant, Operation, Operator, Stale, mask_url

__all__ = [
    "Actions",
    "Caps",
    "Desk",
    "GroupOutcome",
    "InstanceNames",
    "Shown",
    "ShownGroup",
    "Submission",
    "SubmitSpec",
]

MAX_DRAWN: Final = 8
"""Group cards that one process keeps; what was crowded out is drawn anew."""


class Actions:
    """What people, scripts and screens can do, each one call. `decide` and `decide_group` alone give new authority."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._drawn: OrderedDict[str, ShownGroup] = OrderedDict()
        """Lists that were drawn, by digest: an answer is carried out on the very list that was shown, or not at all."""

    def operator(self) -> Operator:
        """Who acts here, as far as is known: unverified."""
        return self._desk.operator

    async def submit(self, spec: SubmitSpec) -> Submission:
        """Hand a wait over; see `pollcore.actions.submit.submit`."""
        await self._desk.prepare()
        return await submit.submit(self._desk, spec)

    async def lower(self, operation_id: str, kind: ChoiceKind, because: str, by: str) -> Operation:
        """Close, hold, reject, deny, end a hold; see `pollcore.actions.lowering.lower`."""
        await self._desk.prepare()
        return await lowering.lower(self._desk, operation_id, kind, because, by)

    async def pause(self, provider: str, account: str | None, until: Instant, by: str) -> None:
        """Nothing goes to the provider before *until*."""
        await self._desk.prepare()
        await lowering.pause(self._desk, provider, account, until, by)

    async def request_extension(
        self, operation_id: str, minutes: int, checks: int, because: str, by: str
    ) -> Escalation:
        """An agent asks for one of the contract's sizes."""
        await self._desk.prepare()
        return await lowering.request_extension(self._desk, operation_id, minutes, checks, because, by)

    async def open_question(self, operation_id: str, operator: Operator) -> Escalation:
        """An operator opens the question on a running operation."""
        await self._desk.prepare()
        return await lowering.open_question(self._desk, operation_id, operator)

    async def card(self, operation_id: str) -> Shown:
        """The card of the open question, fresh."""
        return await gate.shown(self._desk, operation_id)

    async def cards(self) -> tuple[GroupCard, ...]:
        """All open questions, one card a cause (E10)."""
        return await together.groups(self._desk, gate.possible)

    async def group(self, cause: str) -> ShownGroup:
        """The card of one cause, fresh, with the list that it freezes; kept here until it is decided or crowded out.

        Raises Refused: nothing is asked for this cause.
        """
        drawn = await together.shown(self._desk, cause, gate.possible)
        self._drawn[drawn.digest] = drawn
        self._drawn.move_to_end(drawn.digest)
        while len(self._drawn) > MAX_DRAWN:
            self._drawn.popitem(last=False)
        return drawn

    async def decide(
        self,
        operation_id: str,
        escalation_id: str,
        choice_key: str,
        digest: str,
        evidence: Mapping[str, str | int | float],
        operator: Operator,
        because: str | None = None,
    ) -> Operation:
        """The one way in which new authority takes effect; called by the console alone, with its guard's evidence."""
        await self._desk.prepare()
        return await gate.decide(
            self._desk, operation_id, escalation_id, choice_key, digest, evidence, operator, because
        )

    async def decide_group(
        self,
        cause: str,
        choice_key: str,
        digest: str,
        evidence: Mapping[str, str | int | float],
        operator: Operator,
        because: str | None = None,
    ) -> GroupOutcome:
        """One answer for the frozen list that *digest* names (E10); like `decide`, for the console's guard alone.

        Raises Stale: this process drew no such list, or nothing of it is as it was shown; nothing was done.
        """
        drawn = self._drawn.get(digest)
        if drawn is None or drawn.cause != cause:
            raise Stale("this list was not drawn here, or too long ago; nothing was done, draw it anew")
        await self._desk.prepare()
        return await one_answer.decide(self._desk, drawn, choice_key, evidence, operator, because, gate.possible)

    async def result(self, operation_id: str, reveal: bool, by: str) -> dict[str, Any]:
        """The result pointer: links masked, unless *reveal*, which is recorded."""
        if reveal:
            await self._desk.prepare()
            found = await results.reveal(self._desk, operation_id, by)
            return results.result_view(found, dict(found.fields))
        found = results.pointer(await self._desk.operation(operation_id))
        return results.result_view(found, {k: masked(v) for k, v in found.fields.items()})

    async def fetch(self, operation_id: str, to: Path, by: str) -> ActionRecord:
        """Fetch the result once; see `pollcore.actions.results.fetch`."""
        await self._desk.prepare()
        return await results.fetch(self._desk, operation_id, to, by)


def masked(value: Any) -> Any:
    """Links in a result with their query masked, at any depth (they may be pre-signed)."""
    if isinstance(value, str):
        return mask_url(value) if "://" in value else value
    if isinstance(value, list):
        return [masked(one) for one in value]
    if isinstance(value, dict):
        return {key: masked(one) for key, one in value.items()}
    return msgspec.to_builtins(value)
