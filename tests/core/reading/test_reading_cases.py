"""Every answer of the cases, read one by one: the verdict kinds that their right outcome needs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.core.reading.case_contracts import CASES, contract_text
from tests.core.reading.helpers import URL, answer, look, operation

from pollcore.contract import parse, requests
from pollcore.facts import Instant, Memory, StopDetail, Submitted, Verdict, parse_instant
from pollcore.reading import from_response, read

V = Verdict
BY_STATUS = {401: V.DENIED, 403: V.DENIED, 408: V.TRANSPORT_FAILURE, 429: V.RATE_LIMITED, 410: V.EXPIRED}
SPECIAL: dict[tuple[str, int], tuple[Verdict, StopDetail | None]] = {
    ("location-foreign-host", 0): (V.INTEGRATION, StopDetail.FOREIGN_ORIGIN),
    ("answer-for-another-job", 0): (V.INTEGRATION, StopDetail.WRONG_JOB),
    ("success-without-result", 1): (V.INTEGRATION, StopDetail.SUCCEEDED_WITHOUT_RESULT),
    ("304-not-modified", 1): (V.INTEGRATION, StopDetail.UNEXPECTED_STATUS),
    ("empty-200-and-502-page", 0): (V.TRANSPORT_FAILURE, StopDetail.UNREADABLE),
    ("unknown-state", 0): (V.UNKNOWN, None),
    ("state-case-exact", 0): (V.UNKNOWN, None),
    ("404-just-after-submit", 0): (V.WAITING, None),
    ("404-just-after-submit", 1): (V.WAITING, None),
    ("final-answer-can-be-read-once", 2): (V.INTEGRATION, StopDetail.NOT_FOUND),
}


def _bytes(body: Any) -> Any:
    return body.encode() if isinstance(body, str) else body


def _expected(case: dict[str, Any], index: int) -> tuple[Verdict, StopDetail | None]:
    got = case["responses"][index]
    if (case["id"], index) in SPECIAL:
        return SPECIAL[case["id"], index]
    code = got["status"]
    if code in BY_STATUS or code >= 500:
        return BY_STATUS.get(code, V.TRANSPORT_FAILURE), None
    mini = case["contract"]
    value: Any = got["body"]
    for key in mini["state_path"].split("."):
        value = value[key]
    fold = mini["state_match"] == "casefold"
    for name, values in mini["states"].items():
        if value in values or (fold and value.casefold() in [text.casefold() for text in values]):
            return V(name), None
    raise AssertionError(f"{case['id']}[{index}] has no expectation")


@pytest.mark.rule("S1", "S2", "S4", "S6", "T3", "H1", "H2", "H3", "H4", "H5", "H6", "X5")
@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_every_answer_of_the_cases_reads_as_its_right_outcome_needs(case: dict[str, Any]) -> None:
    contract = parse(contract_text(case), "case.toml")
    memory, seconds = Memory(), 1
    notes: list[str] = []
    for index, got in enumerate(case.get("responses", [])):
        if got["status"] is None:
            continue
        one = answer(got["status"], _bytes(got["body"]), got["headers"], after=seconds * 1_000)
        seen, memory = look(contract, one, memory)
        assert (seen.verdict, seen.detail) == _expected(case, index), (case["id"], index, seen)
        notes += seen.notes
        seconds += 2
    for text in case["right"].get("audit_contains", []):
        if text not in ("shared_cooldown", "clock_step"):
            assert any(text in note for note in notes), (text, notes)


@pytest.mark.rule("H1")
def test_a_submission_answer_that_is_already_final_is_an_observation_without_a_request() -> None:
    case = next(case for case in CASES if case["id"] == "done-in-first-answer")
    contract = parse(contract_text(case), "case.toml")
    got = case["submit_response"]
    submitted = Submitted(provider="example-jobs", account="a", job_id="")
    found = from_response(contract, submitted, answer(got["status"], got["body"]), "https://api.example.test/v1/jobs")
    assert found.job_id == "job-1"
    assert found.observation is not None
    assert found.observation.verdict is V.SUCCEEDED
    assert found.observation.result is not None
    assert found.observation.result.fields == {"url": got["body"]["result"]["url"]}


@pytest.mark.rule("T3")
def test_a_date_cut_to_seconds_is_never_asked_before_it() -> None:
    case = next(case for case in CASES if case["id"] == "ra-date-rounded-down")
    contract = parse(contract_text(case), "case.toml")
    got = case["responses"][0]
    one = answer(200, got["body"], got["headers"], after=900)
    seen, _ = look(contract, one)
    assert seen.guidance is not None
    assert seen.guidance.delay_ms >= 2_100
    assert one.answered_at + seen.guidance.delay_ms >= parse_instant("2026-03-02T10:00:03Z")


@pytest.mark.rule("H2", "K3")
def test_no_case_sends_a_conditional_header_or_leaves_its_host() -> None:
    for case in CASES:
        contract = parse(contract_text(case), "case.toml")
        request = requests.status_request(contract, operation(), "cred-1")
        names = {name.lower() for name, _ in request.headers}
        assert request.url == URL
        assert request.origins == ("https://api.example.test:443",)
        assert not names & {"if-none-match", "if-modified-since", "authorization", "cookie"}


@pytest.mark.rule("S2")
def test_true_is_not_one_and_text_is_no_number() -> None:
    case = next(case for case in CASES if case["id"] == "state-number")
    contract = parse(contract_text(case), "case.toml")
    for value in (True, False, "-1", "1", 1.5, [1], {"a": 1}):
        seen, _ = look(contract, answer(200, {"data": {"state": value}}))
        assert seen.verdict is V.UNKNOWN, value
    seen, _ = look(contract, answer(200, {"data": {"state": None}}))
    assert (seen.verdict, seen.detail) == (V.INTEGRATION, StopDetail.STATE_MISSING)
    seen, _ = look(contract, answer(200, json.dumps({"data": {"state": 1.0, "videos": "x"}}).encode()))
    assert seen.verdict is V.SUCCEEDED


@pytest.mark.rule("H3")
def test_a_403_inside_the_contracts_grace_spends_failures_and_ends_with_the_first_sight() -> None:
    case = next(case for case in CASES if case["id"] == "403-while-rights-spread")
    mini = {**case, "contract": {**case["contract"], "forbidden": {"grace_seconds": 30}}}
    contract = parse(contract_text(mini), "case.toml")
    memory = Memory()
    for count in (1, 2, 3):
        seen, memory = look(contract, answer(403, {}, after=count * 1_000), memory)
        assert seen.verdict is V.TRANSPORT_FAILURE
        assert f"403 grace {count} of 3" in seen.notes
    assert look(contract, answer(403, {}, after=5_000), memory)[0].verdict is V.DENIED
    known = Memory(first_seen_at=Instant(1))
    assert look(contract, answer(403, {}, after=1_000), known)[0].verdict is V.DENIED
    assert look(contract, answer(403, {}, after=31_000))[0].verdict is V.DENIED


def test_reading_without_an_exchange_is_our_own_error() -> None:
    contract = parse(contract_text(CASES[0]), "case.toml")
    with pytest.raises(ValueError, match="no exchange"):
        read(contract, operation(), ())
