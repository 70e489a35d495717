"""One card: E3's lines in E3's order, then the further ones, then the choices.

Job: record, question, choices and facts -> text, every provider-controlled character made harmless. Must not know: how
wide a screen is, what is left out where (nothing is).
Source: spec E3, G4, G7, H3, S2, K4.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pollcore.card.approval_lines import first_use_lines, use_lines
from pollcore.card.line import CardLine, flat, lines_of
from pollcore.escalation import Circumstances
from pollcore.escalation.approvals import ANSWER_MS
from pollcore.escalation.situation import span_words, when
from pollcore.facts import (
    DAY,
    EFFECT_TIMES,
    LAST_CHECK,
    Choice,
    Effect,
    Escalation,
    Instant,
    Moment,
    Operation,
    Request,
    Status,
    StopReason,
    clock_time,
    end_seen_at,
    iso,
)
from pollcore.story import Harmless, visible

TITLE: Final = "External job needs a decision"
_APPROVALS: Final = frozenset({StopReason.CALL_APPROVAL, StopReason.SESSION_APPROVAL})
_CHECK_ACCESS: Final = "access, rotation, account scope, gateway"


class CardOption(msgspec.Struct, frozen=True):
    """One choice as text: digit, label, then costs, consequence and warnings, one line each, all harmless."""

    key: str
    label: str
    details: tuple[str, ...]
    available: bool


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown, with the objects that it was drawn from and that are executed (G4)."""

    question: Escalation
    operation: Operation | None
    choices: tuple[Choice, ...]
    request: Request | None = None
    """Approvals: the exact request that waits."""
    title: str = TITLE
    lines: tuple[CardLine, ...]
    """E3's lines, `Safe options:` included, then the further ones."""
    options: tuple[CardOption, ...]
    """The choices as text, in the same order."""
    drawn_at: Instant

    def text(self) -> tuple[str, ...]:
        """The whole card as lines, for the command line (`escalations`) and plain screens."""
        rows = [self.title, *(str(line) for line in self.lines)]
        for option in self.options:
            rows.append(f"[{option.key}] {option.label}")
            rows.extend(f"    {detail}" for detail in option.details)
        return tuple(rows)


def card(
    operation: Operation | None,
    question: Escalation,
    choices: tuple[Choice, ...],
    *,
    now: Moment,
    harmless: Harmless = visible,
    circumstances: Circumstances | None = None,
) -> Card:
    """Draw the card of *question*.

    Args:
        operation: None only for `mode_change`.
        harmless: Makes a text safe to print; called on every text that a provider, contract, agent or file gave.
        circumstances: What the choices were computed from.
    """
    facts = circumstances or Circumstances()
    first = _fixed_lines(operation, question, now, harmless)
    options = tuple(_option(choice, now, harmless) for choice in choices)
    listed = ", ".join(
        f"{option.key} {option.label}" + ("" if option.available else " (not now)") for option in options
    )
    further = (
        _further(operation, question, facts, now, harmless)
        if operation
        else _credential_lines(facts, question, harmless)
    )
    return Card(
        question=question,
        operation=operation,
        choices=choices,
        request=facts.use.request if facts.use and question.reason in _APPROVALS else None,
        lines=(*first, CardLine("Safe options:", listed), *further),
        options=options,
        drawn_at=now.wall,
    )


def _fixed_lines(op: Operation | None, question: Escalation, now: Moment, harmless: Harmless) -> list[CardLine]:
    if op is None:
        none = "none, the question belongs to a credential"
        values = [none, "none", "none", span_words(now.wall - question.asked_at), "none", "none"]
    else:
        values = [
            flat(op.operation_id, harmless),
            flat(op.submitted.job_id, harmless),
            "none yet" if op.last_known_state is None else flat(op.last_known_state, harmless),
            _elapsed(op, now),
            f"{op.status_requests_used} of {op.max_status_requests}",
            _last_http(op, now),
        ]
    labels = ("Operation:", "Provider job:", "Last state:", "Elapsed time:", "Status requests:", "Last HTTP result:")
    stopped = "Stopped because:"
    return [
        *(CardLine(label, value) for label, value in zip(labels, values, strict=True)),
        CardLine(stopped, question.reason.value),
    ]


def _elapsed(op: Operation, now: Moment) -> str:
    """Of a job that has ended: until its end was seen."""
    end = end_seen_at(op)
    return span_words((now.wall if end is None else end) - op.started_at)


def _last_http(op: Operation, now: Moment) -> str:
    http = op.last_http
    if http is None:
        return "none"
    at = http.answered_at
    day = "" if at // DAY == now.wall // DAY else f"{iso(at)[:10]} "
    return f"{http.code} at {day}{clock_time(at)[:5]} UTC"


def _further(
    op: Operation, question: Escalation, facts: Circumstances, now: Moment, harmless: Harmless
) -> list[CardLine]:
    given, wall = op.submitted, now.wall
    rows: list[tuple[str, str | None]] = [
        ("Detail:", question.detail),
        ("Explanation:", op.stop_explanation),
        ("Nearest known state:", f"{facts.near_match} (a hint only)" if facts.near_match else None),
        ("Provider and account:", f"{given.provider}, account {given.account}"),
        ("Label:", given.label),
        ("Credential:", op.credential or "none"),
        ("Deadline:", when(op.deadline_at, wall)),
        ("Useful until:", when(op.useful_until, wall) if op.useful_until is not None else None),
        ("Provider expiry:", when(op.provider_expires_at, wall) if op.provider_expires_at is not None else None),
        ("Transport failures:", f"{op.transport_failures_used} of {op.max_transport_failures}"),
        ("Rate-limit answers:", f"{op.rate_limited_used} of {op.max_rate_limited}"),
        ("Last request:", _last_fault(op, now)),
        ("Provider request id:", op.last_http.request_id if op.last_http else None),
        ("Job started at:", _started(op, wall)),
        ("Submitted at:", when(op.submitted_at, wall)),
        ("Next poll:", _next_poll(op, wall)),
        ("Asked by:", question.asked_by),
        ("Because:", question.because),
        ("Check:", _CHECK_ACCESS if question.reason is StopReason.AUTHORIZATION_DENIED else None),
        ("Expires:", _expires(question, wall)),
        ("Address:", "plain http is allowed for this instance" if facts.allow_http else None),
        ("Provider's console:", facts.console_url),
        ("Contract:", op.contract_digest),
        ("Contract file:", "new or changed, no operator has looked at it" if facts.contract_unseen else None),
    ]
    lines = lines_of(rows, harmless)
    if facts.changed_contract is not None:
        diff = facts.changed_contract.diff.splitlines()
        lines += [CardLine("Contract difference:", harmless(row)) for row in diff]
    if question.reason in _APPROVALS:
        lines += use_lines(op, facts, harmless)
    if question.reason is StopReason.FIRST_USE and facts.first_use is not None:
        lines += first_use_lines(facts.first_use, harmless)
    return lines


def _started(op: Operation, wall: Instant) -> str | None:
    """Where it is another time than that of the hand-over, which the story tells."""
    started = when(op.started_at, wall)
    return None if started == when(op.submitted_at, wall) else started


def _next_poll(op: Operation, wall: Instant) -> str | None:
    """A record keeps its place in the schedule while it stands still; nothing goes out then."""
    if op.status is Status.AWAITING_APPROVAL:
        return "none before this is decided"
    return when(op.next_poll_at, wall) if op.status is Status.WAITING and op.next_poll_at is not None else None


def _expires(question: Escalation, now: Instant) -> str | None:
    """G7: when the question expires; while no console is open its time stands still."""
    if question.expires_at is not None:
        return f"{when(question.expires_at, now)}, then it is asked anew; an expiry is no denial"
    if question.reason is not StopReason.CALL_APPROVAL:
        return None
    left = ANSWER_MS if question.left_ms is None else question.left_ms
    return f"{span_words(left)} of an open console after it was asked, then it is asked anew"


def _last_fault(op: Operation, now: Moment) -> str | None:
    if op.last_fault is None:
        return None
    at = f" at {when(op.last_fault_at, now.wall)}" if op.last_fault_at is not None else ""
    sent = ", it may have been sent" if op.last_fault_may_have_been_sent else ""
    return f"{op.last_fault}{at}{sent}"


def _credential_lines(facts: Circumstances, question: Escalation, harmless: Harmless) -> list[CardLine]:
    mode = facts.mode
    if mode is None:
        return []
    rows: list[tuple[str, str | None]] = [
        ("Credential:", mode.credential),
        ("Mode:", f"{mode.before.value} -> {mode.after.value}"),
        ("Kind:", mode.kind),
        ("Sent to:", ", ".join(mode.origins)),
        ("Asked by:", question.asked_by),
        ("Because:", question.because),
        ("Changed since:", mode.problem),
    ]
    return lines_of(rows, harmless)


def _option(choice: Choice, now: Moment, harmless: Harmless) -> CardOption:
    """E3: what the choice costs and leads to."""
    rows = [_effect(effect, now) for effect in choice.effects]
    if choice.leads_to:
        rows.append(choice.leads_to)
    rows.extend(f"warning: {warning}" for warning in choice.warnings)
    if choice.unavailable:
        rows.append(f"cannot be chosen: {choice.unavailable}")
    details = tuple(flat(row, harmless) for row in rows)
    return CardOption(choice.key, flat(choice.label, harmless), details, choice.unavailable is None)


def _effect(effect: Effect, now: Moment) -> str:
    """`status requests 12 -> 16`, `deadline 11:00:00 UTC -> 11:15:00 UTC`. The last check is counted from the moment of
    drawing, the grant counts it anew: `about`."""

    def side(value: int | str | None) -> str:
        if value is None:
            return "none"
        if effect.what in EFFECT_TIMES and isinstance(value, int):
            return when(Instant(value), now.wall)
        return str(value)

    name = effect.what.replace("_", " ")
    if effect.what == LAST_CHECK:
        return f"{name}: {about(side(effect.after), effect.after)}"
    return f"{name} {side(effect.before)} -> {side(effect.after)}{from_key(effect.what, effect.before, now.wall)}"


def about(said: str, at: int | str | None) -> str:
    """*said* of a time that a grant counts anew."""
    return f"about {said}" if isinstance(at, int) else said


def from_key(what: str, before: int | str | None, wall: Instant) -> str:
    """What is said of a limit that has passed: the new one is counted from the grant, so it moves with the clock (E4).

    The card shows where it would lie now; what is granted is the span.
    """
    passed = what in ("deadline", "useful_until") and isinstance(before, int) and before <= wall
    return ", counted from your key" if passed else ""
