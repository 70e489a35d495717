"""Shipped AWS contracts against moto's server: from the submission's answer to every end that moto has, signed.

moto is no AWS: what it answers is in tests/servers/moto/facts.json. It knows no failed query of Athena, and sends
neither of the flags by which AWS Batch tells a stopped job from a failed one.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pollcore.assembly import Core
from pollcore.facts import ActionOutcome, ChoiceKind, Status, StopDetail, StopReason
from tests.live import aws
from tests.live.aws_world import Get, decided, handed_over, states_of, with_core
from tests.live.test_real_servers import OPERATOR, is_over, settled
from tests.support.servers import JobServer

pytestmark = [pytest.mark.slow, pytest.mark.server("moto")]


STARTS = 3
RUNS = ("RUNNING", "QUEUED", "PENDING", "RUNNABLE")
ENDS = [
    pytest.param(aws.StateMachines, "succeeding", Status.SUCCEEDED, "SUCCEEDED", None, id="sfn-succeeded"),
    pytest.param(aws.StateMachines, "failing", Status.FAILED, "FAILED", "Asked: asked to fail", id="sfn-failed"),
    pytest.param(aws.StateMachines, "late", Status.EXPIRED, "TIMED_OUT", None, id="sfn-timed-out"),
    pytest.param(aws.Queries, "succeeding", Status.SUCCEEDED, "SUCCEEDED", None, id="athena-succeeded"),
    pytest.param(aws.Jobs, "succeeding", Status.SUCCEEDED, "SUCCEEDED", None, id="batch-succeeded"),
    pytest.param(partial(aws.Jobs, which="slow"), "failing", Status.FAILED, "FAILED", None, id="batch-failed"),
]


@pytest.mark.rule("S2", "S4", "S9", "H1", "X4", "K5")
@pytest.mark.parametrize(("make", "kind", "status", "state", "why"), ENDS)
async def test_a_job_of_aws_ends_as_what_it_is(
    make: Callable[[JobServer], Any],
    kind: str,
    status: Status,
    state: str,
    why: str | None,
    tmp_path: Path,
    job_server: Get,
) -> None:
    job = make(job_server("moto"))

    async def body(core: Core) -> None:
        operation = await handed_over(core, job.start(kind))
        ended = await settled(core, operation.operation_id, is_over)
        assert (ended.status, ended.last_known_state) == (status, state)
        if status is Status.SUCCEEDED:
            assert ended.result is not None
            assert ended.result.validated
        else:
            assert (await core.store.questions(operation.operation_id))[0].reason is ended.stop_reason
        if why is not None:
            assert ended.stop_explanation == why

    await with_core(tmp_path / "home", job, body)


@pytest.mark.rule("S2", "S10")
async def test_waiting_states_of_aws_are_told_on_the_way(tmp_path: Path, job_server: Get) -> None:
    job = aws.Jobs(job_server("moto"), "slow")

    async def body(core: Core) -> None:
        operation = await handed_over(core, job.start("failing"))
        await settled(core, operation.operation_id, is_over)
        told = await states_of(core, operation.operation_id)
        order = ["SUBMITTED", "PENDING", "RUNNABLE", "STARTING", "RUNNING", "FAILED"]
        assert told == [state for state in order if state in told]
        # moto goes on every two seconds, however slow this machine is
        assert len(told) >= 2

    await with_core(tmp_path / "home", job, body)


async def running(core: Core, job: Any) -> str:
    """The operation of a job that still runs: moto ends each of its jobs by itself, seconds later."""
    for _ in range(STARTS):
        answered = job.start("endless")
        if isinstance(job, aws.Jobs):
            answered = job.start("endless", after=answered["jobId"])
        operation = await handed_over(core, answered)
        seen = await settled(core, operation.operation_id, lambda op: op.last_known_state in RUNS or is_over(op))
        if not is_over(seen):
            return operation.operation_id
    raise AssertionError(f"{STARTS} jobs had ended before they were seen to run")


@pytest.mark.rule("E5", "O5", "G2")
@pytest.mark.parametrize(
    ("make", "status", "state"),
    [
        pytest.param(aws.StateMachines, Status.CANCELLED, "ABORTED", id="sfn"),
        pytest.param(partial(aws.Queries, which="slow"), Status.CANCELLED, "CANCELLED", id="athena"),
        # moto sends no isTerminated: by the contract a FAILED without it is a failure
        pytest.param(partial(aws.Jobs, which="slow"), Status.FAILED, "FAILED", id="batch"),
    ],
)
async def test_a_granted_cancel_ends_a_job_of_aws(
    make: Callable[[JobServer], Any], status: Status, state: str, tmp_path: Path, job_server: Get
) -> None:
    job = make(job_server("moto"))

    async def body(core: Core) -> None:
        name = await running(core, job)
        await core.actions.open_question(name, OPERATOR)
        choice = await decided(core, name, lambda one: one.kind is ChoiceKind.CANCEL_AT_PROVIDER)
        assert any("consequences" in warning for warning in choice.warnings)
        (action,) = await core.store.actions(name)
        assert action.outcome is ActionOutcome.DONE
        ended = await settled(core, name, is_over)
        assert (ended.status, ended.last_known_state) == (status, state)
        if status is Status.FAILED:
            assert "cancelled by an operator" in (ended.stop_explanation or "")

    await with_core(tmp_path / "home", job, body)


@pytest.mark.rule("H4", "H6", "X5")
@pytest.mark.parametrize(
    ("make", "detail"),
    [
        pytest.param(aws.StateMachines, StopDetail.UNEXPECTED_STATUS, id="sfn"),  # 400 ExecutionDoesNotExist
        pytest.param(aws.Jobs, StopDetail.NOT_FOUND, id="batch"),  # an empty list
    ],
)
async def test_an_id_that_aws_does_not_know_is_no_failure_of_the_job(
    make: Callable[[JobServer], Any], detail: StopDetail, tmp_path: Path, job_server: Get
) -> None:
    job = make(job_server("moto"))

    async def body(core: Core) -> None:
        named = {"executionArn": job.unknown, "jobId": job.unknown}
        operation = await handed_over(core, named)
        stopped = await settled(core, operation.operation_id, is_over)
        assert (stopped.status, stopped.stop_reason) == (Status.ESCALATED, StopReason.INTEGRATION_FAILURE)
        assert stopped.stop_detail is detail

    await with_core(tmp_path / "home", job, body)


def signed_start(job: Any, key: str) -> dict[str, Any]:
    """A query started with botocore's own signature: the verifying server takes no other."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    body = json.dumps({"QueryString": "select 1", "ResultConfiguration": {"OutputLocation": "s3://bucket/"}})
    headers = {
        "Content-Type": "application/x-amz-json-1.1",
        "X-Amz-Target": "AmazonAthena.StartQueryExecution",
    }
    request = AWSRequest(method="POST", url=f"{job.base_url}/", data=body.encode(), headers=headers)
    SigV4Auth(Credentials(*key.split(":")), "athena", aws.REGION).add_auth(request)
    sent = urllib.request.Request(f"{job.base_url}/", body.encode(), dict(request.headers.items()), method="POST")
    with urllib.request.urlopen(sent, timeout=aws.TIMEOUT_S) as answer:
        return dict(json.loads(answer.read()))


@pytest.mark.rule("K5", "H3")
@pytest.mark.parametrize("right", [True, False])
async def test_a_signature_is_what_the_provider_works_out_itself(right: bool, tmp_path: Path, job_server: Get) -> None:
    server = job_server("moto")
    key = f"{server.facts['access_key']}:{server.facts['secret_key']}"
    job = aws.Queries(server, "checked")

    async def body(core: Core) -> None:
        operation = await handed_over(core, signed_start(job, key))
        ended = await settled(core, operation.operation_id, is_over)
        if right:
            assert (ended.status, ended.last_known_state) == (Status.SUCCEEDED, "SUCCEEDED")
        else:
            assert (ended.status, ended.stop_reason) == (Status.ESCALATED, StopReason.AUTHORIZATION_DENIED)

    wrong = key[:-1] + ("A" if key[-1] != "A" else "B")
    await with_core(tmp_path / "home", job, body, secret=key if right else wrong)
