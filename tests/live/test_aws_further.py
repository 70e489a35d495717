"""AWS Glue, CodeBuild, Redshift Data and Textract against moto's server: to every end that moto has, signed.

What moto 5.2.5 cannot do (tests/servers/moto/facts.json holds its answers), and so no test here can:
 - Glue: a run ends as SUCCEEDED alone, never FAILED, TIMEOUT, ERROR or STOPPED; to BatchStopJobRun it answers 500.
 - CodeBuild: every question makes a build SUCCEEDED, also after StopBuild, with `buildComplete: false` beside it; an id
   that it does not know is left out of the answer and not named in buildsNotFound.
 - Redshift Data: a statement never ends by itself, so neither FINISHED nor FAILED.
 - Textract: SUCCEEDED at once, never FAILED or PARTIAL_SUCCESS; no pages.
 - Bedrock: model invocation jobs are not there at all (404).
"""

from __future__ import annotations

import json
from collections.abc import Callable
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


@pytest.mark.rule("S2", "S4", "S9", "H1", "X4", "K5")
@pytest.mark.parametrize("make", [pytest.param(aws.JobRuns, id="glue"), pytest.param(aws.Detections, id="textract")])
async def test_a_job_that_succeeds_ends_as_a_success(
    make: Callable[[JobServer], Any], tmp_path: Path, job_server: Get
) -> None:
    job = make(job_server("moto"))

    async def body(core: Core) -> None:
        operation = await handed_over(core, job.start("succeeding"), job)
        ended = await settled(core, operation.operation_id, is_over)
        assert (ended.status, ended.last_known_state) == (Status.SUCCEEDED, "SUCCEEDED")
        assert ended.result is not None
        assert ended.result.validated

    await with_core(tmp_path / "home", job, body)


@pytest.mark.rule("S2", "S10")
async def test_the_states_of_a_glue_run_are_told_on_the_way(tmp_path: Path, job_server: Get) -> None:
    job = aws.JobRuns(job_server("moto"))

    async def body(core: Core) -> None:
        operation = await handed_over(core, job.start("succeeding"), job)
        ended = await settled(core, operation.operation_id, is_over)
        assert await states_of(core, operation.operation_id) == ["RUNNING", "SUCCEEDED"]
        assert ended.result is not None
        assert (ended.result.permits, ended.result.fields["log_group"]) == ("use_result", "test/log")

    await with_core(tmp_path / "home", job, body)


@pytest.mark.rule("S4")
async def test_a_build_that_is_said_to_be_done_and_not_complete_is_no_success(tmp_path: Path, job_server: Get) -> None:
    job = aws.Builds(job_server("moto"))

    async def body(core: Core) -> None:
        operation = await handed_over(core, job.start("succeeding"))
        stopped = await settled(core, operation.operation_id, is_over)
        assert (stopped.status, stopped.stop_reason) == (Status.ESCALATED, StopReason.INTEGRATION_FAILURE)
        assert stopped.stop_detail is StopDetail.SUCCESS_CONTRADICTED

    await with_core(tmp_path / "home", job, body)


@pytest.mark.rule("E5", "O5", "G2")
async def test_a_granted_cancel_ends_a_statement_of_redshift(tmp_path: Path, job_server: Get) -> None:
    job = aws.Statements(job_server("moto"))

    async def body(core: Core) -> None:
        operation = await handed_over(core, job.start("endless"))
        name = operation.operation_id
        await settled(core, name, lambda op: op.last_known_state == "STARTED")
        await core.actions.open_question(name, OPERATOR)
        choice = await decided(core, name, lambda one: one.kind is ChoiceKind.CANCEL_AT_PROVIDER)
        assert any("consequences" in warning for warning in choice.warnings)
        (action,) = await core.store.actions(name)
        assert action.outcome is ActionOutcome.DONE
        ended = await settled(core, name, is_over)
        assert (ended.status, ended.last_known_state) == (Status.CANCELLED, "ABORTED")

    await with_core(tmp_path / "home", job, body)


@pytest.mark.rule("E5", "O5")
async def test_a_stop_of_a_glue_run_that_met_a_fault_is_unknown_and_sent_once(tmp_path: Path, job_server: Get) -> None:
    """Fails when moto learns BatchStopJobRun: then it belongs to the granted cancels."""
    job = aws.JobRuns(job_server("moto"), "slow")

    async def body(core: Core) -> None:
        operation = await handed_over(core, job.start("endless"), job)
        name = operation.operation_id
        await settled(core, name, lambda op: op.last_known_state == "STARTING")
        await core.actions.open_question(name, OPERATOR)
        await decided(core, name, lambda one: one.kind is ChoiceKind.CANCEL_AT_PROVIDER)
        (action,) = await core.store.actions(name)
        assert action.outcome is ActionOutcome.UNKNOWN
        after = await core.store.operation(name)
        assert after is not None
        assert (after.status, after.last_known_state) == (Status.WAITING, "STARTING")
        assert len(await core.store.actions(name)) == 1

    await with_core(tmp_path / "home", job, body)


@pytest.mark.rule("H4", "H6", "X5")
@pytest.mark.parametrize(
    ("make", "named", "detail"),
    [
        pytest.param(aws.JobRuns, "JobRunId", StopDetail.NOT_FOUND, id="glue"),  # 400 EntityNotFoundException
        pytest.param(aws.Builds, "build.id", StopDetail.NOT_FOUND, id="codebuild"),  # an empty list
        pytest.param(
            aws.Statements, "Id", StopDetail.UNEXPECTED_STATUS, id="redshift"
        ),  # 400 ResourceNotFoundException
        pytest.param(aws.Detections, "JobId", StopDetail.UNEXPECTED_STATUS, id="textract"),  # 400 InvalidJobIdException
    ],
)
async def test_an_id_that_moto_does_not_know_is_no_failure_of_the_job(
    make: Callable[[JobServer], Any], named: str, detail: StopDetail, tmp_path: Path, job_server: Get
) -> None:
    job = make(job_server("moto"))

    async def body(core: Core) -> None:
        answered: Any = job.unknown
        for key in reversed(named.split(".")):
            answered = {key: answered}
        operation = await handed_over(core, answered, job)
        stopped = await settled(core, operation.operation_id, is_over)
        assert (stopped.status, stopped.stop_reason) == (Status.ESCALATED, StopReason.INTEGRATION_FAILURE)
        assert stopped.stop_detail is detail

    await with_core(tmp_path / "home", job, body)


@pytest.mark.rule("S4", "O5")
@pytest.mark.parametrize(
    ("make", "field", "value"),
    [
        pytest.param(aws.StateMachines, "output", '{"n": 1}', id="sfn"),
        pytest.param(aws.Detections, "Blocks", [], id="textract"),
    ],
)
async def test_what_a_success_permits_to_fetch_is_fetched_by_a_signed_request(
    make: Callable[[JobServer], Any], field: str, value: Any, tmp_path: Path, job_server: Get
) -> None:
    job = make(job_server("moto"))

    async def body(core: Core) -> None:
        operation = await handed_over(core, job.start("succeeding"))
        name, to = operation.operation_id, tmp_path / "result"
        ended = await settled(core, name, is_over)
        assert ended.result is not None
        assert ended.result.permits == "fetch_result"
        action = await core.actions.fetch(name, to, "agent")
        assert action.outcome is ActionOutcome.DONE
        assert json.loads(to.read_text("utf-8"))[field] == value

    await with_core(tmp_path / "home", job, body)
