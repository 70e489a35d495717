"""Contract and several operations -> the one status request that asks for all of them.

Job: tell which operations may share a request, and render it. Must not know: leases, budgets, answers, secrets.
Source: contract need R39; design.md "One request is not one operation". Two operations share a request only if it is
the same for both but for the job ids; everything about that is in `Together`, and equal ones go together.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from pollcore.contract.model import Contract
from pollcore.contract.parts import BatchPlan
from pollcore.contract.requests import filled, normalise_origin, render_plan, status_request
from pollcore.contract.templates import Fill
from pollcore.facts import Operation, Refused, Request

SOME_ID: Final = "0"
"""Stands for the ids in the request that is compared: a text and a number alike."""
MEANS_MORE: Final = frozenset("&;+%")
"""Characters with a meaning of their own in a URL, in an id that `{job_ids|raw}` puts there as it is: they would change
what is asked for the other jobs of the request."""


KEPT_FAILURES: Final = 1
"""Transport failures of an operation that no request for several risks: whatever makes these fail, each operation has
been asked alone before its budget is spent."""


PLAIN: Final = {
    "bare": re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]*"),
    "quoted": re.compile(r'(?:(?!["\\])[ -~])+'),
}
"""Ids that mean nothing but themselves in a text with a syntax of its own, as `in({job_ids})` or `["{job_ids}"]`: any
other might change what is asked for all, and nothing escapes it there."""


class Together(msgspec.Struct, frozen=True):
    """What operations of one request have in common: whose they are, and the request but for the ids."""

    provider: str
    account: str
    credential: str | None
    digest: str
    request: Request


def together(contract: Contract, operation: Operation) -> Together | None:
    """With whom *operation* may share its next status request; None: it goes alone.

    Alone goes what was set apart by its memory (an answer about several that spoke of none), what its next transport
    failure would end, a check that an operator granted, and a job id that the shared request could not carry.
    """
    plan = contract.steps[0].batch
    if plan is None or operation.memory.alone or operation.check_once or failures_left(operation) <= KEPT_FAILURES:
        return None
    if plan.joined and _blurs(plan, operation.submitted.job_id):
        return None
    try:
        if normalise_origin(batch_request(contract, (operation,)).url) != normalise_origin(
            status_request(contract, operation, operation.credential).url
        ):
            return None
        common = _render(contract, plan, operation, (SOME_ID,))
    except Refused:
        return None
    given = operation.submitted
    return Together(given.provider, given.account, operation.credential, contract.digest, common)


def failures_left(operation: Operation) -> int:
    """Transport failures that its budget still allows; with the last of them its wait ends (B4)."""
    return operation.max_transport_failures - operation.transport_failures_used


def batch_request(contract: Contract, operations: Sequence[Operation]) -> Request:
    """The request that asks for all of *operations*, which are equal by `together`.

    Raises:
        Refused: as `status_request`; `bad_parameter` also where all ids together make the URL too long.
    """
    plan = contract.steps[0].batch
    if plan is None:
        raise Refused(f"{contract.name}: the contract has no [status.batch]", code="not_documented")
    return _render(contract, plan, operations[0], tuple(one.submitted.job_id for one in operations))


def fitting(contract: Contract, operations: Sequence[Operation]) -> int:
    """How many of *operations*, from the first, one request can ask for: at most `max`, and what its URL can hold."""
    plan = contract.steps[0].batch
    count = min(len(operations), plan.most if plan is not None else 1)
    while count > 1:
        try:
            batch_request(contract, operations[:count])
        except Refused:
            count //= 2
        else:
            break
    return count


def _blurs(plan: BatchPlan, job_id: str) -> bool:
    """Whether in one text of ids this one could not be told from its neighbours: it holds the separator, or makes one
    with what stands beside it; or what it holds means more than itself where it is put in."""
    ends = len(plan.separator) + len(job_id)
    if (plan.separator + job_id + plan.separator).find(plan.separator, 1) != ends:
        return True
    if plan.within and not PLAIN[plan.within].fullmatch(job_id):
        return True
    return plan.raw and not MEANS_MORE.isdisjoint(job_id)


def _render(contract: Contract, plan: BatchPlan, operation: Operation, ids: tuple[str, ...]) -> Request:
    own = filled(contract, operation)
    single = {**own.single, "job_id": None, "job_ids": plan.separator.join(ids)}
    return render_plan(contract, plan.request, operation, operation.credential, Fill(single, own.groups, ids))
