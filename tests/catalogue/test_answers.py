"""What stands in no state: HTTP statuses with a meaning, retry headers, hints, and answers that extra/ID.json adds."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pollcore.facts import Verdict
from tests.catalogue.facts import Api, plain, shipped
from tests.catalogue.reading import answer_for, contract_of, qualifiers_of, read_answer, whole

BY_API = [pytest.param(api, id=api.contract) for api in shipped()]
WAITS = ("running", "in-progress")
HINT_MS = 1_500


def hints(api: Api) -> list[str]:
    return [str(plain(one)) for one in api.raw["hints"]]


@pytest.mark.rule("S1")
@pytest.mark.parametrize("api", BY_API)
def test_a_status_that_is_the_state_is_read_as_documented(api: Api) -> None:
    for code, meaning in api.raw["state"].get("map", {}).items():
        answer: dict[str, Any] = {"status": int(code), "raw": ""}
        got, _ = read_answer(api, answer)
        if meaning in WAITS:
            assert got.verdict is Verdict.WAITING, (code, got.explanation)
            assert read_answer(api, {"status": int(code), **whole(api, {})})[0].verdict is Verdict.WAITING
        elif "not found" in meaning:
            assert got.verdict in (Verdict.WAITING, Verdict.INTEGRATION)
        else:
            assert got.verdict is not Verdict.WAITING


@pytest.mark.rule("T3")
@pytest.mark.parametrize("api", BY_API)
def test_documented_hint_headers_are_read_in_their_unit(api: Api) -> None:
    for name in re.findall(r"\b[a-z]+(?:-[a-z]+)*-after-ms\b", " ".join(hints(api))):
        waiting = next(state for state in api.states if state.verdict is Verdict.WAITING and not state.unconfirmed)
        answer = answer_for(api, waiting)
        assert answer is not None
        got, _ = read_answer(api, {**answer, "headers": {name: str(HINT_MS)}})
        assert got.guidance is not None, name
        assert got.guidance.delay_ms == HINT_MS


@pytest.mark.rule("B4")
@pytest.mark.parametrize("api", BY_API)
def test_told_not_to_ask_again_it_stops(api: Api) -> None:
    told = any("x-should-retry" in hint for hint in hints(api))
    for code in (500, 503):
        plainly, _ = read_answer(api, {"status": code, "raw": ""})
        answer, _ = read_answer(api, {"status": code, "raw": "", "headers": {"x-should-retry": "false"}})
        assert plainly.verdict is Verdict.TRANSPORT_FAILURE
        assert answer.verdict is (Verdict.INTEGRATION if told else Verdict.TRANSPORT_FAILURE)


@pytest.mark.rule("S1")
@pytest.mark.parametrize("api", BY_API)
@pytest.mark.parametrize("code", [400, 404, 408, 409, 500, 503])
def test_the_body_of_a_success_under_an_error_status_is_no_success(api: Api, code: int) -> None:
    for state in api.states:
        answer = answer_for(api, state) if state.verdict is Verdict.SUCCEEDED and not state.unconfirmed else None
        if answer is not None:
            got, _ = read_answer(api, {**answer, "status": code})
            told, _ = read_answer(api, {**answer, "status": code, "headers": {"x-should-retry": "false"}})
            assert Verdict.SUCCEEDED not in (got.verdict, told.verdict)


@pytest.mark.rule("H3")
@pytest.mark.parametrize("api", BY_API)
@pytest.mark.parametrize(
    ("code", "verdict"), [(401, Verdict.DENIED), (403, Verdict.DENIED), (429, Verdict.RATE_LIMITED)]
)
def test_denials_and_limits_stay_what_http_says(api: Api, code: int, verdict: Verdict) -> None:
    got, _ = read_answer(api, {"status": code, "body": {"error": {"code": "x", "message": "no"}}})
    assert got.verdict is verdict


@pytest.mark.rule("S2")
@pytest.mark.parametrize("api", BY_API)
def test_further_answers_read_as_extra_says(api: Api) -> None:
    for one in api.extra.get("also", []):
        verdict = Verdict(one["verdict"])
        answer = one["answer"]
        if not answer.get("whole") and "raw" not in answer:
            answer = {**answer, **whole(api, answer.get("body"), ended=verdict is Verdict.SUCCEEDED)}
        got, _ = read_answer(api, answer)
        assert got.verdict is verdict, (one, got.explanation)
        if "qualifiers" in one:
            assert list(qualifiers_of(got, contract_of(api))) == one["qualifiers"]
