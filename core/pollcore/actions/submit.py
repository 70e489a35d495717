"""Hand a wait over.

Job: from what a command, a file or a saved response gives, to the stored operation: names resolved, limits checked, the
job's earlier operations looked at, everything durable before the first request. Must not know: flags, output, polling.
Source: spec B1, B2, B6, S7, S8, H1, X7.
"""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from pollcore import reading, submission
from pollcore.actions import first_use
from pollcore.actions import given as checks
from pollcore.actions.desk import Desk
from pollcore.actions.insert import insert
from pollcore.actions.spec import SubmitSpec
from pollcore.contract import Contract, requests
from pollcore.contract.origins import is_loopback
from pollcore.facts import (
    HOUR,
    Instant,
    Limits,
    Moment,
    Operation,
    Refused,
    Status,
    Submitted,
)
from pollcore.ports import Write
from pollcore.submission import Carried, Requested, Terms


class Submission(msgspec.Struct, frozen=True):
    """The stored operation; *existed*: it was there before, nothing new was stored."""

    operation: Operation
    warnings: tuple[str, ...] = ()
    existed: bool = False


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """A submission whose names, addresses and parameters are in order; limits and earlier operations are not looked at.

    *remote*: any origin but loopback. *handover*: what the submission's saved answer said.
    """

    contract: Contract
    given: Submitted
    credential: str | None
    remote: bool
    handover: reading.Handover | None = None


async def submit(desk: Desk, spec: SubmitSpec) -> Submission:
    """Store a wait. Raises Refused (with what, which limit, the way out), NotFound, ContractError, StoreUnusable."""
    return await _store(desk, spec, await checked(desk, spec))


async def checked(desk: Desk, spec: SubmitSpec) -> Checked:
    """What of *spec* can be checked before the store is asked. Raises Refused, NotFound, ContractError."""
    contract = desk.contracts.find(spec.provider)
    if spec.status_url is not None and contract.steps[0].request.use_provider_url == "never":
        raise Refused(
            f"{contract.filename}: the contract builds its own status address and takes no --status-url "
            '(status.provider_url = "prefer" or "require" would); leave it out',
            code="status_url",
        )
    if contract.requires_base_url:
        raise checks.refuse_base_url(spec.provider)
    if spec.status_url is not None:
        checks.check_status_url(contract, spec.status_url)
    fingerprint = checks.check_fingerprint(spec.request_fingerprint)
    if spec.credential is not None:
        checks.check_wanted(contract, spec.credential)
    credential = spec.credential
    if credential is None and (credential := desk.default_credential(spec.provider)) is not None:
        checks.check_wanted(contract, credential, spec.provider)
    given, remote = _submitted(desk, contract, spec, credential)
    handover = None
    if spec.response is not None:
        handover = reading.from_response(contract, given, spec.response, spec.response_url or contract.base_url or "")
        given = given_by(given, handover)
        requests.check_answered_params(contract, given.params)
    given = msgspec.structs.replace(given, request_fingerprint=fingerprint or requests.fingerprint(contract, given))
    checks.check_job_id(given.job_id)
    _check_expected(contract, given)
    return Checked(contract=contract, given=given, credential=credential, remote=remote, handover=handover)


def _submitted(desk: Desk, contract: Contract, spec: SubmitSpec, credential: str | None) -> tuple[Submitted, bool]:
    """Names and account of a submission, and whether its provider is remote (any origin but loopback)."""
    origin = next(iter(contract.request_origins), None)
    host = urlsplit(origin).hostname if origin is not None else None
    remote = is_remote(contract)
    account = submission.account_of(
        command=spec.account,
        instance=desk.instance_account(spec.provider),
        contract=contract.account,
        credential=credential,
        host=host,
        remote=remote,
    )
    given = Submitted(
        provider=spec.provider,
        account=account,
        job_id=spec.job_id or "",
        base_url=contract.base_url,
        # what a saved answer gives may be required: it is read first
        params=requests.check_params(contract, dict(spec.params), complete=spec.response is None),
        status_url=spec.status_url,
        expected_states=spec.expected_states or contract.final_states,
        idempotency_key=spec.idempotency_key,
        caller=spec.caller,
        os_user=desk.os_user,
        label=spec.label,
    )
    return given, remote


def given_by(given: Submitted, handover: reading.Handover) -> Submitted:
    """*given* with what the submission's answer added; what the command named itself must agree.

    Raises Refused: the command names another job id than the answer.
    """
    if given.job_id and given.job_id != handover.job_id:
        raise Refused(
            f"--job-id {given.job_id} is not the job id of the saved response; "
            "leave --job-id out, or give the right file",
            code="job_id_differs",
        )
    return msgspec.structs.replace(
        given,
        job_id=handover.job_id,
        status_url=handover.status_url or given.status_url,
        params=handover.params or given.params,
    )


def is_remote(contract: Contract) -> bool:
    """Any origin but loopback ("remote" of the spec's defaults)."""
    return not contract.request_origins or not all(is_loopback(origin) for origin in contract.request_origins)


def _check_expected(contract: Contract, given: Submitted) -> None:
    unknown = sorted(set(given.expected_states) - set(contract.final_states))
    if unknown and contract.final_states:
        listed = ", ".join(contract.final_states)
        raise Refused(f"expected state {unknown[0]!r} is no final state of the contract; it lists: {listed}")


async def dry(desk: Desk, spec: SubmitSpec) -> Submission:
    """What `submit` would answer now; nothing is stored, and the id of a new operation is not kept. Raises as it."""
    found = await checked(desk, spec)
    made = await _made(desk, spec, found, desk.clock.now())
    if isinstance(made, Submission):
        return made
    operation, warnings = made
    first = None
    if operation.status is Status.WAITING:
        first = await first_use.ask(desk, found.contract, operation, desk.clock.now())
    return Submission(operation if first is None else first.operation, warnings)


async def _store(desk: Desk, spec: SubmitSpec, checked: Checked) -> Submission:
    now = desk.clock.now()
    made = await _made(desk, spec, checked, now)
    if isinstance(made, Submission):
        return made
    operation, warnings = made
    observed = checked.handover.observation if checked.handover is not None else None
    stored = await insert(desk, checked.contract, operation, warnings, observed, now)
    return Submission(stored, warnings)


async def _made(
    desk: Desk, spec: SubmitSpec, checked: Checked, now: Moment
) -> Submission | tuple[Operation, tuple[str, ...]]:
    """The new operation with its warnings, or the earlier one that answers *spec*. Raises Refused. Stores nothing."""
    contract, given, handover = checked.contract, checked.given, checked.handover
    credential = checked.credential
    if spec.operation_id is not None:
        existing = await desk.store.operation(spec.operation_id)
        if existing is not None:
            if submission.same_submission(existing, given, credential):
                return Submission(existing, checks.differing(existing, spec), existed=True)
            raise submission.refuse_taken(existing)
    known = await desk.store.by_job(given.provider, given.account, given.job_id)
    if (first := submission.open_for_job(known)) is not None:
        raise submission.refuse_duplicate(first)
    if (final := submission.final_for_job(known)) is not None:
        return Submission(final, (f"job {given.job_id} has ended before as {final.operation_id}",), existed=True)
    await check_caps(desk, given, now)
    terms = Terms(
        policy=contract.policy,
        contract_digest=contract.digest,
        remote=checked.remote,
        ceilings=desk.caps.ceilings,
    )
    requested = Requested(
        deadline_in=spec.deadline_ms,
        deadline_at=spec.deadline_at,
        max_status_requests=spec.max_status_requests,
        max_transport_failures=spec.max_transport_failures,
        max_rate_limited=spec.max_rate_limited,
        useful_until=spec.useful_until,
        started_at=spec.started_at,
    )
    observed = handover.observation if handover is not None else None
    return submission.new_operation(
        given,
        terms,
        requested,
        operation_id=spec.operation_id or f"op-{desk.chance.token(6)}",
        now=now,
        draw=desk.chance.draw(),
        credential=credential,
        response_date=handover.started_at if handover is not None else None,
        last_known_state=handover.state if handover is not None else None,
        provider_expires_at=observed.provider_expires_at if observed is not None else None,
        guidance=observed.guidance if observed is not None else None,
        earlier=submission.carried(known) if known else None,
        granted=submission.only_tried(known),
    )


async def check_caps(desk: Desk, given: Submitted, now: Moment) -> None:
    """B1: `[policy]` caps open operations and requests an hour, per caller and account. Raises Refused."""
    if desk.caps.open_operations is None and desk.caps.requests_per_hour is None:
        return
    unended, charged = await desk.store.load_of(given.caller, given.account, Instant(now.wall - HOUR))
    submission.check_caps(
        caller=given.caller,
        account=given.account,
        open_operations=unended,
        max_open=desk.caps.open_operations,
        requests_last_hour=charged,
        max_requests_an_hour=desk.caps.requests_per_hour,
    )


async def store_resubmitted(
    desk: Desk,
    contract: Contract,
    old: Operation,
    sent: Submitted,
    handover: reading.Handover,
    operation_id: str,
    settles: Write,
) -> Operation:
    """E6: the wait for a resubmitted job, with the contract's default limits; a known job's counters go on.

    *sent*: with the key that went out. *operation_id*: of the new one. *settles*: the write on *old*, in the same
    transaction; raises Stale where its record moved, as `insert` raises Refused: nothing was stored then.
    """
    now = desk.clock.now()
    given = given_by(sent, handover)
    known = await desk.store.by_job(given.provider, given.account, given.job_id)
    earlier: Carried | None = submission.carried(known) if known else None
    terms = Terms(
        policy=contract.policy,
        contract_digest=contract.digest,
        remote=is_remote(contract),
        ceilings=Limits(),
    )
    operation, warnings = submission.new_operation(
        given,
        terms,
        Requested(),
        operation_id=operation_id,
        now=now,
        draw=desk.chance.draw(),
        credential=old.credential,
        response_date=handover.started_at,
        earlier=earlier,
        granted=True,
    )
    return await insert(desk, contract, operation, warnings, handover.observation, now, settles)
