"""A record that moves while its request is out: the answer is decided on what is so now; nothing is claimed after a
stop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pollcore.controller import Controller
from pollcore.facts import SECOND, ChoiceKind, ContractError, Status, StopDetail, StopReason, StoreUnusable
from pollcore.ports import Turn
from tests.controller.bank import DONE, RUNNING, says
from tests.controller.batch_house import shared_house
from tests.controller.house import OPERATOR, House, house, until
from tests.controller.test_children import NO_GUARD, with_parts

KNOWS_COMPILING = ('waiting = ["queued", "running"]', 'waiting = ["queued", "running", "compiling"]')
WANTS_SIZE = (
    '[[success.requires]]\npath = "body.result.url"',
    '[[success.requires]]\npath = "body.result.size"\n[[success.requires]]\npath = "body.result.url"',
)


@contextlib.asynccontextmanager
async def one_out(h: House, *jobs: str) -> AsyncIterator[tuple[Controller, asyncio.Event]]:
    """A loop whose request for *jobs* is out, on a clock that stands; at the end it is answered and the loop stops."""
    h.bank.gate, stop = asyncio.Event(), asyncio.Event()
    h.clock.jump(11 * SECOND)
    h.clock.stand_still = True
    with h.worker() as controller:
        running = asyncio.create_task(controller.run(stop, watch=False))
        await until(lambda: len(h.bank.status_seen) == 1, "it is out")
        try:
            yield controller, stop
            h.bank.gate.set()
            await until(lambda: controller.report.recorded >= max(1, len(jobs)), "it is recorded")
        finally:
            stop.set()
            h.bank.gate.set()
            await asyncio.wait_for(running, 20)


async def adopt(h: House, operation_id: str = "op-job-1") -> str:
    """An operator adopts the contract file as it is now; returns its digest."""
    await h.core.actions.open_question(operation_id, OPERATOR)
    return (await h.choose(ChoiceKind.ADOPT_CONTRACT, operation_id)).contract_digest


# --- the contract in force --------------------------------------------------------------------------------------------


@pytest.mark.rule("S8", "S2")
async def test_an_answer_that_was_out_while_a_contract_was_adopted_is_read_under_that_one(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        old = (await h.submit("job-1", says("compiling"), DONE, credential="key")).contract_digest
        async with one_out(h):
            h.write_contract(KNOWS_COMPILING)
            new = await adopt(h)
        op = await h.op()
        assert old != new == op.contract_digest
        assert (op.status, op.stop_reason, op.last_known_state) == (Status.WAITING, None, "compiling")
        assert (op.completed_polls, op.status_requests_used) == (1, 1)


@pytest.mark.rule("S8", "S4")
async def test_a_success_by_the_old_contract_alone_is_none_under_the_adopted_one(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", DONE, credential="key")
        async with one_out(h):
            h.write_contract(WANTS_SIZE)
            new = await adopt(h)
        op = await h.op()
        assert (op.contract_digest, op.status) == (new, Status.ESCALATED)
        assert (op.stop_reason, op.stop_detail) == (
            StopReason.INTEGRATION_FAILURE,
            StopDetail.SUCCEEDED_WITHOUT_RESULT,
        )


@pytest.mark.rule("S8", "O6")
async def test_an_adopted_contract_that_cannot_be_read_now_keeps_the_answer_until_it_can(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", says("compiling"), DONE, credential="key")
        async with one_out(h) as (controller, _):
            h.write_contract(KNOWS_COMPILING)
            new = await adopt(h)
            real = controller.contracts.of
            failed: list[str] = []

            async def of(digest: str) -> Any:
                # what could not be recorded is tried again after a while
                h.clock.stand_still = not (digest == new and len(failed) < 2)
                if not h.clock.stand_still:
                    failed.append(digest)
                    raise StoreUnusable("database is locked")
                return await real(digest)

            controller.contracts.of = of  # type: ignore[method-assign]
        op = await h.op()
        assert len(failed) == 2
        assert (op.status, op.last_known_state, op.completed_polls) == (Status.WAITING, "compiling", 1)
        assert len(h.bank.status_seen) == 1


@pytest.mark.rule("S8", "X5")
async def test_an_adopted_contract_that_this_program_cannot_read_stops_the_wait_and_says_so(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", DONE, credential="key")
        async with one_out(h) as (controller, _):
            h.write_contract(KNOWS_COMPILING)
            new = await adopt(h)
            real = controller.contracts.of

            async def of(digest: str) -> Any:
                if digest == new:
                    raise ContractError("a newer program wrote it")
                return await real(digest)

            controller.contracts.of = of  # type: ignore[method-assign]
        op = await h.op()
        assert (op.stop_reason, op.stop_detail) == (StopReason.INTEGRATION_FAILURE, StopDetail.CONTRACT_MISSING)
        assert op.stop_explanation is not None
        assert "a newer program wrote it" in op.stop_explanation
        assert await h.question() is not None


@pytest.mark.rule("S8")
async def test_of_a_shared_answer_each_is_read_under_its_own_contract(tmp_path: Path) -> None:
    async with shared_house(tmp_path) as h:
        entries = [{"id": job, "status": "compiling"} for job in ("job-1", "job-2")]
        more = [{"id": "job-1", "status": "queued"}]
        bank: Any = h.bank
        bank.whole = lambda _: {"status": 200, "headers": {}, "body": {"jobs": entries, "more": more}}
        for job in ("job-1", "job-2"):
            await h.submit(job, credential="key")
        before = (await h.op()).contract_digest
        async with one_out(h, "job-1", "job-2"):
            text = (h.home / "providers" / "acme.toml").read_text()
            (h.home / "providers" / "acme.toml").write_text(text.replace("body.jobs", "body.more"))
            new = await adopt(h)
        assert len(h.bank.status_seen) == 1
        one, two = await h.op("op-job-1"), await h.op("op-job-2")
        assert (one.contract_digest, one.status, one.last_known_state) == (new, Status.WAITING, "queued")
        assert (two.contract_digest, two.stop_reason) == (before, StopReason.UNKNOWN_STATE)


@pytest.mark.rule("S8", "S2")
async def test_an_answer_about_one_child_is_never_taken_for_another_that_an_adopted_contract_asks_next(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as h:
        parts = with_parts(h.bank, "worst")
        h.write_contract(parts, NO_GUARD)
        h.bank.scripts |= {"p1": [says("done")], "p2": [RUNNING]}
        await h.submit("job-1", says("created", parts=["p1", "p2"], others=["p2", "p1"]))
        real, gate = h.bank._answer_to, asyncio.Event()

        async def slow(seen: Any) -> dict[str, Any]:
            if seen.path.endswith("/p1"):
                await gate.wait()
            return await real(seen)

        h.bank._answer_to = slow  # type: ignore[method-assign]
        h.clock.jump(11 * SECOND)
        stop = asyncio.Event()
        with h.worker() as controller:
            running = asyncio.create_task(controller.run(stop, watch=False))
            await until(lambda: any(seen.path.endswith("/p1") for seen in h.bank.requests), "p1 is asked")
            h.clock.stand_still = True
            h.write_contract((parts[0], parts[1].replace("body.parts", "body.others")), NO_GUARD)
            new = await adopt(h)
            assert (await h.op()).memory.values["each"] == "p2"
            gate.set()
            await until(lambda: controller.report.recorded == 2, "p1 is recorded")
            stop.set()
            await asyncio.wait_for(running, 20)
        op = await h.op()
        states = {child["id"]: child.get("state") for child in op.memory.values["children"]}
        assert (op.contract_digest, op.status) == (new, Status.WAITING)
        assert states == {"p1": "done", "p2": None}


# --- nothing is claimed after a stop ----------------------------------------------------------------------------------


@pytest.mark.rule("O7", "O1", "O2")
async def test_an_answer_that_is_decided_anew_after_a_stop_lets_nothing_that_is_due_out(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING, credential="key")
        async with one_out(h) as (controller, stop):
            await h.submit("job-2", RUNNING, credential="key")
            await h.core.actions.open_question("op-job-1", OPERATOR)
            h.clock.jump(11 * SECOND)
            stop.set()
            await asyncio.sleep(0.05)
        one, two = await h.op("op-job-1"), await h.op("op-job-2")
        assert [seen.job for seen in h.bank.status_seen] == ["job-1"]
        assert (one.completed_polls, one.status_requests_used, one.lease_owner) == (1, 1, None)
        assert (two.completed_polls, two.status_requests_used, two.lease_owner) == (0, 0, None)
        assert (controller.report.sent, controller.report.recorded) == (1, 1)


@pytest.mark.rule("O7", "O2")
async def test_what_was_being_prepared_when_the_stop_came_is_not_claimed(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING, credential="key")
        stop = asyncio.Event()
        with h.worker() as controller:
            real: Any = controller._due.make_ready

            async def slow(*given: Any) -> Any:
                made = await real(*given)
                if made:
                    stop.set()
                return made

            controller._due.make_ready = slow
            await asyncio.wait_for(controller.run(stop, watch=False), 20)
        assert stop.is_set()
        op = await h.op()
        assert (h.bank.status_seen, op.status_requests_used, op.lease_owner) == ([], 0, None)


@pytest.mark.rule("O7", "S9")
async def test_a_turn_of_the_end_looks_for_nothing_and_claims_nothing(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING, credential="key")
        turns: list[Turn] = []
        async with one_out(h) as (_, stop):
            store: Any = h.core.store
            real = store.turn

            async def turn(given: Turn) -> Any:
                turns.append(given)
                return await real(given)

            store.turn = turn
            await h.submit("job-2", RUNNING, credential="key")
            await h.core.actions.open_question("op-job-1", OPERATOR)
            h.clock.jump(11 * SECOND)
            stop.set()
            await asyncio.sleep(0.05)
            turns.clear()
        ends = [(len(each.writes), each.claims, each.look) for each in turns]
        assert ends == [(1, (), 0), (1, (), 0)]
