"""What the contract's rules and state table make of an answer.

Job: first-match rules, then the value, then the table, by exact type and spelling. Must not know: HTTP defaults,
budgets, time. Source: spec S1, S2, X5; contract needs R01-R15.
"""

from __future__ import annotations

from typing import Any, Final

from pollcore.contract.build_states import json_key
from pollcore.contract.near import lookalike, near
from pollcore.contract.parts import Meaning, Rule, StateTable
from pollcore.facts import StopDetail, Verdict
from pollcore.reading.draft import ABOUT_THE_JOB, Draft, broken
from pollcore.reading.look import Look, RuleFailed, shown

ERROR_STATUS: Final = 400
READ_FROM_BODY: Final = frozenset({"body", "item"})


def by_rules(look: Look) -> Draft | None:
    """The first rule that holds for this status and step; None: none does, or the body that one needs is unreadable."""
    code, table = look.answer.status, look.contract.table
    for rule in look.contract.rules:
        if code not in (table.statuses if rule.statuses is None else rule.statuses):
            continue
        if rule.step is not None and rule.step != look.step.name:
            continue
        if rule.needs_body and look.body_fault is not None:
            # whatever comes later might only hold because nothing could be read
            return None
        if rule.needs_item and look.item_absent is not None:
            return None
        if rule.when is not None and not look.holds(rule.when, rule.label):
            continue
        draft = _ruled(look, rule)
        draft.of_all = not rule.of_the_job
        return draft
    return None


def _ruled(look: Look, rule: Rule) -> Draft:
    value: Any = rule.state
    if rule.state_from is not None:
        value = look.value(rule.state_from, rule.label)
    if rule.meaning is None:
        draft = by_table(look, value)
        draft.rule = f"{rule.label}, {draft.rule}"
        return draft
    state = None if value is None else shown(value)
    draft = _meant(look, rule.meaning, state)
    if draft.verdict is Verdict.SUCCEEDED and look.body_fault is not None:
        return unreadable(look)
    told = look.text(rule.explanation_from, rule.label)
    draft.explanation = told if told is not None else draft.explanation
    return draft


def by_value(look: Look) -> Draft:
    """The state value and the table; `state_missing` where there is none."""
    value = look.contract.table.value
    if look.item_absent is not None and look.body_fault is None:
        look.notes.append(look.item_absent)
        return Draft(Verdict.INTEGRATION, detail=StopDetail.NOT_FOUND, rule="not_found")
    if value is None:
        if look.body_fault is not None:
            return unreadable(look)
        return broken(StopDetail.STATE_MISSING, "no rule of the contract holds for this answer", rule="no rule")
    if not value.roots.isdisjoint(READ_FROM_BODY) and look.body_fault is not None:
        return unreadable(look)
    draft = by_table(look, look.value(value, "state.value"))
    # a success is never read off an answer that could not be read whole
    return unreadable(look) if draft.verdict is Verdict.SUCCEEDED and look.body_fault is not None else draft


def by_table(look: Look, value: Any) -> Draft:
    """Find *value* in the table. What is not listed is unknown, never guessed (S2)."""
    table = look.contract.table
    meaning = _listed(look, table, value)
    if meaning is not None:
        return _meant(look, meaning, None if value is None else shown(value))
    if value is None:
        return broken(StopDetail.STATE_MISSING, "the answer has no state where the contract looks", rule="state.value")
    draft = Draft(Verdict.UNKNOWN, state=shown(value), rule="not listed", job_seen=True)
    draft.near_match = _nearest(table, value)
    draft.limit = table.unknown_limit
    draft.explanation = "the contract does not list this state"
    odd = lookalike(draft.state or "", draft.near_match) if draft.near_match is not None else None
    if odd is not None:
        draft.explanation += f'; it looks like "{draft.near_match}" but is written with {odd}'
    return draft


def _listed(look: Look, table: StateTable, value: Any) -> Meaning | None:
    if type(value) is str:
        word = value.casefold() if table.fold_case else value
        found = table.texts.get(word)
        if found is None:
            for state in table.patterns:
                if look.matches(state.pattern, value, "states"):
                    return state.meaning
        return found
    if value is None:
        return table.absent
    if not table.others or isinstance(value, dict):
        return None
    try:
        return table.others.get(json_key(value))
    except (TypeError, ValueError, OverflowError):
        return None


def _nearest(table: StateTable, value: Any) -> str | None:
    """A hint to people: the listed state that differs by case, by one letter, or by type alone."""
    if isinstance(value, str):
        found = near(value, table.texts)
        return found if found is not None else value if value in table.others else None
    text = shown(value)
    return text if text in table.texts else None


def _meant(look: Look, meaning: Meaning, state: str | None) -> Draft:
    seen = meaning.seen
    if seen is None:
        seen = meaning.verdict in ABOUT_THE_JOB
        if look.answer.status >= ERROR_STATUS and meaning.verdict is Verdict.WAITING:
            # an error status that means waiting does not prove that the job is known
            seen = False
    draft = Draft(
        meaning.verdict,
        state=state,
        detail=meaning.detail,
        explanation=meaning.explanation,
        rule="not_found" if meaning.not_found else meaning.where,
        job_seen=seen,
    )
    draft.cancelling = meaning.cancelling
    draft.qualifiers = meaning.qualifiers
    draft.limit = meaning.limit
    return draft


def unreadable(look: Look) -> Draft:
    """X5: an integration failure, or a transport failure where the contract counts it so."""
    why = look.body_fault or "the body cannot be read"
    success = 200 <= look.answer.status < 300
    if success and look.contract.table.unreadable_2xx == "transport_failure":
        look.notes.append(f"unreadable answer counted as a transport failure: {why}")
        return Draft(Verdict.TRANSPORT_FAILURE, detail=StopDetail.UNREADABLE, explanation=why, rule="unreadable_2xx")
    return broken(StopDetail.UNREADABLE, why, rule="body")


__all__ = ["RuleFailed", "by_rules", "by_table", "by_value", "unreadable"]
