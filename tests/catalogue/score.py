"""How many documented states land where the facts say.

Job: Api -> figures. Must not know: pytest.
"""

from __future__ import annotations

from typing import Any

import msgspec

from pollcore.facts import Refused
from tests.catalogue.facts import Api, apis, shipped
from tests.catalogue.reading import read_state


class Score(msgspec.Struct, frozen=True):
    """One API. *wrong*: in words. *deviating*: labels that land elsewhere on purpose, with a reason in extra."""

    api: str
    contract: str
    states: int
    right: int
    wrong: tuple[str, ...] = ()
    deviating: tuple[str, ...] = ()


def score(api: Api) -> Score:
    """The share of one shipped contract."""
    wrong: list[str] = []
    deviating = [state.label for state in api.states if api.deviation(state) is not None]
    for state in api.states:
        expected: Any = api.expected(state.value) if not state.pattern else api.deviation(state) or state.verdict
        try:
            got = read_state(api, state)
        except Refused as error:
            wrong.append(f"{state.label}: {error}")
            continue
        if got is None:
            wrong.append(f"{state.label}: no answer stands for it; give one in extra/{api.id}.json")
        elif got.verdict is not expected:
            why = f" ({got.detail}: {got.explanation})" if got.detail else ""
            wrong.append(f"{state.label}: {got.verdict.value}{why}, not {expected.value}")
    return Score(api.id, api.contract, len(api.states), len(api.states) - len(wrong), tuple(wrong), tuple(deviating))


def table() -> tuple[str, bool]:
    """(the scoreboard as text, whether everything is there and right)."""
    scores = [score(api) for api in shipped()]
    lines = [f"{one.contract:24} {one.right:3} of {one.states:3} {one.right / one.states:6.0%}" for one in scores]
    for one in scores:
        lines += [f"  wrong     {one.contract}: {text}" for text in one.wrong]
        lines += [f"  deviates  {one.contract}: {label} (extra/{one.api}.json says why)" for label in one.deviating]
    missing = [api.contract for api in apis() if api not in shipped()]
    total, right = sum(len(api.states) for api in apis()), sum(one.right for one in scores)
    lines.append(
        f"{len(scores)} of {len(apis())} APIs have a contract; {right} of {total} documented states land right"
    )
    lines += [f"  missing   {', '.join(missing)}"] if missing else []
    return "\n".join(lines), not missing and right == total
