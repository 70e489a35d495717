"""One job, one wait: which submissions are the same, a duplicate, a return, a later one.

Job: predicates over the operations of one job. Must not know: how they are found or stored. Source: spec S7, B1, B2.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from pollcore.facts import Memory, Operation, Refused, Status, StopDetail, Submitted

_JOB_ENDED = frozenset({Status.SUCCEEDED, Status.FAILED, Status.CANCELLED, Status.EXPIRED})


class Carried(msgspec.Struct, frozen=True):
    """B2: the counters that a later operation for the same job goes on with, and what was seen of the job."""

    status_requests_used: int = 0
    transport_failures_used: int = 0
    rate_limited_used: int = 0
    completed_polls: int = 0
    last_known_state: str | None = None
    memory: Memory = Memory()


def account_of(
    *,
    command: str | None,
    instance: str | None,
    contract: str | None,
    credential: str | None,
    host: str | None,
    remote: bool,
) -> str:
    """S7: from the command, else the instance, else the contract, else the credential's name, else the origin's host.

    Raises:
        Refused: none of them is there and the provider is remote; a local one has the account `local`.
    """
    for account in (command, instance, contract, credential, host):
        if account is not None and account.strip():
            return account.strip()
    if remote:
        raise Refused("the account is unknown: give --account, or set account in [providers.NAME] of config.toml")
    return "local"


def same_job(one: Submitted, other: Submitted) -> bool:
    """Same provider, account and job."""
    return (one.provider, one.account, one.job_id) == (other.provider, other.account, other.job_id)


def same_submission(existing: Operation, submitted: Submitted, credential: str | None) -> bool:
    """S7: is this submission, under an id that is taken, the same as the one it was taken by?

    Limits are not compared: a repeated relative deadline names another instant each time, and grants move limits.
    Who handed it over, and the label, make no other job of it either.
    """
    return existing.credential == credential and _essence(existing.submitted) == _essence(submitted)


def _essence(submitted: Submitted) -> Submitted:
    return msgspec.structs.replace(submitted, caller=None, os_user="", label=None)


def open_for_job(known: Sequence[Operation]) -> Operation | None:
    """The open operation for the job, if there is one: every status but the five ends is open."""
    return next((operation for operation in known if not operation.status.is_end), None)


def final_for_job(known: Sequence[Operation]) -> Operation | None:
    """The operation that holds the job's final state: submit returns it and asks nothing (B2)."""
    return next((operation for operation in known if operation.status in _JOB_ENDED), None)


def only_tried(known: Sequence[Operation]) -> bool:
    """B2: the job was asked about before, by `provider try` alone: a wait goes on with its count and asks nothing.

    Only a try leaves that detail on a closed record; a try is refused where the job has an operation.
    """
    return bool(known) and all(
        one.status is Status.CLOSED and one.stop_detail is StopDetail.PROVIDER_TRY for one in known
    )


def refuse_duplicate(first: Operation) -> Refused:
    """S7: the refusal of a second open operation; names the first."""
    given = first.submitted
    way_out = (
        "an operator decides its question first, see `pollconsole escalations`"
        if first.status in (Status.ESCALATED, Status.AWAITING_APPROVAL)
        else f"use `pollconsole wait {first.operation_id}`"
    )
    return Refused(
        f"job {given.job_id} of {given.provider} (account {given.account}) is already waited for as "
        f"{first.operation_id}, status {first.status.value}: {way_out}",
        code="duplicate_job",
        operation_id=first.operation_id,
    )


def refuse_taken(existing: Operation) -> Refused:
    """S7: the refusal of a different submission under an id that is taken."""
    return Refused(
        f"operation id {existing.operation_id} is taken by job {existing.submitted.job_id} of "
        f"{existing.submitted.provider}; this submission differs: give another --id, or none",
        code="id_taken",
        operation_id=existing.operation_id,
    )


def carried(known: Sequence[Operation]) -> Carried:
    """B2: the counters of all earlier operations for the job. Each went on with the ones before it: the largest count.

    *known*: newest first.
    """
    return Carried(
        max((one.status_requests_used for one in known), default=0),
        max((one.transport_failures_used for one in known), default=0),
        max((one.rate_limited_used for one in known), default=0),
        max((one.completed_polls for one in known), default=0),
        next((one.last_known_state for one in known if one.last_known_state is not None), None),
        known[0].memory if known else Memory(),
    )


def check_caps(
    *,
    caller: str | None,
    account: str,
    open_operations: int,
    requests_last_hour: int,
    max_open: int | None,
    max_requests_an_hour: int | None,
) -> None:
    """B1: `[policy]` of `config.toml` for one caller and account.

    Raises:
        Refused: code `caps`; a cap is reached.
    """
    who = f"caller {caller or 'unnamed'}, account {account}"
    if max_open is not None and open_operations >= max_open:
        raise Refused(
            f"[policy] open_operations = {max_open} in config.toml is reached for {who}: {open_operations} are open; "
            f"`pollconsole close` one that is no longer wanted, or wait for one to end",
            code="caps",
            limit="open_operations",
            allowed=max_open,
        )
    if max_requests_an_hour is not None and requests_last_hour >= max_requests_an_hour:
        raise Refused(
            f"[policy] requests_per_hour = {max_requests_an_hour} in config.toml is reached for {who}: "
            f"{requests_last_hour} were sent in the last hour; submit again later",
            code="caps",
            limit="requests_per_hour",
            allowed=max_requests_an_hour,
        )
