"""What a success permits: the pointer, masked; a reveal, told; one fetch, never repeated by itself."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pollcore.actions import results
from pollcore.adapters.store import UNREADABLE
from pollcore.facts import (
    ActionKind,
    ActionOutcome,
    EventName,
    Fault,
    FaultKind,
    Instant,
    Refused,
    SealedUnreadable,
    Status,
)
from tests.controller.bank import DONE, LOST, RUNNING, refuses
from tests.controller.house import SECRET, House, house


async def succeeded(h: House, **spec: Any) -> None:
    await h.submit("job-1", DONE, **spec)
    await h.run()
    assert (await h.op()).status is Status.SUCCEEDED


async def outcomes(h: House) -> list[ActionOutcome]:
    return [one.outcome for one in await h.core.store.actions("op-job-1") if one.kind is ActionKind.FETCH_RESULT]


@pytest.mark.rule("K4", "S4")
async def test_a_result_is_masked_until_revealed_and_the_reveal_is_told(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await succeeded(h)
        shown = await h.core.actions.result("op-job-1", False, "agent")
        assert "SIGNED" not in str(shown)
        assert "files.example.test" in str(shown)
        assert (shown["permits"], shown["validated"]) == ("fetch_result", True)
        assert await h.events(EventName.RESULT_REVEALED) == []
        assert "sig=SIGNED" in str(await h.core.actions.result("op-job-1", True, "agent"))
        (told,) = await h.events(EventName.RESULT_REVEALED)
        assert told.caller == "agent"
        assert "SIGNED" not in str(told)


@pytest.mark.rule("S3", "S4")
async def test_only_a_success_has_a_result(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING)
        await h.run(11_000)
        for reveal in (False, True):
            with pytest.raises(Refused):
                await h.core.actions.result("op-job-1", reveal, "agent")
        with pytest.raises(Refused):
            await h.core.actions.fetch("op-job-1", tmp_path / "out", "agent")
        assert h.bank.fetches == 0


@pytest.mark.rule("O5", "S4", "B2")
async def test_a_result_is_fetched_once_to_a_private_file_and_counts_as_no_status_request(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await succeeded(h, credential="key")
        before, to = await h.op(), tmp_path / "out"
        done = await h.core.actions.fetch("op-job-1", to, "agent")
        assert (done.outcome, to.read_text()) == (ActionOutcome.DONE, "the result")
        assert stat.S_IMODE(to.stat().st_mode) == 0o600
        after = await h.op()
        assert (after.status_requests_used, after.status) == (before.status_requests_used, before.status)
        assert h.bank.requests[-1].secret == f"Bearer {SECRET}"
        with pytest.raises(Refused, match="already fetched"):
            await h.core.actions.fetch("op-job-1", tmp_path / "again", "agent")
        assert (h.bank.fetches, (tmp_path / "again").exists()) == (1, False)
        assert len(await h.events(EventName.RESULT_FETCHED)) == 1


@pytest.mark.rule("O5")
async def test_two_fetches_at_the_same_moment_send_one_request(tmp_path: Path) -> None:
    async with house(tmp_path) as h, h.open() as other:
        await succeeded(h)
        both = await asyncio.gather(
            h.core.actions.fetch("op-job-1", tmp_path / "a", "agent"),
            other.actions.fetch("op-job-1", tmp_path / "b", "agent"),
            return_exceptions=True,
        )
        assert sum(isinstance(one, BaseException) for one in both) == 1
        assert h.bank.fetches == 1


@pytest.mark.rule("O5")
async def test_a_fetch_whose_answer_was_lost_is_unknown_and_not_repeated(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await succeeded(h)
        h.bank.file = LOST
        done = await h.core.actions.fetch("op-job-1", tmp_path / "out", "agent")
        assert done.outcome is ActionOutcome.UNKNOWN
        assert not (tmp_path / "out").exists()
        with pytest.raises(Refused, match="unknown"):
            await h.core.actions.fetch("op-job-1", tmp_path / "out", "agent")
        assert h.bank.fetches == 1


@pytest.mark.rule("O5")
async def test_a_refused_fetch_may_be_asked_for_again(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await succeeded(h)
        h.bank.file = refuses(404)
        assert (await h.core.actions.fetch("op-job-1", tmp_path / "out", "agent")).outcome is ActionOutcome.REFUSED
        h.bank.file = {"status": 200, "headers": {}, "body": "now"}
        assert (await h.core.actions.fetch("op-job-1", tmp_path / "out", "agent")).outcome is ActionOutcome.DONE
        assert (tmp_path / "out").read_text() == "now"


@pytest.mark.rule("O5")
async def test_an_existing_file_is_never_overwritten_and_nothing_is_sent(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await succeeded(h)
        to = tmp_path / "out"
        to.write_text("mine")
        with pytest.raises(Refused, match="exists"):
            await h.core.actions.fetch("op-job-1", to, "agent")
        assert (to.read_text(), h.bank.fetches, await outcomes(h)) == ("mine", 0, [])


@pytest.mark.rule("O5")
async def test_a_place_that_cannot_be_written_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await succeeded(h)
        (tmp_path / "link").symlink_to(tmp_path / "nowhere")
        for place in ("no/such/folder", "link"):
            with pytest.raises(Refused):
                await h.core.actions.fetch("op-job-1", tmp_path / place, "agent")
        assert (h.bank.fetches, await outcomes(h)) == (0, [])
        done = await h.core.actions.fetch("op-job-1", tmp_path / "out", "agent")
        assert done.outcome is ActionOutcome.DONE


@pytest.mark.rule("K2", "O5")
async def test_a_fetch_without_a_readable_credential_sends_nothing_and_may_be_asked_for_again(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await succeeded(h, credential="key")
        h.clock.jump(120_000)
        h.keyring.locked = True
        with pytest.raises(Refused):
            await h.core.actions.fetch("op-job-1", tmp_path / "out", "agent")
        assert (h.bank.fetches, await outcomes(h)) == (0, [])
        h.keyring.locked = False
        assert (await h.core.actions.fetch("op-job-1", tmp_path / "out", "agent")).outcome is ActionOutcome.DONE


def test_the_mark_of_a_sealed_result_is_the_stores_own() -> None:
    assert results.SEALED == UNREADABLE


@pytest.mark.rule("S4", "A4")
async def test_a_result_that_cannot_be_opened_is_no_value_and_nothing_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house(tmp_path) as h:
        await succeeded(h)
        found = await h.op()
        assert found.result is not None
        sealed = msgspec.structs.replace(found, result=msgspec.structs.replace(found.result, fields={UNREADABLE: True}))

        async def operation(_id: str) -> Any:
            return sealed

        monkeypatch.setattr(h.core.store, "operation", operation)
        for reveal in (False, True):
            with pytest.raises(SealedUnreadable, match="reading key"):
                await h.core.actions.result("op-job-1", reveal, "agent")
        with pytest.raises(SealedUnreadable, match="reading key"):
            await h.core.actions.fetch("op-job-1", tmp_path / "out", "agent")
        assert (h.bank.fetches, (tmp_path / "out").exists(), await outcomes(h)) == (0, False, [])
        assert await h.events(EventName.RESULT_REVEALED) == []


@pytest.mark.rule("O5", "H7")
def test_a_result_over_the_limits_names_the_limit_and_the_way_out() -> None:
    fault = Fault(FaultKind.TOO_LARGE, True, Instant(0), "the body is larger than 7 bytes on the wire")
    outcome, detail = results._kept(-1, fault)
    assert outcome is ActionOutcome.UNKNOWN
    assert "the body is larger than 7 bytes on the wire" in detail
    assert "pollconsole result OP --reveal" in detail
