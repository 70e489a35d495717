"""Who stands out among the operations of one cause, and in what.

Job: what more than half of all have, and who has something else. Must not know: how many are named on the card.
Source: spec E10.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from pollcore.card.line import flat
from pollcore.card.members import Member
from pollcore.story import Harmless


def outliers_of(members: Sequence[Member], harmless: Harmless) -> dict[str, str]:
    """Who differs in reason, state, last HTTP code, account or choices from what more than half of all have."""
    traits: list[tuple[str, Callable[[Member], str]]] = [
        ("reason", lambda each: each.question.reason.value),
        ("state", lambda each: each.operation.last_known_state or "none yet"),
        ("HTTP", lambda each: str(each.operation.last_http.code) if each.operation.last_http else "none"),
        ("account", lambda each: each.operation.submitted.account),
    ]
    differs: dict[str, list[str]] = {}
    for name, trait in traits:
        values = {each.operation.operation_id: trait(each) for each in members}
        usual, count = Counter(values.values()).most_common(1)[0]
        if 2 * count <= len(members):
            continue  # no value that most of them have: nobody stands out, the card counts the values
        for operation_id, value in values.items():
            if value != usual:
                differs.setdefault(operation_id, []).append(f"{name} {flat(value, harmless)}")
    for operation_id, said in _other_choices(members).items():
        differs.setdefault(operation_id, []).append(flat(said, harmless))
    return {operation_id: "; ".join(said) for operation_id, said in differs.items()}


def _other_choices(members: Sequence[Member]) -> dict[str, str]:
    """`cannot extend 15 min / 4 checks`, `can also hold up to 30 min`: who can take what most of the others cannot."""
    can = {
        each.operation.operation_id: tuple(c.label for c in each.choices if c.unavailable is None) for each in members
    }
    usual, count = Counter(can.values()).most_common(1)[0]
    if 2 * count <= len(members):
        return {}
    found = {}
    for operation_id, labels in can.items():
        if labels != usual:
            missing, more = [x for x in usual if x not in labels], [x for x in labels if x not in usual]
            said = [f"{word} {', '.join(names)}" for word, names in (("cannot", missing), ("can also", more)) if names]
            found[operation_id] = "; ".join(said) or "its choices come in another order"
    return found
