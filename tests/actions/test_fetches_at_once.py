"""Several fetches of one approval at once: one request, and no question that could only be denied."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pollcore.actions import perform
from pollcore.facts import ChoiceKind, Refused, Stale, Status
from tests.controller.bank import DONE
from tests.controller.house import House, house

PER_CALL = ('kind = "bearer"', 'kind = "bearer"\nleast_mode = "per_call"')


async def approved(h: House) -> None:
    """A success whose fetch an operator approved."""
    await h.submit("job-1", DONE, credential="key")
    await h.run()
    await h.choose(ChoiceKind.APPROVE_ONCE)
    await h.run()
    with pytest.raises(Refused, match="operator approves"):
        await h.core.actions.fetch("op-job-1", h.home / "asks", "agent")
    await h.choose(ChoiceKind.APPROVE_ONCE)
    assert (await h.op()).status is Status.SUCCEEDED


@pytest.mark.rule("O5", "G6")
async def test_a_leave_that_is_used_between_two_looks_opens_no_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house(tmp_path, PER_CALL) as h, h.open() as other:
        await approved(h)
        approval = other.store.approval

        async def late(operation_id: str) -> Any:
            monkeypatch.undo()
            await h.core.actions.fetch("op-job-1", tmp_path / "first", "agent")
            return await approval(operation_id)

        monkeypatch.setattr(other.store, "approval", late)
        with pytest.raises(Refused) as told:
            await other.actions.fetch("op-job-1", tmp_path / "second", "agent")
        assert told.value.code == "already_fetched"
        assert await h.core.store.questions("op-job-1") == ()
        assert (h.bank.fetches, (tmp_path / "second").exists()) == (1, False)


@pytest.mark.rule("O5", "G6")
async def test_a_fetch_beside_one_that_is_under_way_is_refused_without_a_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house(tmp_path, PER_CALL) as h, h.open() as other:
        await approved(h)
        send, codes = perform.send, []

        async def sending(*given: Any) -> Any:
            with pytest.raises(Refused) as told:
                await other.actions.fetch("op-job-1", tmp_path / "second", "agent")
            codes.append((told.value.code, await h.core.store.questions("op-job-1")))
            return await send(*given)

        monkeypatch.setattr(perform, "send", sending)
        await h.core.actions.fetch("op-job-1", tmp_path / "first", "agent")
        assert codes == [("already_fetched", ())]
        assert h.bank.fetches == 1


@pytest.mark.rule("O5", "G6")
async def test_eight_fetches_at_once_send_one_request_and_leave_no_question(tmp_path: Path) -> None:
    async with house(tmp_path, PER_CALL) as h, h.open() as other:
        await approved(h)
        jobs = [
            core.actions.fetch("op-job-1", tmp_path / f"out-{name}-{n}", "agent")
            for n in range(4)
            for name, core in (("a", h.core), ("b", other))
        ]
        done = await asyncio.gather(*jobs, return_exceptions=True)
        lost = [one for one in done if isinstance(one, BaseException)]
        assert len(lost) == 7
        assert all(isinstance(one, Refused | Stale) for one in lost)
        assert await h.core.store.questions("op-job-1") == ()
        assert (h.bank.fetches, len(list(tmp_path.glob("out-*")))) == (1, 1)
