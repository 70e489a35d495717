"""Captured lives of aria2, Restate and Prefect, read by the shipped contracts as they really went."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.core.reading.helpers import operation

from pollcore.adapters.contract_files import ContractFiles
from pollcore.contract import Contract, check, instance, requests
from pollcore.facts import (
    ActionOutcome,
    Answer,
    Exchange,
    Instant,
    Memory,
    Observation,
    Operation,
    StopDetail,
    Submitted,
    Verdict,
)
from pollcore.reading import from_response, read, read_cancel
from pollcore.reading.times import http_date

V = Verdict
FOLDER = Path(__file__).parents[2] / "servers"
BASES = {"aria2": "http://127.0.0.1:6800", "restate": "http://127.0.0.1:8080", "prefect": "http://127.0.0.1:4200/api"}


def made(name: str) -> Contract:
    urls = {"admin": "http://127.0.0.1:9070"} if name == "restate" else None
    return instance(ContractFiles(None).load(name), base_url=BASES[name], urls=urls)


def exchanges(name: str) -> list[dict[str, Any]]:
    facts: list[dict[str, Any]] = json.loads((FOLDER / name / "facts.json").read_text("utf-8"))["exchanges"]
    return facts


def find(name: str, note: str) -> dict[str, Any]:
    return next(one for one in exchanges(name) if one["note"].startswith(note))


def captured(one: dict[str, Any]) -> Answer:
    got = one["response"]
    headers = tuple((name.lower(), value) for name, value in got["headers"])
    date = next((value for name, value in headers if name == "date"), None)
    at = Instant(1_795_000_000_000)
    at = http_date(date, at) if date else at
    body = got["body"]
    raw = body.encode() if isinstance(body, str) else b"" if body is None else json.dumps(body).encode()
    return Answer(got["status"], headers, raw, at, Instant(at + 20))


def polled(
    contract: Contract, one: dict[str, Any], job_id: str, memory: Memory | None = None
) -> tuple[Observation, Memory]:
    got = captured(one)
    started = Instant(got.answered_at - 60_000)
    made_for: Operation = operation(memory, job_id=job_id)
    url = requests.status_request(contract, made_for, None).url
    return read(contract, replace(made_for, started_at=started), (Exchange("status", url, got),))


ARIA = [
    ("B waits", "00000000000000b1", V.WAITING, "waiting"),
    ("A: first answer with active", "2bfe1a3c48bc009b", V.WAITING, "active"),
    ("A: first answer with complete", "2bfe1a3c48bc009b", V.SUCCEEDED, "complete"),
    ("C: first answer with error", "8df4d4283b13d137", V.FAILED, "error"),
    ("D paused", "b0a4d41b951b00b1", V.NEEDS_HUMAN, "paused"),
    ("D after unpause", "b0a4d41b951b00b1", V.WAITING, "active"),
    ("D after remove", "b0a4d41b951b00b1", V.CANCELLED, "removed"),
]


@pytest.mark.rule("S1", "S2", "S4")
@pytest.mark.parametrize(("note", "job", "verdict", "state"), ARIA)
def test_aria2s_states_read_as_they_were(note: str, job: str, verdict: Verdict, state: str) -> None:
    seen, memory = polled(made("aria2"), find("aria2", note), job)
    assert (seen.verdict, seen.state, seen.job_seen) == (verdict, state, True)
    assert memory.last_state == state


@pytest.mark.rule("H4", "S6")
def test_aria2s_not_found_is_a_400_and_another_gid_is_another_job() -> None:
    contract = made("aria2")
    for note, job in (("status of a forgotten job", "b0a4d41b951b00b1"), ("unknown id", "00000000000000ff")):
        seen, _ = polled(contract, find("aria2", note), job)
        assert (seen.verdict, seen.detail) == (V.INTEGRATION, StopDetail.NOT_FOUND)
        assert job in (seen.explanation or "")
    for note, job in (("malformed id", "zz"), ("unknown method", "x")):
        assert polled(contract, find("aria2", note), job)[0].detail is StopDetail.UNEXPECTED_STATUS
    seen, _ = polled(contract, find("aria2", "A: first answer with complete"), "00000000000000b1")
    assert (seen.verdict, seen.detail) == (V.INTEGRATION, StopDetail.WRONG_JOB)
    seen, _ = polled(contract, find("aria2", "C: first answer with error"), "8df4d4283b13d137")
    assert seen.provider_error == "3: Resource not found"


@pytest.mark.rule("E5")
def test_aria2s_requests_are_those_that_were_captured_and_its_cancel_reads_rightly() -> None:
    contract = made("aria2")
    request = requests.status_request(contract, operation(job_id="2bfe1a3c48bc009b"), None)
    sent = find("aria2", "A: first answer with complete")["request"]["body"]
    assert request.method == "POST"
    assert {**json.loads(request.body or b""), "id": sent["id"]} == sent
    assert contract.policy.cancel is not None
    assert read_cancel(contract, captured(find("aria2", "cancel D")))[0] is ActionOutcome.DONE
    outcome, detail = read_cancel(contract, captured(find("aria2", "cancel D again")))
    assert outcome is ActionOutcome.REFUSED
    assert "not found" in (detail or "")


RESTATE = [
    ("A (no key): first answer with 470", V.WAITING, "not_completed"),
    ("A (no key): first answer with 200", V.SUCCEEDED, "completed"),
    ("B (key): first answer with 200", V.SUCCEEDED, "completed"),
    ("C (fails): first answer with 422", V.FAILED, "failed"),
    ("D (cancelled): first answer with 470", V.WAITING, "not_completed"),
    ("D (cancelled): first answer with 409", V.CANCELLED, "cancelled"),
]


@pytest.mark.rule("S1", "H6", "S4")
@pytest.mark.parametrize(("note", "verdict", "state"), RESTATE)
def test_restates_states_are_its_http_statuses(note: str, verdict: Verdict, state: str) -> None:
    one = find("restate", note)
    job = one["request"]["line"].split("/")[3]
    seen, _ = polled(made("restate"), one, job)
    assert (seen.verdict, seen.state, seen.job_seen) == (verdict, state, True)
    if verdict is V.SUCCEEDED:
        assert seen.result is not None
        assert seen.result.fields == {"invocation_id": job, "output": one["response"]["body"]}


@pytest.mark.rule("H4", "E5")
def test_restates_not_found_confirms_our_cancel_and_a_400_says_nothing() -> None:
    contract = made("restate")
    one = find("restate", "E (killed while scheduled)")
    job = one["request"]["line"].split("/")[3]
    assert polled(contract, one, job)[0].detail is StopDetail.NOT_FOUND
    cancelled = Memory(cancel_sent_at=Instant(1))
    assert polled(contract, one, job, cancelled)[0].verdict is V.CANCELLED
    assert polled(contract, one, job, Memory(first_seen_at=Instant(1)))[0].verdict is V.EXPIRED
    assert polled(contract, find("restate", "malformed id"), "nonsense")[0].detail is StopDetail.UNEXPECTED_STATUS
    for note, outcome in (("cancel D (admin", "done"), ("cancel D again", "refused"), ("cancel an unknown", "refused")):
        assert read_cancel(contract, captured(find("restate", note)))[0].value == outcome


@pytest.mark.rule("H1", "E6", "S7")
def test_submissions_of_all_three_hand_over_the_right_job_and_render_again() -> None:
    nobody = Submitted(provider="x", account="a", job_id="")
    for name, note, job in (
        ("aria2", "submit A", "2bfe1a3c48bc009b"),
        ("restate", "submit A", "inv_1jdwuebtLtMU01suz2MoSO4MJJEDjkSGiu"),
        ("prefect", "submit A", "7c863686-fddf-41e8-8494-76b7fd714e44"),
    ):
        found = from_response(made(name), nobody, captured(find(name, note)), BASES[name])
        assert found.job_id == job
        assert found.observation is None
    sent = find("prefect", "submit A")["request"]
    given = Submitted(
        provider="prefect",
        account="a",
        job_id="j",
        params={"deployment_id": sent["line"].split("/")[3], "parameters": sent["body"]["parameters"]},
    )
    again = requests.submit_request(made("prefect"), given, "key-1")
    assert json.loads(again.body or b"") == sent["body"]
    assert again.url == "http://127.0.0.1:4200" + sent["line"].split(" ")[1]


@pytest.mark.rule("S2", "S10", "E5")
def test_prefects_types_count_and_its_cancelling_is_waiting() -> None:
    contract = made("prefect")
    expected = {
        "SCHEDULED": V.WAITING,
        "PENDING": V.WAITING,
        "RUNNING": V.WAITING,
        "CANCELLING": V.WAITING,
        "COMPLETED": V.SUCCEEDED,
        "FAILED": V.FAILED,
        "CANCELLED": V.CANCELLED,
    }
    seen_types = set()
    for one in exchanges("prefect"):
        if "first answer with" not in one["note"]:
            continue
        state = one["response"]["body"]["state"]["type"]
        seen, _ = polled(contract, one, one["response"]["body"]["id"])
        assert (seen.verdict, seen.cancelling) == (expected[state], state == "CANCELLING")
        if state == "FAILED":
            assert seen.provider_error is not None
            assert "asked to fail" in seen.provider_error
        seen_types.add(state)
    assert seen_types == set(expected)
    assert polled(contract, find("prefect", "unknown id"), "x")[0].detail is StopDetail.NOT_FOUND
    assert read_cancel(contract, captured(find("prefect", "cancel C while")))[0] is ActionOutcome.DONE
    outcome, _ = read_cancel(contract, captured(find("prefect", "cancel C again")))
    assert outcome is ActionOutcome.REFUSED


@pytest.mark.rule("B1", "X7", "E5")
def test_the_shipped_contracts_have_no_findings_and_prove_their_reading() -> None:
    for name in ContractFiles(None).names():
        contract = ContractFiles(None).load(name)
        if not contract.tried:
            continue  # tests/catalogue holds those against documented facts
        assert [str(one) for one in check(contract)] == []
        assert contract.policy.observation_read_only
        assert contract.evidence
        assert contract.tested_live
        assert contract.deadline_basis
        assert contract.name == name
