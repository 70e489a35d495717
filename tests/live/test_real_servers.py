"""Three real job servers, each with the contract that ships: success, failure, cancel, an id that nobody knows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from pollcore.actions import SubmitSpec
from pollcore.adapters.keyring_store import MemoryBackend
from pollcore.assembly import Core, open_core
from pollcore.facts import ActionOutcome, ActionRecord, ChoiceKind, Operation, Operator, Status, StopDetail, StopReason
from tests.live.jobs import BUSY, SERVERS
from tests.support.servers import JobServer

OPERATOR = Operator("ops", "here", "pty")
LIMIT_S = 120
MAX_GRANTS = 3

NAMES = [pytest.param(name, marks=pytest.mark.server(name)) for name in SERVERS]
pytestmark = [pytest.mark.slow]


async def settled(core: Core, operation_id: str, when: Callable[[Operation], bool]) -> Operation:
    """Wait for a condition on the record, at most LIMIT_S."""
    change = 0
    async with asyncio.timeout(LIMIT_S):
        while True:
            operation = await core.store.operation(operation_id)
            assert operation is not None
            if when(operation):
                return operation
            change = await core.store.wait_for_change(change, 5)


async def with_core(home: Path, name: str, server: Any, job: Callable[[Core, Any], Awaitable[None]]) -> None:
    """A running core with one configured instance of the shipped contract."""
    home.mkdir(mode=0o700)
    urls = "".join(f'urls.{key} = "{url}"\n' for key, url in server.urls.items())
    (home / "config.toml").write_text(
        f'[providers.live]\ncontract = "{name}"\nbase_url = "{server.base_url}"\n{urls}', "utf-8"
    )
    async with open_core(home, kind="run", backend=MemoryBackend()) as core:
        stop = asyncio.Event()
        running = asyncio.create_task(core.controller().run(stop))
        try:
            await job(core, server)
            assert list(await core.store.check()) == []
        finally:
            stop.set()
            await running


async def submit(core: Core, job_id: str) -> Operation:
    return (await core.actions.submit(SubmitSpec(provider="live", job_id=job_id))).operation


async def cancelled(core: Core, operation_id: str) -> tuple[ActionRecord, ...]:
    """The cancels that it took, each granted for itself: more than one only where the server was busy."""
    for granted in range(1, MAX_GRANTS + 1):
        await core.actions.open_question(operation_id, OPERATOR)
        shown = await core.actions.card(operation_id)
        choice = next(c for c in shown.choices if c.kind is ChoiceKind.CANCEL_AT_PROVIDER)
        assert any("consequences" in warning for warning in choice.warnings)
        await core.actions.decide(
            operation_id, shown.question.escalation_id, choice.key, shown.digest, {"kind": "test"}, OPERATOR
        )
        actions = await core.store.actions(operation_id)
        assert len(actions) == granted
        if actions[-1].http_code != BUSY:
            break
    return tuple(actions)


def is_over(operation: Operation) -> bool:
    return operation.status not in (Status.WAITING, Status.HELD)


@pytest.mark.rule("S1", "S2", "S4", "S9", "H1", "X4", "E1")
@pytest.mark.parametrize("name", NAMES)
async def test_a_job_that_succeeds_and_one_that_fails_end_as_what_they_are(
    name: str, tmp_path: Path, job_server: Callable[[str], JobServer]
) -> None:
    async def both(core: Core, server: Any) -> None:
        good, bad = await submit(core, server.succeeding()), await submit(core, server.failing())
        done = await settled(core, good.operation_id, is_over)
        assert (done.status, done.stop_reason) == (Status.SUCCEEDED, None)
        assert done.last_known_state == server.state_of_success
        assert done.result is not None
        assert done.result.validated
        failed = await settled(core, bad.operation_id, is_over)
        assert (failed.status, failed.stop_reason) == (Status.FAILED, StopReason.JOB_FAILED)
        assert failed.last_known_state == server.state_of_failure
        asked = await core.store.questions(bad.operation_id)
        assert [q.reason for q in asked] == [StopReason.JOB_FAILED]

    await with_core(tmp_path / "home", name, SERVERS[name](job_server(name)), both)


@pytest.mark.rule("E5", "O5", "G2", "S10")
@pytest.mark.parametrize("name", NAMES)
async def test_a_granted_cancel_is_sent_once_and_confirmed_by_the_provider(
    name: str, tmp_path: Path, job_server: Callable[[str], JobServer]
) -> None:
    async def cancel(core: Core, server: Any) -> None:
        operation = await submit(core, server.endless())
        states = ("active", "not_completed", "RUNNING")
        await settled(core, operation.operation_id, lambda o: o.last_known_state in states)
        *busy, action = await cancelled(core, operation.operation_id)
        assert all((one.outcome, one.http_code) == (ActionOutcome.UNKNOWN, BUSY) for one in busy)
        assert action.outcome is ActionOutcome.DONE
        ended = await settled(core, operation.operation_id, is_over)
        assert ended.status is Status.CANCELLED
        assert await core.store.questions(operation.operation_id) == ()

    await with_core(tmp_path / "home", name, SERVERS[name](job_server(name)), cancel)


@pytest.mark.rule("H4", "X5")
@pytest.mark.parametrize("name", NAMES)
async def test_an_id_that_the_provider_does_not_know_is_no_failure_of_the_job(
    name: str, tmp_path: Path, job_server: Callable[[str], JobServer]
) -> None:
    async def unknown(core: Core, server: Any) -> None:
        operation = await submit(core, server.unknown)
        stopped = await settled(core, operation.operation_id, is_over)
        assert stopped.status is Status.ESCALATED
        assert stopped.stop_reason is StopReason.INTEGRATION_FAILURE
        assert stopped.stop_detail is StopDetail.NOT_FOUND

    await with_core(tmp_path / "home", name, SERVERS[name](job_server(name)), unknown)
