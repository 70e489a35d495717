"""One question of a group: with the choices that can be executed for it, and the digest of its own card.

Job: what each operation brings into the card of its cause. Must not know: the others, the words of the card.
Source: spec E10, G4.
"""

from __future__ import annotations

import msgspec

from pollcore.card.approval_lines import contract_says
from pollcore.card.digest import digest_of
from pollcore.escalation import Circumstances, choices
from pollcore.facts import Choice, ChoiceKind, Escalation, Moment, Operation, Policy, StopReason

ChoiceName = tuple[ChoiceKind, str, str | None, str | None, str | None]
"""What makes two choices of two operations one: kind, label, credential, new contract, contract that it replaces."""


class Asked(msgspec.Struct, frozen=True):
    """One open question with what its own card is drawn from."""

    operation: Operation
    question: Escalation
    policy: Policy
    circumstances: Circumstances | None = None


class Member(msgspec.Struct, frozen=True):
    """One question of a group with the very choices that can be executed for it, and the digest of its own card."""

    operation: Operation
    question: Escalation
    choices: tuple[Choice, ...]
    digest: str
    diff: str | None = None
    """The difference to the changed contract, where there is one."""
    contract: tuple[tuple[str, str], ...] = ()
    """first_use: what the contract says of its own status requests (label, text)."""

    def named(self, choice: Choice) -> ChoiceName:
        """The name of one of its choices in the group."""
        replaced = self.operation.contract_digest if choice.contract_digest is not None else None
        return choice.kind, choice.label, choice.credential, choice.contract_digest, replaced


def member(asked: Asked, now: Moment) -> Member:
    """One operation with its choices as they are now."""
    operation, question, facts = asked.operation, asked.question, asked.circumstances
    found = choices(operation, question, policy=asked.policy, now=now, circumstances=facts)
    diff = facts.changed_contract.diff if facts is not None and facts.changed_contract is not None else None
    first = facts.first_use if facts is not None else None
    says = contract_says(first) if first is not None and question.reason is StopReason.FIRST_USE else ()
    return Member(operation, question, found, digest_of(operation, question, found), diff, says)
