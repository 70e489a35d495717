"""One answer -> one observation, and what is remembered of it.

Job: the order in which the parts of reading run, total over every answer. Must not know: decisions, budgets, deadlines,
sockets. Nothing a provider sends makes this raise.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from pollcore.contract.model import Contract
from pollcore.contract.origins import absolute
from pollcore.contract.parts import BodyFormat, Step
from pollcore.facts import (
    Exchange,
    HttpFact,
    Memory,
    Observation,
    Operation,
    Refused,
    StopDetail,
    Verdict,
)
from pollcore.reading import children, envelope, guards, item
from pollcore.reading.apart import set_apart
from pollcore.reading.by_status import allowed, by_status, foreign, foreign_location, not_found
from pollcore.reading.classify import by_rules, by_value
from pollcore.reading.draft import ABOUT_THE_JOB, Draft, broken
from pollcore.reading.guidance import Guided, guided
from pollcore.reading.look import Look, Opened, RuleFailed, Seen

MAX_VALUES: Final = 50
MAX_VALUE: Final = 4_096
MAX_REQUEST_ID: Final = 200


def read(
    contract: Contract,
    operation: Operation,
    exchanges: tuple[Exchange, ...],
    opened_before: Opened | None = None,
) -> tuple[Observation, Memory]:
    """Read the newest of *exchanges* (one poll's steps, the newest last).

    Times inside an observation are the answer's own, so a stored answer reads the same again.

    Args:
        opened_before: R39: what the readings of one answer for several operations share; the same one for each.

    Returns:
        The observation, always with exactly one verdict, and the operation's memory after it. `Memory.settling` and
        `cancel_sent_at` are left as they are: whoever decides writes them.

    Raises:
        ValueError: no exchange was given; nothing a provider sends can cause it.

    Source: spec S1-S6, S10, T3, T4, H1-H7, X5, X7.
    """
    if not exchanges:
        raise ValueError("nothing to read: no exchange was given")
    seen = Seen(
        submitted=operation.submitted,
        started_at=operation.started_at,
        memory=operation.memory,
        provider_expires_at=operation.provider_expires_at,
    )
    look = opened(contract, seen, exchanges, opened_before=opened_before)
    draft = judge(look)
    memory = remember(look, draft)
    return observed(look, draft, guided(look), memory), memory


def opened(
    contract: Contract,
    seen: Seen,
    exchanges: tuple[Exchange, ...],
    form: BodyFormat | None = None,
    opened_before: Opened | None = None,
) -> Look:
    """Open the newest exchange under the step that it belongs to; *form* where its body is kept in another format."""
    exchange = exchanges[-1]
    return Look(contract, seen, exchange, step_of(contract, exchange.step), exchanges[:-1], form, opened_before)


def step_of(contract: Contract, name: str) -> Step:
    """The step of that name; the first where the contract (a newer one) no longer has it."""
    return next((step for step in contract.steps if step.name == name), contract.steps[0])


def judge(look: Look) -> Draft:
    """The verdict with everything that belongs to it. Never raises for what a provider sent."""
    try:
        draft = _judge(look)
    except RuleFailed as failed:
        draft = broken(StopDetail.RULE_FAILED, str(failed), rule=str(failed).partition(":")[0])
        draft.of_all = True
    return set_apart(look, draft) if look.others else draft


def _judge(look: Look) -> Draft:
    code, contract = look.answer.status, look.contract
    if code == 401:
        draft = by_status(look)
        guards.read_error(look, draft)
        return draft
    foreign = foreign_location(look)
    if foreign is not None:
        return foreign
    if look.step.item is not None:
        item.find(look)
    by_rule = by_rules(look)
    ruled = by_rule is not None
    if by_rule is None and look.item_fault is not None:
        return look.item_fault
    if by_rule is None or not (by_rule.verdict.is_final or by_rule.verdict is Verdict.NEEDS_HUMAN):
        onward = _onward(look)
        if onward is not None:
            return onward
    draft = by_rule or (by_value(look) if code in contract.table.statuses else by_status(look))
    if draft.rule == "not_found":
        # a rule may say it of the job; that no entry is there may as well be a page that ended early
        of_all = draft.of_all or not ruled
        draft = not_found(look)
        draft.of_all = of_all
    if look.body_fault is None and (ruled or code < 400):
        guards.check_identity(look, draft)
    _limit(look, draft)
    if look.step.each is not None:
        draft = children.after(look, look.step.each, draft)
    return _ended(look, draft)


def _ended(look: Look, draft: Draft) -> Draft:
    """What belongs to a verdict beside its kind: guards of success, words for people, expiry, the provider's error."""
    contract = look.contract
    if draft.verdict is Verdict.SUCCEEDED:
        guards.check_success(look, draft)
    elif draft.verdict is Verdict.NEEDS_HUMAN:
        told = look.text(contract.human_explanation, "needs_human.explanation")
        draft.explanation = told if told is not None else draft.explanation
    if contract.expiries or look.seen.provider_expires_at is not None:
        guards.read_expiry(look, draft)
    if draft.verdict is not Verdict.WAITING and draft.verdict is not Verdict.SUCCEEDED:
        guards.read_error(look, draft)
    return draft


def _onward(look: Look) -> Draft | None:
    """R21: this step's answer leads to another request; None: it does not. Raises RuleFailed."""
    if not look.step.then or look.answer.status not in look.contract.table.statuses or look.body_fault is not None:
        return None
    for when, target, at_once in look.step.then:
        if look.holds(when, f"step {look.step.name}"):
            draft = Draft(Verdict.WAITING, state=f"step {target}", rule=f"step {look.step.name}", job_seen=True)
            guards.check_identity(look, draft)
            if draft.verdict is not Verdict.WAITING:
                return draft
            following = step_of(look.contract, target)
            if following.each is not None:
                listed = children.begin(look, following, following.each)
                return None if listed is None else _ended(look, listed)
            draft.continues, draft.next_step = at_once, target
            return draft
    return None


def _limit(look: Look, draft: Draft) -> None:
    """S2: a transient state is waiting so many times in a row, then unknown (a limit stops when it is reached)."""
    if draft.limit is None or draft.verdict not in (Verdict.WAITING, Verdict.UNKNOWN):
        return
    count = _in_a_row(look.seen.memory, draft)
    if count >= draft.limit:
        draft.verdict = Verdict.UNKNOWN
        draft.explanation = f"{draft.state} came {count} times in a row; the contract allows it {draft.limit - 1} times"
    else:
        draft.verdict = Verdict.WAITING
        look.notes.append(f"transient state {count} of {draft.limit}")


def _in_a_row(memory: Memory, draft: Draft) -> int:
    return memory.in_a_row + 1 if draft.state is not None and draft.state == memory.last_state else 1


def remember(look: Look, draft: Draft) -> Memory:
    """What the operation remembers after this answer."""
    memory, at = look.seen.memory, look.answer.answered_at
    changes: dict[str, Any] = {"polls": memory.polls + 1}
    if draft.apart:
        return replace(memory, polls=memory.polls + 1, alone=True)
    if memory.alone and not look.others and draft.verdict in ABOUT_THE_JOB:
        changes["alone"] = False
    if draft.job_seen and memory.first_seen_at is None:
        changes["first_seen_at"] = at
    if draft.state is not None and draft.verdict in ABOUT_THE_JOB:
        changes["in_a_row"] = _in_a_row(memory, draft)
        if draft.state != memory.last_state:
            changes["last_state"] = draft.state
            if memory.last_state is not None:
                changes["state_changes"] = memory.state_changes + 1
                changes["changed_at"] = at
    if draft.counts_forbidden:
        changes["forbidden"] = memory.forbidden + 1
    if draft.next_step is not None:
        changes["step"] = draft.next_step
    if draft.verdict in ABOUT_THE_JOB:
        _read_on(look, draft, changes)
    if draft.kept is not None:
        changes["values"] = {**changes.get("values", memory.values), **draft.kept}
    return replace(memory, **changes)


def _read_on(look: Look, draft: Draft, changes: dict[str, Any]) -> None:
    """Attempt, progress, remembered values, the next address: from answers about the job alone."""
    memory, contract = look.seen.memory, look.contract
    if contract.identity.attempt is not None:
        try:
            changes["attempt"] = guards.attempt_of(look) or memory.attempt
        except RuleFailed as failed:
            look.notes.append(f"rule_failed: {failed}")
    if contract.progress is not None:
        value = look.text(contract.progress.value, "progress.value")
        total = look.text(contract.progress.total, "progress.total")
        if value is not None:
            changes["progress"] = f"{value}/{total}" if total is not None else value
    if look.step.remember and look.body_fault is None:
        changes["values"] = _values(look)
    if look.step.next_url is not None or look.step.location == "next":
        _next_url(look, draft, changes)


def _values(look: Look) -> dict[str, Any]:
    values = dict(look.seen.memory.values)
    for name, path in look.step.remember:
        try:
            found = look.value(path, f"remember {name}")
        except RuleFailed as failed:
            look.notes.append(f"rule_failed: {failed}")
            continue
        if isinstance(found, str | int | float | bool) and len(str(found)) <= MAX_VALUE and len(values) < MAX_VALUES:
            values[name] = found
        elif found is not None:
            look.notes.append(f"remember {name}: neither text nor number, or too long; not kept")
    return values


def _next_url(look: Look, draft: Draft, changes: dict[str, Any]) -> None:
    """R18: where the next request goes; a foreign address stops at once and is never asked."""
    found = look.headers.get("location") if look.step.location == "next" else None
    if look.step.next_url is not None:
        found = look.text(look.step.next_url, "next_url")
    if found is None:
        changes["next_url"] = None
        return
    try:
        url = absolute(look.url, found)
        why = None if allowed(look, url) else f"the next address is on {foreign(look, url)}"
    except Refused as error:
        url, why = "", f"the next address: {error}"
    if why is None:
        changes["next_url"] = url
    elif draft.verdict is Verdict.WAITING:
        draft.broke(StopDetail.FOREIGN_ORIGIN, why)


def observed(look: Look, draft: Draft, told: Guided, memory: Memory) -> Observation:
    """The finished observation."""
    answer = look.answer
    notes = look.notes
    if told.faults:
        notes = notes + [f"hint_invalid: {fault.name} {fault.why}" for fault in told.faults]
    if told.clock_skew_ms is not None:
        notes = [*notes, f"clock_skew {told.clock_skew_ms} ms"]
    if draft.near_match is not None:
        notes = [*notes, f"near_match: {draft.near_match}"]
    return Observation(
        verdict=draft.verdict,
        http=HttpFact(answer.status, answer.sent_at, answer.answered_at, _request_id(look)),
        state=draft.state,
        cancelling=draft.cancelling,
        detail=draft.detail,
        explanation=draft.explanation,
        qualifiers=draft.qualifiers,
        near_match=draft.near_match,
        guidance=told.guidance,
        hint_faults=told.faults,
        clock_skew_ms=told.clock_skew_ms,
        result=draft.result,
        provider_error=draft.provider_error,
        error_details_missing=draft.error_details_missing,
        progress=memory.progress,
        provider_expires_at=draft.provider_expires_at,
        job_seen=draft.job_seen,
        long_poll_timeout=draft.long_poll_timeout,
        continues=draft.continues,
        apart=draft.apart,
        notes=tuple(notes),
        envelope=envelope.pack(look),
    )


def _request_id(look: Look) -> str | None:
    header = look.contract.request_id_header
    found = look.headers.get(header) if header is not None else None
    if found is None and look.contract.request_id_path is not None:
        found = look.text(look.contract.request_id_path, "request_id.path")
    return None if found is None else found[:MAX_REQUEST_ID]
