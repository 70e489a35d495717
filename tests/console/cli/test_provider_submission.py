"""`provider explain --step submission`: what is read of the answer that a job was started with, and what is stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.console.cli.test_provider_author import Call

CONFIG = """
[providers.lab]
contract = "example-jobs"
base_url = "http://127.0.0.1:9"
[providers.clouds]
contract = "azure-lro"
base_url = "https://a.example"
[audit]
key_file = "reading.key"
"""
QUEUED = 'HTTP/1.1 201 Created\nContent-Type: application/json\n\n{"id": "job-9", "status": "queued"}'
DONE = (
    "HTTP/1.1 201 Created\nContent-Type: application/json\n\n"
    '{"id": "job-9", "status": "succeeded", "result": {"url": "https://r.example/r?sig=canary"}}'
)
FAILED = 'HTTP/1.1 201 Created\nContent-Type: application/json\n\n{"id": "job-9", "status": "failed"}'
LOCATION = "HTTP/1.1 202 Accepted\nOperation-Location: https://a.example/ops/7?sig=canary\n\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    made.mkdir(mode=0o700)
    (made / "config.toml").write_text(CONFIG)
    return made


def explained(call: Call, home: Path, provider: str, answer: str, *more: str) -> Any:
    saved = home / "answer.txt"
    saved.write_text(answer)
    at = ("--response", str(saved), "--step", "submission", "--json", "--home", str(home))
    done = call("provider", "explain", provider, *at, *more)
    assert done.code == 0, done.err
    return done.json


@pytest.mark.rule("H1")
@pytest.mark.parametrize(
    ("provider", "answer", "job", "request_"),
    [
        ("lab", QUEUED, "job-9", "GET http://127.0.0.1:9/v1/jobs/job-9"),
        ("clouds", LOCATION, "7", "GET https://a.example/ops/7?..."),
    ],
)
def test_explain_tells_what_submit_would_store_of_the_same_answer(
    call: Call, home: Path, provider: str, answer: str, job: str, request_: str
) -> None:
    found = explained(call, home, provider, answer)
    told = found["submission"]
    assert (told["accepted"], told["job_id"], told["status"], told["first_request"]) == (True, job, "waiting", request_)
    assert found["read"]
    assert "canary" not in str(found)
    dry = call(
        "submit", "--provider", provider, "--from-response", str(home / "answer.txt"), "--dry-run", "--json",
        "--home", str(home),
    ).json  # fmt: skip
    assert dry["provider_job_id"] == told["job_id"]
    assert dry["last_known_state"] == told["last_known_state"]


@pytest.mark.rule("H1", "K4")
def test_an_answer_that_is_already_final_is_explained_with_its_end(call: Call, home: Path) -> None:
    found = explained(call, home, "lab", DONE)
    assert (found["submission"]["status"], found["submission"]["first_request"]) == ("succeeded", None)
    assert (found["decision"]["decision"], found["card"]) == ("succeed", None)
    assert found["observation"]["result"]["fields"] == {"url": "https://r.example/r?..."}
    failed = explained(call, home, "lab", FAILED)
    assert (failed["submission"]["status"], failed["decision"]["reason"]) == ("failed", "job_failed")
    assert failed["card"]


@pytest.mark.parametrize(
    ("provider", "answer", "code", "says"),
    [
        ("lab", "HTTP/1.1 400 Bad Request\n\n{}", "submission_failed", "HTTP 400"),
        ("lab", "HTTP/1.1 201 Created\n\n{}", "job_id_missing", "body.id"),
        ("clouds", "HTTP/1.1 202 Accepted\nOperation-Location: /ops/7\n\n", None, None),
        ("clouds", "HTTP/1.1 202 Accepted\nOperation-Location: https://b.example/7\n\n", "foreign_origin", "b.example"),
    ],
)
@pytest.mark.rule("H1")
def test_an_answer_that_submit_would_refuse_is_explained_with_the_reason(
    call: Call, home: Path, provider: str, answer: str, code: str | None, says: str | None
) -> None:
    told = explained(call, home, provider, answer)["submission"]
    assert (told["accepted"], told.get("code")) == (code is None, code)
    assert says is None or says in told["why"]


@pytest.mark.rule("H1")
def test_a_relative_address_counts_from_response_url_and_without_any_the_way_out_is_said(
    call: Call, home: Path
) -> None:
    answer = "HTTP/1.1 202 Accepted\nOperation-Location: /ops/7\n\n"
    url = "https://a.example/v1/start"
    assert explained(call, home, "clouds", answer, "--response-url", url)["submission"]["job_id"] == "7"
    bare = explained(call, home, "azure-lro", answer)["submission"]
    assert (bare["accepted"], bare["code"]) == (False, "bad_url")
    assert "it is relative: what it came from is --response-url" in bare["why"]


def test_an_unknown_step_is_refused_with_all_that_can_be_explained(call: Call, home: Path) -> None:
    saved = home / "answer.txt"
    saved.write_text(QUEUED)
    at = ("--response", str(saved), "--home", str(home))
    refused = call("provider", "explain", "lab", *at, "--step", "result")
    assert refused.code == 2
    assert "no step 'result' (known: cancel, status, submission)" in refused.err
    forced = call("provider", "explain", "github-run", *at, "--step", "qq")
    assert "cancel, cancel.force, status" in forced.err
    url = call("provider", "explain", "lab", *at, "--response-url", "https://a.example/x")
    assert (url.code, "--step submission" in url.err) == (2, True)
