"""`provider try`: one counted request for a job that nobody waits for, shown and explained, then closed.

Job: from what a command gives to the stored operation with its one send, and what its answer would have led to. Must
not know: flags, output, how a request is prepared and recorded (`controller.trial`).
Source: spec B2 ("except after a `provider try`"), B3, S7, G5, X7. What the gate wants is told; nothing is asked here.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pollcore import decide, outcome, reading, schedule, submission
from pollcore.actions import submit
from pollcore.actions.desk import Desk
from pollcore.actions.given import check_stored
from pollcore.actions.spec import SubmitSpec
from pollcore.contract import Contract, requests
from pollcore.controller.prepare import Prepared, Ready
from pollcore.controller.trial import Sent, Trial, tried_event
from pollcore.facts import (
    HOUR,
    MINUTE,
    Answer,
    BootMs,
    Decision,
    Fault,
    Instant,
    Moment,
    Observation,
    Operation,
    Refused,
    Status,
    StopDetail,
    StopReason,
    iso,
    mask_url,
)
from pollcore.ports import Write
from pollcore.submission import Requested, Terms

TRY_MS: Final = 10 * MINUTE
"""How long a try may take at most: a crashed one stops by itself then. A contract's smaller ceiling goes before."""
USUAL_REQUESTS: Final = 10
USUAL_BUDGET: Final = 3
"""What the answer is judged by where the contract's default limits name nothing."""
_ASKS: Final = {
    StopReason.CALL_APPROVAL: (
        "each status request needs an operator's approval, which is given to a wait: `pollconsole submit`, then key A "
        "in the console"
    ),
    StopReason.SESSION_APPROVAL: (
        "its credential is approved for a run of the core (per_session), and this command is none: `pollconsole submit`"
    ),
    StopReason.FIRST_USE: (
        "an operator has not said yet what status requests under this contract are: submit a wait for another job, "
        "decide its question in the console (key A), then try again"
    ),
}


class Tried(msgspec.Struct, frozen=True):
    """What came of the one request.

    *explained* None: no answer came, *fault* says why. *decision*: what a wait under the contract's default limits,
    with this as its first request, would have decided.
    """

    operation: Operation
    contract: Contract
    method: str
    url: str
    """Masked."""
    fault: Fault | None
    answer: Answer | None
    explained: reading.Explanation | None
    decision: Decision
    judged: Operation
    """The record that the decision was made on."""
    now: Moment


async def try_once(desk: Desk, spec: SubmitSpec, trial: Trial) -> Tried:
    """Send one status request for a job that has no operation. Raises Refused: nothing was sent; also NotFound,
    ContractError, StoreUnusable.
    """
    checked = await submit.checked(desk, spec)
    given = checked.given
    known = await desk.store.by_job(given.provider, given.account, given.job_id)
    if known and not (submission.only_tried(known) and submission.carried(known).status_requests_used == 0):
        raise Refused(
            f"job {given.job_id} of {given.provider} (account {given.account}) has an operation, "
            f"{known[0].operation_id} ({known[0].status.value}): a try is for a job that nobody has asked about; "
            f"see `pollconsole show {known[0].operation_id}`",
            code="job_known",
            operation_id=known[0].operation_id,
        )
    now = desk.clock.now()
    await submit.check_caps(desk, given, now)
    operation = _record(desk, checked, now)
    due = msgspec.structs.replace(operation, next_poll_at=now.wall, due_boot=now.boot)
    prepared = await trial.prepare(due, checked.contract)
    if not isinstance(prepared, Ready):
        raise _not_tried(prepared)
    events = outcome.submitted_events(operation, now=now, warnings=("provider try: one request, then closed",))
    await desk.prepare()  # what is refused makes no keys
    stored = await desk.store.submit(now, operation, checked.contract.snapshot, events)
    sent = await trial.send(prepared, stored, lambda op: as_a_wait(op, checked.contract))
    if sent is None:
        await _close_unsent(desk, stored)
        raise Refused(
            f"{stored.operation_id}: a cap of this provider is reached (concurrency or requests in a time); nothing "
            "was sent: try again later, under the same job",
            code="not_tried",
        )
    return _explained(checked.contract, prepared, sent, now)


def _record(desk: Desk, checked: submit.Checked, now: Moment) -> Operation:
    """One request, one failure, a short deadline; next due at its deadline, so that no core takes it meanwhile."""
    contract = checked.contract
    terms = Terms(
        policy=contract.policy,
        contract_digest=contract.digest,
        remote=checked.remote,
        ceilings=desk.caps.ceilings,
    )
    spans = [TRY_MS, contract.policy.ceiling.deadline, desk.caps.ceilings.deadline, contract.policy.retention]
    requested = Requested(
        deadline_in=min(span for span in spans if span is not None),
        max_status_requests=1,
        max_transport_failures=1,
        max_rate_limited=1,
    )
    operation, _ = submission.new_operation(
        checked.given,
        terms,
        requested,
        operation_id=f"op-{desk.chance.token(6)}",
        now=now,
        draw=desk.chance.draw(),
        credential=checked.credential,
    )
    resting = msgspec.structs.replace(operation, next_poll_at=operation.deadline_at, delay_source=None)
    return msgspec.structs.replace(resting, due_boot=schedule.due_boot(resting, now))


def as_a_wait(operation: Operation, contract: Contract) -> Operation:
    """A try's record as that of a wait under the contract's default limits whose first request this is."""
    limits, start = contract.policy.default, operation.submitted_at
    span = limits.deadline or HOUR
    return msgspec.structs.replace(
        operation,
        deadline_at=Instant(start + span),
        deadline_boot=BootMs(operation.deadline_boot - (operation.deadline_at - start) + span),
        max_status_requests=max(2, limits.max_status_requests or USUAL_REQUESTS),
        max_transport_failures=limits.max_transport_failures or USUAL_BUDGET,
        max_rate_limited=limits.max_rate_limited or USUAL_BUDGET,
    )


async def refuse_untriable(desk: Desk, spec: SubmitSpec) -> None:
    """Where there is no store yet: everything that a try would be refused for, before a store and its keys are made.
    Nobody can have stored a credential there, or decided on a first use. Asks no store.

    Raises Refused, NotFound, ContractError, as a try would.
    """
    checked = await submit.checked(desk, spec)
    operation = _record(desk, checked, desk.clock.now())
    requests.status_request(checked.contract, operation, checked.credential)
    if checked.credential is not None:
        instance = spec.provider if spec.credential is None else None
        await check_stored(desk.credentials(), checked.credential, instance=instance)
    if checked.contract.asks_first_use:
        reason = StopReason.FIRST_USE
        raise Refused(f"nothing was sent: {reason.value}: {_ASKS[reason]}", code="not_tried", reason=reason.value)


def _not_tried(prepared: Prepared) -> Refused:
    """What the gate, or what is shared with other waits, has against a request now; nothing was stored or sent."""
    if not isinstance(prepared, Write):
        return Refused(
            "the credential's session belongs to another run of the core, which sends by itself: `pollconsole submit`",
            code="not_tried",
        )
    after, asked = prepared.after, prepared.open_question
    reason = asked.reason if asked is not None else after.stop_reason
    if reason is None:
        until = f" until {iso(after.next_poll_at)}" if after.next_poll_at is not None else ""
        source = after.delay_source.value.replace("_", " ") if after.delay_source is not None else "a pause"
        return Refused(f"nothing goes to this provider now{until} ({source}); nothing was sent", code="not_tried")
    why = _ASKS.get(reason) or after.stop_explanation or "a wait would stop here without a request"
    detail = after.stop_detail.value if after.stop_detail is not None and asked is None else None
    return Refused(
        f"nothing was sent: {reason.value}: {why}", code="not_tried", reason=reason.value, detail=detail
    )  # fmt: skip


async def _close_unsent(desk: Desk, stored: Operation) -> None:
    """A claim that was not taken charged nothing: the record ends as it is, and the job may be tried again."""
    now = desk.clock.now()
    after = msgspec.structs.replace(
        stored,
        status=Status.CLOSED,
        version=stored.version + 1,
        next_poll_at=None,
        due_boot=None,
        stop_detail=StopDetail.PROVIDER_TRY,
    )
    write = Write(after=after, fence_change=stored.change, events=(tried_event(after, now),))
    await desk.store.commit(now, (write,))


def _explained(contract: Contract, ready: Ready, sent: Sent, now: Moment) -> Tried:
    """The answer read once more, with its reasons; pure, so it says what was recorded."""
    fault = sent.brought if isinstance(sent.brought, Fault) else None
    explained = None
    observed: Observation | Fault
    if isinstance(sent.brought, Answer):
        at = msgspec.structs.replace(now, wall=max(now.wall, sent.brought.answered_at))
        explained = reading.explain(contract, sent.claimed, sent.brought, sent.url)
        observed, now = explained.observation, at
    else:
        observed = sent.brought
    draw = 0.5 if sent.draw is None else sent.draw
    decision = decide.decide(sent.claimed, observed, policy=contract.policy, now=now, draw=draw)
    return Tried(
        operation=sent.operation,
        contract=contract,
        method=ready.request.method,
        url=mask_url(sent.url),
        fault=fault,
        answer=None if isinstance(sent.brought, Fault) else sent.brought,
        explained=explained,
        decision=decision,
        judged=sent.claimed,
        now=now,
    )
