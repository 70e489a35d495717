"""Reason -> the bounded choices that an operator has (spec, table of group E).

Job: compute, from the record, the contract's numbers and the facts that the shell gathered, what may be chosen, what it
costs and what it leads to. Must not know: screens, keys, storage, how a choice is carried out (that is `grants`).
"""

from pollcore.escalation.approvals import (
    Approval,
    approval_needed,
    call_digest,
    session_digest,
)
from pollcore.escalation.choosing import MAX_CHOICES, choices
from pollcore.escalation.circumstances import ChangedContract, Circumstances, CredentialUse, FirstUse, ModeChange
from pollcore.escalation.room import (
    Added,
    added_by,
    can_check,
    deadline_passed,
    end_of_wait,
    first_check_at,
    last_possible_check,
    raise_limits,
)
from pollcore.escalation.table import ALWAYS, PERMITTED, WHILE_HELD, permitted

__all__ = [
    "ALWAYS",
    "MAX_CHOICES",
    "Added",
    "Approval",
    "ChangedContract",
    "Circumstances",
    "CredentialUse",
    "FirstUse",
    "ModeChange",
    "PERMITTED",
    "WHILE_HELD",
    "added_by",
    "approval_needed",
    "call_digest",
    "can_check",
    "choices",
    "deadline_passed",
    "end_of_wait",
    "first_check_at",
    "last_possible_check",
    "permitted",
    "raise_limits",
    "session_digest",
]
