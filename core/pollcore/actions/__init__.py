"""Submit, apply a grant, cancel, resubmit, fetch: the steps of each, in order. They decide nothing themselves."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from pollcore.actions import gate, lost, lowering, modes, one_answer, results, sessions, submit, together, trying
from pollcore.actions.desk import Caps, Desk, InstanceNames
from pollcore.actions.gate import Shown
from pollcore.actions.modes import ShownQuestion
from pollcore.actions.one_answer import GroupOutcome
from pollcore.actions.sessions import LiveSession
from pollcore.actions.spec import SubmitSpec
from pollcore.actions.submit import Submission
from pollcore.actions.together import ShownGroup
from pollcore.actions.trying import Tried
from pollcore.card import GroupCard
from pollcore.controller.trial import Trial
from pollcore.facts import (
    ActionRecord,
    AuditEvent,
    ChoiceKind,
    CredentialMode,
    Escalation,
    EventName,
    Instant,
    Operation,
    Operator,
    Refused,
    Stale,
    mask_url,
)

__all__ = [
    "Actions",
    "Caps",
    "Desk",
    "GroupOutcome",
    "InstanceNames",
    "LiveSession",
    "Shown",
    "ShownGroup",
    "ShownQuestion",
    "Submission",
    "SubmitSpec",
    "Trial",
    "Tried",
]

PRESENT_MS: Final = 10_000
MAX_DRAWN: Final = 8
"""Group cards that one process keeps; what was crowded out is drawn anew."""


class Actions:
    """What people, scripts and screens can do, each one call. `decide` and `decide_group` alone give new authority."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._drawn: OrderedDict[str, ShownGroup] = OrderedDict()
        """Lists that were drawn, by digest: an answer is carried out on the very list that was shown, or not at all."""

        self._screen: tuple[str, Instant] | None = None
        """This console's name and when it was opened, once it said that it is there."""
        self._present = 0

    def operator(self) -> Operator:
        """Who acts here, as far as is known: unverified."""
        return self._desk.operator

    async def submit(self, spec: SubmitSpec) -> Submission:
        """Hand a wait over; see `pollcore.actions.submit.submit`."""
        await self._desk.prepare()
        return await submit.submit(self._desk, spec)

    async def check_submission(self, spec: SubmitSpec) -> Submission:
        """What `submit` would answer; nothing is stored or sealed. See `pollcore.actions.submit.dry`."""
        return await submit.dry(self._desk, spec)

    async def try_provider(self, spec: SubmitSpec, trial: Trial) -> Tried:
        """One counted request for a job without an operation; see `pollcore.actions.trying.try_once`."""
        return await trying.try_once(self._desk, spec, trial)

    async def refuse_untriable(self, spec: SubmitSpec) -> None:
        """For a home without a store; see `pollcore.actions.trying.refuse_untriable`."""
        await trying.refuse_untriable(self._desk, spec)

    async def lower(self, operation_id: str, kind: ChoiceKind, because: str, by: str) -> Operation:
        """Close, hold, reject, deny, end a hold; see `pollcore.actions.lowering.lower`."""
        await self._desk.prepare()
        return await lowering.lower(self._desk, operation_id, kind, because, by)

    async def settle_lost(self) -> int:
        """Actions whose process died become `unknown` (O5); see `pollcore.actions.lost`."""
        return await lost.settle_lost(self._desk)

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

    async def aged(self, drawn: Shown | ShownGroup | ShownQuestion) -> int:
        """For how many operations time alone has changed what the card *drawn* offers: a limit has passed, a choice
        may be taken by now. Such a card is refused if it is decided. Sends nothing, reads no keyring."""
        if isinstance(drawn, ShownGroup):
            return await together.aged(self._desk, drawn)
        return int(isinstance(drawn, Shown) and await gate.has_aged(self._desk, drawn))

    async def card_of(self, escalation_id: str) -> Shown | ShownQuestion:
        """The card of one open question by its own id, whether it belongs to an operation or to a credential.

        Raises NotFound, Refused (code `no_question`: it was decided).
        """
        found = (await self._desk.store.questions_by_id((escalation_id,))).get(escalation_id)
        if found is None:
            return await modes.shown(self._desk, escalation_id)
        drawn = await gate.shown(self._desk, found.operation_id)
        if drawn.question.escalation_id != escalation_id:
            raise Refused(f"{escalation_id}: it was decided already", code="no_question")
        return drawn

    async def ask_mode(self, name: str, mode: CredentialMode, by: str, because: str | None = None) -> Escalation:
        """Ask for a looser mode of a credential; an operator decides (G2). Asked again it is the same question."""
        await self._desk.prepare()
        return await modes.ask(self._desk, name, mode, by, because)

    async def decide_question(
        self,
        escalation_id: str,
        choice_key: str,
        digest: str,
        evidence: Mapping[str, str | int | float],
        operator: Operator,
        because: str | None = None,
    ) -> Escalation:
        """Like `decide`, for a question that belongs to a credential; called by the console alone."""
        await self._desk.prepare()
        return await modes.decide(self._desk, escalation_id, choice_key, digest, evidence, operator, because)

    async def reject_question(self, escalation_id: str, because: str, by: str) -> Escalation:
        """What anyone may do with a question that belongs to a credential: nothing is given."""
        await self._desk.prepare()
        return await modes.reject(self._desk, escalation_id, because, by)

    async def contract_seen(self, digest: str) -> bool:
        """G5: an operator has opened this contract's text in the console. False: it was seen before."""
        await self._desk.prepare()
        now, operator = self._desk.clock.now(), str(self._desk.operator)
        event = AuditEvent(at=now.wall, event=EventName.CONTRACT_SEEN, detail=digest, operator=operator)
        return await self._desk.store.contract_seen(now, digest, operator, event)

    async def cards(self) -> tuple[GroupCard, ...]:
        """All open questions, one card a cause (E10)."""
        return await together.groups(self._desk)

    async def group(self, cause: str) -> ShownGroup:
        """The card of one cause, fresh, with the list that it freezes; kept here until it is decided or crowded out.

        Raises Refused: nothing is asked for this cause.
        """
        drawn = await together.shown(self._desk, cause)
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
        return await one_answer.decide(self._desk, drawn, choice_key, evidence, operator, because)

    async def present(self) -> None:
        """A console is open on the store, whether or not it polls: the time of questions runs (G7).

        To be called again and again while it is open; it writes once in PRESENT_MS.
        """
        now = self._desk.clock.now()
        if self._screen is None:
            self._screen = (f"screen-{self._desk.chance.token(8)}", now.wall)
        elif 0 <= now.boot - self._present < PRESENT_MS:
            return
        self._present = now.boot
        await self._desk.store.present(now, *self._screen)

    async def seen(self, operation_id: str, escalation_id: str) -> bool:
        """The card of this open question was painted on a console; False: it is not open. Gives and lowers nothing."""
        return await self._desk.store.mark_seen(self._desk.clock.now(), operation_id, escalation_id)

    async def sessions(self) -> tuple[LiveSession, ...]:
        """Sessions that can still be used, oldest first."""
        return await sessions.live(self._desk)

    async def end_session(self, credential: str, because: str, by: str) -> int:
        """End all sessions of *credential*, of every run; how many could still be used. Lowers authority."""
        await self._desk.prepare()
        return await sessions.end(self._desk, credential, because, by)

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
