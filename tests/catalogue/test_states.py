"""Every documented state lands in its category, in every shipped contract; what nobody documented stops."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pollcore.facts import Verdict
from tests.catalogue import bodies
from tests.catalogue.facts import STOPS, Api, State, shipped
from tests.catalogue.reading import answer_for, contract_of, qualifiers_of, read_answer, whole

MIXTURES = 300
"""Mixtures of documented values tried for one API."""
WRONG_TYPES: tuple[Any, ...] = (None, True, False, 0, 1, 7, -1, 2.5, [], {}, [None], {"x": "y"})

BY_API = [pytest.param(api, id=api.contract) for api in shipped()]
BY_STATE = [pytest.param(api, state, id=f"{api.contract}-{state.label}") for api in shipped() for state in api.states]
QUALIFIED = [
    pytest.param(api, state, id=f"{api.contract}-{state.label}")
    for api in shipped()
    for state in api.states
    if state.qualifiers and not state.unconfirmed
]
SAMPLES = [
    pytest.param(api, sample, id=f"{api.contract}-{sample['state']}-{n}")
    for api in shipped()
    for n, sample in enumerate(api.raw["state_samples"])
]


def wanted(api: Api, state: State) -> Verdict:
    if state.unconfirmed:
        return Verdict.UNKNOWN
    return api.deviation(state) or state.verdict


@pytest.mark.rule("S2")
@pytest.mark.parametrize(("api", "state"), BY_STATE)
def test_every_documented_state_lands_in_its_category(api: Api, state: State) -> None:
    answer = answer_for(api, state)
    assert answer is not None, f"no answer stands for {state.label}: give one in extra/{api.id}.json"
    got, _ = read_answer(api, answer)
    assert (got.verdict, got.detail) == (wanted(api, state), got.detail), (answer, got.explanation)


@pytest.mark.rule("S2")
@pytest.mark.parametrize("api", BY_API)
def test_a_deviation_has_a_reason_and_never_makes_a_success(api: Api) -> None:
    labels = {state.label for state in api.states}
    for label, found in api.extra.get("deviations", {}).items():
        assert label in labels
        assert len(found["because"]) > 30
        assert Verdict(found["verdict"]) is not Verdict.SUCCEEDED


@pytest.mark.rule("S4")
@pytest.mark.parametrize(("api", "state"), QUALIFIED)
def test_a_qualified_end_is_shown_as_qualified(api: Api, state: State) -> None:
    answer = answer_for(api, state)
    assert answer is not None
    more = api.extra.get("qualified", {}).get(state.label)
    if more is not None:
        answer = {**answer, "body": bodies.merged(answer["body"], more)}
    got, _ = read_answer(api, answer)
    assert got.verdict is wanted(api, state), got.explanation
    assert set(state.qualifiers) <= set(qualifiers_of(got, contract_of(api)))


@pytest.mark.rule("S2")
@pytest.mark.parametrize(("api", "sample"), SAMPLES)
def test_every_sampled_body_gives_its_state(api: Api, sample: dict[str, Any]) -> None:
    assert api.derive(sample["body"]) == sample["state"]
    state = api.documented(sample["state"])
    assert state is not None
    given = dict(api.extra.get("samples", {}).get(state.label, {}))
    body = bodies.merged(sample["body"], given.pop("body", {}))
    answer = {**given, **whole(api, body, ended=state.verdict is Verdict.SUCCEEDED)}
    got, _ = read_answer(api, answer)
    assert got.verdict is wanted(api, state), got.explanation


def spots(api: Api) -> list[tuple[dict[str, Any], bodies.Path, Any]]:
    """(answer, where its state value stands, the value), for every state whose value stands in its answer."""
    found = []
    known = bodies.fields(api.raw["state"]["expr"])
    for state in api.states:
        if state.pattern or state.unconfirmed:
            continue
        answer = answer_for(api, state)
        if answer is None or "body" not in answer:
            continue
        at = list(bodies.places(answer["body"], state.value))
        read = [path for path in at if path in known] or at
        found += [(answer, path, state.value) for path in read[:1]]
    return found


def assert_reads_as_documented(api: Api, answer: dict[str, Any]) -> None:
    """What the documented expression makes of the body counts; what nobody documented stops, soon if not at once."""
    try:
        value = api.derive(answer["body"])
    except Exception:
        value = None
    state = api.documented(value)
    got, memory = read_answer(api, answer)
    if got.verdict in STOPS:
        return
    if state is not None and not state.unconfirmed:
        assert got.verdict in (state.verdict, api.deviation(state)), (answer, got.explanation)
        return
    contract = contract_of(api)
    limit = contract.table.unknown_limit or max((one.meaning.limit or 0 for one in contract.table.patterns), default=0)
    assert got.verdict is Verdict.WAITING, (answer, got.explanation)
    assert limit > 0, (answer, got.explanation)
    last = replace(memory, in_a_row=limit - 1, last_state=got.state)
    assert read_answer(api, answer, last)[0].verdict is Verdict.UNKNOWN


@pytest.mark.rule("S2")
@pytest.mark.parametrize("api", BY_API)
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck), database=None, derandomize=True)
@given(words=st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=8))
def test_a_state_that_nobody_documented_stops(api: Api, words: list[str]) -> None:
    for answer, path, _ in spots(api)[:3]:
        for word in words:
            assert_reads_as_documented(api, {**answer, "body": bodies.put(answer["body"], path, word)})


@pytest.mark.rule("S2")
@pytest.mark.parametrize("api", BY_API)
def test_spelling_case_and_type_count(api: Api) -> None:
    for answer, path, value in spots(api):
        near: list[Any] = [*WRONG_TYPES, [value], {"value": value}]
        if isinstance(value, str):
            near += [value.swapcase(), value.lower(), value.upper(), value.title(), f" {value}", f"{value} "]
            near += [value[:-1], value.replace("_", "-"), value.replace("ll", "l"), value + "ed"]
        else:
            near += [str(value), float(value) + 0.5, -value]
        for other in near:
            if other is None:
                body = bodies.without(answer["body"], path)
                assert_reads_as_documented(api, {**answer, "body": body})
            assert_reads_as_documented(api, {**answer, "body": bodies.put(answer["body"], path, other)})


@pytest.mark.rule("S2")
@pytest.mark.parametrize("api", BY_API)
def test_no_mixture_of_documented_fields_reads_as_another_category(api: Api) -> None:
    mixtures = bodies.mixtures(api, MIXTURES)
    if "no_mixture" in api.extra:
        assert len(api.extra["no_mixture"]) > 30
        mixtures = []
    for body in mixtures:
        assert_reads_as_documented(api, whole(api, body, ended=True))


@pytest.mark.rule("S2")
@pytest.mark.parametrize("api", BY_API)
def test_an_api_without_a_state_string_has_answers_written_by_hand_that_must_stop(api: Api) -> None:
    stops = api.extra.get("stops", [])
    assert stops or spots(api), f"nothing to mutate: give stops in extra/{api.id}.json"
    for one in stops:
        answer = one if one.get("whole") else {**one, **whole(api, one.get("body"), ended=True)}
        got, _ = read_answer(api, answer)
        assert got.verdict in STOPS, (answer, got.explanation)


@pytest.mark.rule("X5")
@pytest.mark.parametrize("api", BY_API)
@pytest.mark.parametrize("raw", ["", "null", "[]", "{}", '"done"', "<html>busy</html>", '{"a": 1, "a": 2}'])
def test_an_answer_without_a_state_never_ends_well(api: Api, raw: str) -> None:
    got, _ = read_answer(api, {**api.extra.get("answer", {}), "raw": raw})
    expected = None
    if raw in ("null", "[]", "{}"):
        try:
            found = api.documented(api.derive({"{}": {}, "[]": [], "null": None}[raw]))
        except Exception:
            found = None
        expected = found.verdict if found is not None else None
    assert got.verdict is not Verdict.SUCCEEDED
    assert got.verdict in (*STOPS, Verdict.TRANSPORT_FAILURE, expected), got.explanation
