"""Which states a contract lists, for those who compare a record with it afterwards.

Job: state text -> verdict, where a text alone decides. Must not know: answers, records. Source: spec S2, A5.
"""

from __future__ import annotations

from collections.abc import Mapping

from pollcore.contract.model import Contract
from pollcore.facts import Verdict


def known_states(contract: Contract) -> Mapping[str, Verdict] | None:
    """The listed texts whose meaning is the same in every answer; None: rules, patterns or folding have a say, too."""
    table = contract.table
    if contract.rules or table.patterns or table.fold_case or len(contract.steps) != 1:
        return None
    return {
        text: meaning.verdict
        for text, meaning in table.texts.items()
        if meaning.limit is None and meaning.detail is None
    }
