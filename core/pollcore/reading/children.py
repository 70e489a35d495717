"""A status that is made of children: each is asked with a request of its own, then one verdict is drawn from all.

Job: which child is asked next, what is known of each, and the verdict of all together. Must not know: how a child's
answer is read (that is `observe`), requests, budgets (every request counts as any other does).
Source: contract need R21; docs/contracts.md "Chains and children".

A round begins with the step that lists the children, and asks those that have not ended one after another. What ended
is kept in the memory (`values.children`) and not asked again.
"""

from __future__ import annotations

from typing import Any, Final

from pollcore.contract.parts import EachPlan, Step
from pollcore.contract.requests import CHILDREN, EACH
from pollcore.facts import StopDetail, Verdict
from pollcore.reading.draft import Draft, broken
from pollcore.reading.look import Look, masked

MAX_CHILD: Final = 2_048
"""Characters of a child's id or address."""
WORST_FIRST: Final = (Verdict.FAILED, Verdict.EXPIRED, Verdict.CANCELLED, Verdict.SUCCEEDED)
_ENDS: Final = frozenset(verdict.value for verdict in WORST_FIRST)

Child = dict[str, Any]
"""`id`, and once it was asked `state` and `verdict`."""


def begin(look: Look, step: Step, plan: EachPlan) -> Draft | None:
    """The answer of the listing step leads to its children; None: it lists none, so it speaks for itself.

    Raises:
        RuleFailed: the expression raised.
    """
    listed = look.value(plan.children, f"{step.name}.each.children")
    if listed is None or listed == []:
        return None
    ids = _ids(listed)
    if ids is None or len(ids) > plan.most:
        what = (
            f"lists {len(ids)} children, at most {plan.most} are allowed" if ids else "is no list of ids or addresses"
        )
        return broken(StopDetail.RULE_FAILED, f"{plan.children.source} {what}", rule=f"{step.name}.each")
    known = {child["id"]: child for child in _known(look)}
    children: list[Child] = [known[one] if _ended(known.get(one)) else {"id": one} for one in ids]
    return _next(look, step, plan, children, first=0)


def after(look: Look, plan: EachPlan, draft: Draft) -> Draft:
    """What the answer of one child, read as *draft*, means for all of them."""
    if draft.verdict is not Verdict.WAITING and draft.verdict not in WORST_FIRST:
        return draft
    children, asked = _known(look), look.seen.memory.values.get(EACH)
    at = next((n for n, child in enumerate(children) if child["id"] == asked), None)
    if at is None:
        # a contract that was adopted meanwhile: the next round lists them anew
        draft.next_step = plan.lister
        return draft
    children[at] = {"id": asked, "state": draft.state, "verdict": draft.verdict.value}
    look.notes.append(f"child {masked(str(asked))}: {draft.state or draft.verdict.value}")
    return _next(look, look.step, plan, children, first=at + 1)


def _next(look: Look, step: Step, plan: EachPlan, children: list[Child], first: int) -> Draft:
    """The next child of this round, or the verdict of all."""
    verdict = _together(plan, children)
    following = next((child["id"] for child in children[first:] if not _ended(child)), None)
    if verdict is None and following is not None:
        draft = Draft(Verdict.WAITING, state=_count(children), rule=f"step {step.name}", job_seen=True)
        draft.continues, draft.next_step = True, step.name
        draft.kept = {CHILDREN: children, EACH: following}
        return draft
    draft = _all(plan, children, verdict or Verdict.WAITING)
    draft.next_step, draft.kept = plan.lister, {CHILDREN: children, EACH: None}
    look.notes.append(f"{step.name}: {_count(children)}")
    return draft


def _together(plan: EachPlan, children: list[Child]) -> Verdict | None:
    """The verdict that stands already, whatever the others will be; None: it takes more."""
    ends = [Verdict(child["verdict"]) for child in children if _ended(child)]
    worst = min(ends, key=WORST_FIRST.index) if ends else None
    if plan.together == "any" and Verdict.SUCCEEDED in ends:
        return Verdict.SUCCEEDED
    if plan.together == "all" and worst is not None and worst is not Verdict.SUCCEEDED:
        return worst
    return worst if len(ends) == len(children) else None


def _all(plan: EachPlan, children: list[Child], verdict: Verdict) -> Draft:
    deciding = next((child for child in children if child.get("verdict") == verdict.value), None)
    state = _count(children) if verdict is Verdict.WAITING or deciding is None else deciding.get("state")
    draft = Draft(verdict, state=state, rule=f"each, together = {plan.together}", job_seen=True)
    if verdict is not Verdict.WAITING:
        draft.explanation = _count(children)
        if verdict is not Verdict.SUCCEEDED and deciding is not None:
            draft.explanation += f", child {masked(deciding['id'])} decides"
    if verdict is Verdict.SUCCEEDED and any(child.get("verdict") != verdict.value for child in children):
        draft.qualifiers = ("partial",)
    return draft


def _count(children: list[Child]) -> str:
    succeeded = sum(child.get("verdict") == Verdict.SUCCEEDED.value for child in children)
    ended = sum(_ended(child) for child in children)
    return f"{ended} of {len(children)} children ended, {succeeded} succeeded"


def _ended(child: Child | None) -> bool:
    return child is not None and child.get("verdict") in _ENDS


def _known(look: Look) -> list[Child]:
    return list(look.seen.memory.values.get(CHILDREN) or ())


def _ids(listed: Any) -> list[str] | None:
    """Each once, in the order of the answer; None: something else than texts and whole numbers is among them."""
    if not isinstance(listed, list):
        return None
    found: dict[str, None] = {}
    for one in listed:
        if isinstance(one, bool) or not isinstance(one, str | int) or not 0 < len(str(one)) <= MAX_CHILD:
            return None
        found[str(one)] = None
    return list(found)
