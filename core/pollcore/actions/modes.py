"""A credential's mode that somebody asked to loosen: asked by anyone, answered in the console alone.

Job: the durable question that belongs to a credential, its card, its one decision with the mode that it gives in one
transaction. Must not know: keys, screens, prompts, the keyring.
Source: spec G2, G4, G5, G6, E7.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from pollcore import escalation, grants
from pollcore.actions.desk import Desk
from pollcore.card import Card, card, digest
from pollcore.escalation import Circumstances, ModeChange
from pollcore.facts import (
    AuditEvent,
    Choice,
    ChoiceKind,
    CredentialMode,
    Escalation,
    EventName,
    Grant,
    NotFound,
    Operator,
    Policy,
    Refused,
    Stale,
    StopReason,
)
from pollcore.ports import CredentialAsked, CredentialInfo, CredentialModes

NEAR: Final = 3
MAX_TEXT: Final = 1_000
"""Characters of a reason text that is kept."""


class ShownQuestion(msgspec.Struct, frozen=True):
    """One card of a question that belongs to no operation, with what it was drawn from."""

    card: Card
    question: Escalation
    choices: tuple[Choice, ...]
    digest: str


class Alone(msgspec.Struct, frozen=True):
    """A grant that no write of an operation carries."""

    grant: Grant | None


async def ask(desk: Desk, name: str, mode: CredentialMode, by: str, because: str | None = None) -> Escalation:
    """Ask for a looser mode; asked again it is the same question. Raises NotFound, Refused (it is not looser)."""
    modes = _modes(desk)
    info = await modes.now_is(name)
    if info is None:
        known = [one.name for one in await desk.credentials().known()]
        near = difflib.get_close_matches(name, known, NEAR, 0.6)
        raise NotFound(
            "no credential of that name"
            + (f"; near: {', '.join(near)}" if near else "; 'pollconsole credential list' shows what is stored")
        )
    if not mode.is_looser_than(info.mode):
        raise Refused(f"credential {name} is {info.mode.value}: {mode.value} asks for nothing", code="not_looser")
    now = desk.clock.now()
    question = Escalation(
        escalation_id=f"esc-{desk.chance.token(6)}",
        operation_id="",
        reason=StopReason.MODE_CHANGE,
        detail=f"{info.mode.value} to {mode.value}",
        cause=f"{StopReason.MODE_CHANGE.value}:{name}",
        asked_at=now.wall,
        version=0,
        asked_by=by,
        because=because[:MAX_TEXT] if because else None,
    )
    event = AuditEvent(
        at=now.wall,
        event=EventName.QUESTION_OPENED,
        reason=StopReason.MODE_CHANGE.value,
        detail=f"{name}: {question.detail}",
        caller=by,
        text=question.because,
    )
    stored = await modes.ask(now, CredentialAsked(question=question, info=info, after=mode), event)
    return stored.question


async def shown(desk: Desk, escalation_id: str) -> ShownQuestion:
    """The card of an open question, fresh. Raises NotFound; Refused, code `no_question`: it was decided."""
    asked = await _open(desk, escalation_id)
    return await _drawn(desk, asked)


async def _drawn(desk: Desk, asked: CredentialAsked) -> ShownQuestion:
    now, info = desk.clock.now(), asked.info
    change = ModeChange(
        credential=info.name,
        before=info.mode,
        after=asked.after,
        kind=":".join((info.kind, *([",".join(info.names)] if info.names else []))),
        origins=info.origins,
        problem=_problem(info, await _modes(desk).now_is(info.name)),
    )
    facts = Circumstances(mode=change)
    choices = escalation.choices(None, asked.question, policy=Policy(), now=now, circumstances=facts)
    drawn = card(None, asked.question, choices, now=now, circumstances=facts)
    return ShownQuestion(drawn, asked.question, choices, digest(drawn))


def _problem(asked: CredentialInfo, now_is: CredentialInfo | None) -> str | None:
    """Why what was asked can no longer be given; None: the credential is as it was."""
    if now_is is None:
        return "the credential was removed since it was asked"
    if now_is.mode is not asked.mode:
        return f"its mode is {now_is.mode.value} by now: ask again"
    if now_is != asked:
        return "it was set anew since it was asked (origins, kind or secret): ask again"
    return None


async def decide(
    desk: Desk,
    escalation_id: str,
    choice_key: str,
    shown_digest: str,
    evidence: Mapping[str, str | int | float],
    operator: Operator,
    because: str | None = None,
) -> Escalation:
    """Carry out one decision; the mode changes in the transaction that uses the grant up. Returns the question, closed.

    Raises:
        NotFound: no such question. Stale: it was decided, or the credential changed since; nothing was done.
        Refused: the choice cannot be chosen, or its record cannot be anchored.
    """
    try:
        asked = await _open(desk, escalation_id)
    except Refused:
        await _refused(desk, escalation_id, None, choice_key, operator, "the question was decided already")
        raise Stale(f"{escalation_id}: the question was decided already; nothing was done") from None
    fresh = await _drawn(desk, asked)
    choice = next((each for each in fresh.choices if each.key == choice_key), None)
    if fresh.digest != shown_digest:
        await _refused(desk, escalation_id, choice, choice_key, operator, "the card has changed since it was shown")
        raise Stale(f"{escalation_id}: the card has changed since it was shown; nothing was done")
    if choice is None or not choice.decides:
        raise Refused(f"{escalation_id}: {choice_key} decides nothing here", code="no_choice")
    if choice.unavailable is not None:
        raise Refused(f"{escalation_id}: {choice.label}: {choice.unavailable}", code="unavailable")
    measured = (f"guard: {name} {value}" for name, value in evidence.items())
    notes = (f"card {fresh.digest[:16]}", *measured)
    grant = Grant(
        grant_id=f"grant-{desk.chance.token(8)}",
        operation_id="",
        escalation_id=escalation_id,
        version=asked.question.version,
        choice=choice,
        card_digest=fresh.digest,
        evidence=dict(evidence),
        operator=operator,
        granted_at=desk.clock.now().wall,
        because=because,
    )
    return await _settle(desk, asked, choice, operator, because, notes, grant if choice.grants else None)


async def reject(desk: Desk, escalation_id: str, because: str, by: str) -> Escalation:
    """What anyone may do: the credential keeps its mode. Raises NotFound, Refused (decided already), Stale."""
    asked = await _open(desk, escalation_id)
    fresh = await _drawn(desk, asked)
    choice = next(each for each in fresh.choices if each.kind is ChoiceKind.REJECT)
    return await _settle(desk, asked, choice, by, because, (), None)


async def _settle(
    desk: Desk,
    asked: CredentialAsked,
    choice: Choice,
    operator: Operator | str,
    because: str | None,
    notes: Sequence[str],
    grant: Grant | None,
) -> Escalation:
    now, name = desk.clock.now(), asked.info.name
    applied = grants.apply(
        None,
        asked.question,
        choice,
        policy=Policy(),
        now=now,
        operator=operator,
        because=because,
        new_id="",
        notes=(f"credential {name}", *notes),
    )
    assert applied.closed is not None
    if grant is not None:
        await desk.authorise((Alone(grant),))  # A4: its record is anchored before anything takes effect
    await _modes(desk).settle(now, asked, applied.closed, applied.events, grant, applied.mode)
    return applied.closed


async def _open(desk: Desk, escalation_id: str) -> CredentialAsked:
    asked = await _modes(desk).asked(escalation_id)
    if asked is None:
        raise NotFound(f"no question {escalation_id!r}; `pollconsole escalations` lists the open ones")
    if asked.question.decided_at is not None:
        said = f"{asked.question.decision} by {asked.question.operator or 'a later question'}"
        raise Refused(f"{escalation_id}: decided already: {said}", code="no_question")
    return asked


async def _refused(
    desk: Desk, escalation_id: str, choice: Choice | None, key: str, operator: Operator, why: str
) -> None:
    """G8: a refused decision is an audit event like an approval."""
    event = AuditEvent(
        at=desk.clock.now().wall,
        event=EventName.GRANT_REFUSED,
        decision=choice.kind.value if choice else None,
        reason=StopReason.MODE_CHANGE.value,
        detail=choice.label if choice else f"choice {key}",
        operator=str(operator),
        text=why,
        notes=(f"question {escalation_id}",),
    )
    await desk.store.record(desk.clock.now(), (event,))


def _modes(desk: Desk) -> CredentialModes:
    if desk.modes is None:
        raise Refused("this core keeps no credentials", code="no_credentials")
    return desk.modes
