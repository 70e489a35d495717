"""Choices that give, take or bound time: extend, check_once, hold, end_hold.

Job: build them with costs and consequences. Must not know: which reason permits them, how they are carried out.
Source: spec E4, E5, E7, E8, B2 (second submission), B5.
"""

from __future__ import annotations

from pollcore.escalation.approvals import short
from pollcore.escalation.circumstances import CredentialUse
from pollcore.escalation.room import Added, end_of_wait
from pollcore.escalation.situation import Situation, span_words, when
from pollcore.facts import (
    MINUTE,
    Choice,
    ChoiceKind,
    ExtendSize,
    Instant,
    StopDetail,
    StopReason,
    mask_url,
    stop_in_force,
)

_COOLED = frozenset({StopReason.RATE_LIMITED, StopReason.PROVIDER_FAILURE, StopReason.DELIVERY_AMBIGUOUS})
"""Extended not before the cool-down ends (table of group E)."""


def is_second_submission(situation: Situation) -> bool:
    """B2: a later operation for the same job, stored escalated, that asks for its first limits."""
    question = situation.question
    detail = question.detail if question else situation.operation.stop_detail
    return situation.reason is StopReason.EXTENSION_REQUESTED and detail == StopDetail.SECOND_SUBMISSION


def extend(s: Situation) -> list[Choice]:
    """E4: one choice a size; for a request the size asked for alone, for a second submission exactly its limits."""
    if is_second_submission(s):
        return [_first_limits(s)]
    if s.reason is StopReason.EXTENSION_REQUESTED and s.question is not None:
        asked = (s.question.minutes, s.question.checks)
        sizes = [size for size in s.policy.extend if (size.minutes, size.checks) == asked]
        if not sizes:
            gone = ExtendSize(*asked)
            return [_extend(s, gone, "the contract in force does not list this size")]
        return [_extend(s, sizes[0])]
    return [_extend(s, size) for size in s.policy.extend]


def _extend(s: Situation, size: ExtendSize, unavailable: str | None = None) -> Choice:
    added = s.added(size)
    after = s.after(added)
    number = s.operation.extensions_used + 1
    return Choice(
        key="",
        kind=ChoiceKind.EXTEND,
        label=size.label,
        grants=True,
        minutes=added.minutes,
        checks=added.checks,
        transport_failures=added.transport_failures,
        rate_limited=added.rate_limited,
        effects=s.effects(added),
        leads_to=(
            f"The wait goes on as extension {number} of {s.policy.max_extensions}; {s.first_check_sentence()}; "
            f"{s.age_sentence(added)}."
        ),
        warnings=s.time_warnings(added),
        unavailable=unavailable or _why_not(s) or s.no_room(after),
    )


def _why_not(s: Situation) -> str | None:
    if not s.extensions_left:
        return f"all {s.policy.max_extensions} extensions that the contract allows are used (max_extensions)"
    return _cooling(s)


def _cooling(s: Situation) -> str | None:
    until = s.facts.cooldown_until
    if s.reason in _COOLED and until is not None and until > s.now.wall:
        return f"not before the provider's cool-down ends at {when(until, s.now.wall)}"
    return None


def _first_limits(s: Situation) -> Choice:
    """B2: the record holds the limits that were asked for; what the question adds is granted with them."""
    op, question = s.operation, s.question
    added = Added(question.minutes, question.checks) if question else Added()
    after = s.after(added)
    asked_at = question.asked_at if question else op.submitted_at
    minutes = added.minutes or max(0, -(-(op.deadline_at - asked_at) // MINUTE))
    shown = ExtendSize(minutes, added.checks or max(0, op.requests_left))
    return Choice(
        key="",
        kind=ChoiceKind.EXTEND,
        label=shown.label,
        grants=True,
        minutes=added.minutes,
        checks=added.checks,
        effects=s.effects(added),
        leads_to=(
            f"The wait begins with the earlier operation's counters: {op.status_requests_used} of "
            f"{after.max_status_requests} requests are used, the deadline is {when(after.deadline_at, s.now.wall)}; "
            f"{s.age_sentence(added)}."
        ),
        warnings=s.time_warnings(added),
        unavailable=s.no_room(after),
    )


def check_once(s: Situation) -> list[Choice]:
    """One counted request beyond the stop; carries an extension when a limit has passed, or vanishes (E7)."""
    return one_check(s, ChoiceKind.CHECK_ONCE, "check once")


def one_check(
    s: Situation,
    kind: ChoiceKind,
    label: str,
    *,
    leads_to: str | None = None,
    credential: str | None = None,
    contract_digest: str | None = None,
    warnings: tuple[str, ...] = (),
) -> list[Choice]:
    """A choice that needs room for one check: with an extension if need be, absent if none makes room."""
    added = s.time_for_a_check()
    if added is None:
        return []
    carried = f", with {added.minutes} min / {added.checks} checks" if added.minutes else ""
    sentence = leads_to or (
        "One status request goes out, counted; the wait goes on only if its answer is known and limits are left"
    )
    number = f"{s.operation.extensions_used + 1} of {s.policy.max_extensions}"
    extension = f"; it takes extension {number}, because a limit has passed" if added.minutes else ""
    return [
        Choice(
            key="",
            kind=kind,
            label=label + carried,
            grants=True,
            minutes=added.minutes,
            checks=added.checks,
            transport_failures=added.transport_failures,
            rate_limited=added.rate_limited,
            credential=credential,
            contract_digest=contract_digest,
            effects=s.effects(added),
            leads_to=f"{sentence}{extension}; {s.first_check_sentence()}; {s.age_sentence(added)}.",
            warnings=warnings + (s.time_warnings(added) if added.minutes else ()),
        )
    ]


def hold(s: Situation) -> list[Choice]:
    """Bounded, without requests, never past the deadline; vanishes when a limit has passed (E7)."""
    if s.passed:
        return []
    op, wall = s.operation, s.now.wall
    until = hold_until(s)
    stopped = s.reason is not StopReason.OPERATOR_REQUEST
    after = "this question returns" if stopped else "the wait goes on inside its limits"
    used_up = op.holds_used >= s.policy.max_holds
    nearer = ", when the wait ends" if until < wall + s.policy.hold else ""
    return [
        Choice(
            key="",
            kind=ChoiceKind.HOLD,
            label=f"hold up to {s.policy.hold // MINUTE} min",
            leads_to=(
                f"No request goes out for {span_words(until - wall)}, until {when(until, wall)}{nearer} "
                f"(hold {op.holds_used + 1} of {s.policy.max_holds}); then {after}."
            ),
            unavailable=f"all {s.policy.max_holds} holds are used" if used_up else None,
        )
    ]


def hold_until(s: Situation) -> Instant:
    """When a hold granted now ends: the policy's span, cut at deadline and `useful_until`."""
    return Instant(min(s.now.wall + s.policy.hold, end_of_wait(s.operation, s.now)))


def end_hold(s: Situation) -> list[Choice]:
    """A held stop's question returns; a held wait goes on inside its limits."""
    stopped = stop_in_force(s.operation)
    return [
        Choice(
            key="",
            kind=ChoiceKind.END_HOLD,
            label="end the hold",
            leads_to=(
                f"The question {stopped.value} returns, nothing is sent."
                if stopped
                else "The wait goes on inside its limits, as it was before the hold."
            ),
        )
    ]


def use_words(use: CredentialUse | None) -> tuple[str, ...]:
    """G7: what an action's own request lets out, where its credential is not standing; its grant is the approval."""
    if use is None:
        return ()
    if use.request is None:
        return (f"its request cannot be shown, so nothing would be sent: {use.problem}",)
    where = mask_url(use.request.url)
    mode = use.mode.value if use.mode is not None else "none"
    reveals = f", can reveal: {use.reveals}" if use.reveals else ""
    return (
        f"uses credential {use.credential} ({mode}): {use.request.method} {where}, purpose: {use.purpose}, sent to "
        f"{use.scope} alone{reveals}; this grant is the approval of that one call, request digest {short(use.digest)}",
    )
