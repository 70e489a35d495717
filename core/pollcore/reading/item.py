"""This job's own entry in an answer about several jobs.

Job: find the entry by the job id and put it into the scope as `item`; say why where there is none (that means not-found
by history, as a 404 does). Must not know: states, other jobs. Source: contract need R39, R05.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pollcore.contract.expressions import Expression
from pollcore.contract.parts import ItemPlan
from pollcore.facts import StopDetail
from pollcore.reading.draft import broken
from pollcore.reading.look import Look, RuleFailed

SAME_FOR_ALL: Final = frozenset({"body", "http"})
"""Roots of a scope that are the same for every operation of one request."""
MAX_ENTRIES: Final = 5_000
"""Entries that are looked through."""


def find(look: Look) -> None:
    """Set `item` of *look*, or say why not: `item_absent` (not found), `item_fault` (no list, too long, or the job
    stands there twice: nothing can be read off such an answer).

    Raises:
        RuleFailed: an expression raised.
    """
    plan = look.step.item
    if plan is None or look.body_fault is not None or look.answer.status not in look.contract.table.statuses:
        return
    wanted = look.seen.submitted.job_id
    look.root["item"] = None
    entries = _entries(look, plan)
    look.item_absent = f"no entry of job {wanted} in {plan.entries.source}"
    if isinstance(entries, dict) and plan.job_id is None:
        found = [entries[wanted]] if wanted in entries else []
    elif isinstance(entries, list) and plan.job_id is not None:
        if len(entries) > MAX_ENTRIES:
            text = f"{plan.entries.source} has {len(entries)} entries, more than {MAX_ENTRIES}"
            look.item_fault = broken(StopDetail.RULE_FAILED, text, rule="item.entries")
            return
        found = _of_job(look, plan, entries, wanted)
    else:
        text = f"{plan.entries.source} is no {'table by job id' if plan.job_id is None else 'list'}"
        look.item_fault = broken(StopDetail.STATE_MISSING, text, rule="item.entries")
        return
    look.item_read = True
    if look.opened is not None:
        look.opened.listed = True
    if len(found) > 1:
        text = f"{len(found)} entries of {plan.entries.source} are job {wanted}; which one is ours cannot be told"
        look.item_fault = broken(StopDetail.WRONG_JOB, text, rule="item.job_id")
        look.item_fault.of_all = True
    elif found and found[0] is not None:
        look.root["item"], look.item_absent = found[0], None


def _entries(look: Look, plan: ItemPlan) -> Any:
    """The value of `entries`; for all readings of one answer evaluated once, where it is the same for all. Evaluated
    again for each operation it would use up their common steps. Raises RuleFailed."""
    opened = look.opened
    if opened is None or not plan.entries.roots <= SAME_FOR_ALL:
        return look.value(plan.entries, "item.entries")
    # a record that moved meanwhile is read under another contract
    of = (plan.entries.source, plan.job_id.source if plan.job_id is not None else None)
    if opened.entries_of != of:
        opened.entries_of, opened.entries, opened.by_id, opened.failed = of, None, None, None
        try:
            opened.entries = look.value(plan.entries, "item.entries")
        except RuleFailed as failed:
            opened.failed = failed
    if opened.failed is not None:
        raise opened.failed
    return opened.entries


def _of_job(look: Look, plan: ItemPlan, entries: list[Any], wanted: str) -> list[Any]:
    """Raises RuleFailed."""
    assert plan.job_id is not None
    opened = look.opened
    if opened is None or not plan.entries.roots <= SAME_FOR_ALL:
        return [entry for entry, one in _ids(look, plan.job_id, entries) if one == wanted]
    if opened.by_id is None:
        by_id: dict[str, list[Any]] = {}
        try:
            for entry, one in _ids(look, plan.job_id, entries):
                by_id.setdefault(one, []).append(entry)
        except RuleFailed as failed:
            opened.failed = failed
            raise
        opened.by_id = by_id
    return opened.by_id.get(wanted, [])


def _ids(look: Look, job_id: Expression, entries: list[Any]) -> Iterator[tuple[Any, str]]:
    """Each entry with its job id as text; entries without one are left out. Raises RuleFailed."""
    root = look.root
    try:
        for entry in entries:
            root["item"] = entry
            try:
                one = job_id.read(root, look.steps)
            except Exception:
                # told as every other expression's failure is
                one = look.value(job_id, "item.job_id")
            if type(one) is str or type(one) is int:
                yield entry, str(one)
    finally:
        root["item"] = None
