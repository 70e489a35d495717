"""What moto was seen to answer, read by the shipped AWS contracts; and their requests as botocore's models say."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from tests.catalogue.facts import apis
from tests.core.reading.helpers import operation
from tests.core.reading.test_reading_servers import captured

from pollcore.adapters.contract_files import ContractFiles
from pollcore.contract import Contract, instance
from pollcore.contract.parts import RequestPlan
from pollcore.facts import ActionOutcome, Answer, Exchange, Instant, Verdict
from pollcore.reading import read, read_cancel

V = Verdict
FACTS = Path(__file__).parents[2] / "servers" / "moto" / "facts.json"
SIGNED = [name for name in ContractFiles(None).names() if name.startswith("aws-")]
READ = [
    ("aws-sfn", "execution that waits: first answer with RUNNING", V.WAITING, None),
    ("aws-sfn", "execution that passes: first answer with SUCCEEDED", V.SUCCEEDED, None),
    ("aws-sfn", "execution that fails: first answer with FAILED", V.FAILED, "Asked: asked to fail"),
    ("aws-sfn", "execution over its time: first answer with TIMED_OUT", V.EXPIRED, None),
    ("aws-sfn", "execution after the stop", V.CANCELLED, None),
    ("aws-sfn", "unknown execution", V.INTEGRATION, None),
    ("aws-athena", "query that stays queued", V.WAITING, None),
    ("aws-athena", "query: first answer with RUNNING", V.WAITING, None),
    ("aws-athena", "query: first answer with SUCCEEDED", V.SUCCEEDED, None),
    ("aws-athena", "query after the stop", V.CANCELLED, None),
    ("aws-batch", "job that waits for another: first answer with PENDING", V.WAITING, None),
    ("aws-batch", "job: first answer with SUCCEEDED", V.SUCCEEDED, None),
    ("aws-batch", "job without a container: first answer with FAILED", V.FAILED, None),
    ("aws-batch", "job after the terminate: first answer with FAILED", V.FAILED, "cancelled by an operator"),
    ("aws-batch", "unknown job", V.INTEGRATION, None),
    ("aws-glue", "job run that stays starting", V.WAITING, None),
    ("aws-glue", "job run: first answer with RUNNING", V.WAITING, None),
    ("aws-glue", "job run: first answer with SUCCEEDED", V.SUCCEEDED, None),
    ("aws-glue", "unknown job run", V.INTEGRATION, None),
    ("aws-glue", "job run of an unknown job", V.INTEGRATION, None),
    # moto says SUCCEEDED and buildComplete: false in one answer
    ("aws-codebuild", "build", V.INTEGRATION, None),
    ("aws-codebuild", "unknown build: left out, and not in buildsNotFound", V.INTEGRATION, None),
    ("aws-redshift", "statement: never ends by itself", V.WAITING, None),
    ("aws-redshift", "statement after the cancel", V.CANCELLED, None),
    ("aws-redshift", "unknown statement", V.INTEGRATION, None),
    ("aws-textract", "text detection", V.SUCCEEDED, None),
    ("aws-textract", "unknown text detection", V.INTEGRATION, None),
]
CANCELLED = [
    ("aws-redshift", "cancel the statement", ActionOutcome.DONE),
    ("aws-redshift", "cancel it again", ActionOutcome.REFUSED),
    ("aws-sfn", "stop the execution", ActionOutcome.DONE),
    ("aws-athena", "stop the query", ActionOutcome.DONE),
    ("aws-batch", "terminate the job", ActionOutcome.DONE),
    ("aws-codebuild", "stop the build", ActionOutcome.DONE),
    ("aws-glue", "stop the job run: moto has no such action", ActionOutcome.UNKNOWN),
]
STOPS = [
    ({"SuccessfulSubmissions": [{"JobName": "j", "JobRunId": "jr_1"}], "Errors": []}, ActionOutcome.DONE, "HTTP 200"),
    ({"SuccessfulSubmissions": [{"JobName": "j", "JobRunId": "jr_1"}]}, ActionOutcome.DONE, "HTTP 200"),
    (
        {
            "SuccessfulSubmissions": [],
            "Errors": [
                {
                    "JobName": "j",
                    "JobRunId": "jr_1",
                    "ErrorDetail": {"ErrorCode": "JobRunInTerminalStateException", "ErrorMessage": "it has ended"},
                }
            ],
        },
        ActionOutcome.REFUSED,
        "JobRunInTerminalStateException: it has ended",
    ),
    ({}, ActionOutcome.UNKNOWN, "does not hold"),
    ({"SuccessfulSubmissions": []}, ActionOutcome.UNKNOWN, "does not hold"),
]


def made(name: str) -> Contract:
    return instance(ContractFiles(None).load(name), base_url="https://aws.example.test")


def asked(one: dict[str, Any]) -> str:
    """The job that an exchange asked about."""
    body = one["request"]["body"]
    told = ("executionArn", "QueryExecutionId", "RunId", "Id", "JobId")
    several = body.get("jobs") or body.get("ids") or [""]
    return str(next((body[name] for name in told if name in body), several[0]))


@pytest.mark.rule("S2", "S4", "H4")
@pytest.mark.parametrize(("name", "note", "verdict", "error"), READ)
def test_what_moto_answered_reads_as_what_it_says(name: str, note: str, verdict: Verdict, error: str | None) -> None:
    exchanges = json.loads(FACTS.read_text("utf-8"))["exchanges"]
    one = next(found for found in exchanges if found["note"] == note)
    seen, _ = read(
        made(name),
        operation(job_id=asked(one), provider=name),
        (Exchange("status", "https://aws.example.test/", captured(one)),),
    )
    assert seen.verdict is verdict
    assert seen.http.request_id is not None
    if error is not None:
        assert seen.provider_error == error


@pytest.mark.rule("O5")
@pytest.mark.parametrize(("name", "note", "outcome"), CANCELLED)
def test_what_moto_answered_to_a_stop_reads_as_what_it_did(name: str, note: str, outcome: ActionOutcome) -> None:
    exchanges = json.loads(FACTS.read_text("utf-8"))["exchanges"]
    one = next(found for found in exchanges if found["note"] == note)
    assert read_cancel(made(name), captured(one))[0] is outcome


@pytest.mark.rule("O5", "E5")
@pytest.mark.parametrize(("body", "outcome", "told"), STOPS)
def test_a_stop_of_a_glue_run_counts_run_by_run(body: dict[str, Any], outcome: ActionOutcome, told: str) -> None:
    """As botocore's model of BatchStopJobRun says: the request succeeds, and each run does or does not."""
    answer = Answer(200, (), json.dumps(body).encode(), Instant(0), Instant(1))
    found, detail = read_cancel(made("aws-glue"), answer)
    assert found is outcome
    assert told in (detail or "")


def models() -> list[dict[str, Any]]:
    """botocore's models of the services that sign for *name*."""
    botocore = pytest.importorskip("botocore")
    folder = Path(botocore.__file__).parent / "data"
    return [
        json.loads(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())
        for name in (
            *("athena", "batch", "stepfunctions", "bedrock"),
            *("redshift-data", "textract", "codebuild", "glue"),
        )
        for path in sorted((folder / name).glob("*/service-2.json*"))
    ]


@pytest.mark.rule("S2")
def test_every_state_of_botocores_model_of_glue_is_a_documented_one() -> None:
    model = next(one for one in models() if one["metadata"]["serviceId"] == "Glue")
    (api,) = (one for one in apis() if one.contract == "aws-glue")
    assert sorted(model["shapes"]["JobRunState"]["enum"]) == sorted(state.value for state in api.states)


def plans(contract: Contract) -> list[RequestPlan]:
    found = [step.request for step in contract.steps]
    found += [contract.cancel.request] if contract.cancel is not None else []
    found += [contract.result] if contract.result is not None else []
    if contract.submission is not None and contract.submission.request is not None:
        found.append(contract.submission.request)
    return found


@pytest.mark.rule("K5", "S7")
@pytest.mark.parametrize("name", SIGNED)
def test_requests_of_aws_are_named_versioned_and_signed_as_botocore_does(name: str) -> None:
    contract = ContractFiles(None).load(name)
    service = contract.credential_names[0]
    model = next(
        one for one in models() if one["metadata"].get("signingName", one["metadata"]["endpointPrefix"]) == service
    )
    prefix, version = model["metadata"].get("targetPrefix"), model["metadata"].get("jsonVersion")
    for plan in plans(contract):
        headers = {key.lower(): value.constant for key, value in plan.headers}
        target = headers.get("x-amz-target")
        if target is None:
            assert model["metadata"]["protocol"] == "rest-json"
            continue
        assert target.startswith(f"{prefix}.")
        assert target.partition(".")[2] in model["operations"]
        assert headers["content-type"] == f"application/x-amz-json-{version}"
