"""What moto was seen to answer, read by the shipped AWS contracts; and their requests as botocore's models say."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from tests.core.reading.helpers import operation
from tests.core.reading.test_reading_servers import captured

from pollcore.adapters.contract_files import ContractFiles
from pollcore.contract import Contract, instance
from pollcore.contract.parts import RequestPlan
from pollcore.facts import BootMs, Exchange, Moment, Verdict
from pollcore.reading import read

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
]


def made(name: str) -> Contract:
    return instance(ContractFiles(None).load(name), base_url="https://aws.example.test")


def asked(one: dict[str, Any]) -> str:
    """The job that an exchange asked about."""
    body = one["request"]["body"]
    return str(body.get("executionArn") or body.get("QueryExecutionId") or body["jobs"][0])


@pytest.mark.rule("S2", "S4", "H4")
@pytest.mark.parametrize(("name", "note", "verdict", "error"), READ)
def test_what_moto_answered_reads_as_what_it_says(name: str, note: str, verdict: Verdict, error: str | None) -> None:
    exchanges = json.loads(FACTS.read_text("utf-8"))["exchanges"]
    one = next(found for found in exchanges if found["note"] == note)
    seen, _ = read(
        made(name),
        operation(job_id=asked(one), provider=name),
        (Exchange("status", "https://aws.example.test/", captured(one)),),
        Moment(captured(one).answered_at, BootMs(1), "boot"),
    )
    assert seen.verdict is verdict
    assert seen.http.request_id is not None
    if error is not None:
        assert seen.provider_error == error


def models() -> list[dict[str, Any]]:
    """botocore's models of the services that sign for *name*."""
    botocore = pytest.importorskip("botocore")
    folder = Path(botocore.__file__).parent / "data"
    return [
        json.loads(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())
        for name in ("athena", "batch", "stepfunctions", "bedrock", "redshift-data", "textract", "codebuild")
        for path in sorted((folder / name).glob("*/service-2.json*"))
    ]


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
