"""`provider impact`: stored answers decided again under a changed contract; nothing is sent, nothing is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pollcore.actions.impact import PAGE, Counts, Difference, differences
from pollcore.contract import parse
from pollcore.facts import ChoiceKind, Instant, SealedUnreadable, StopReason
from tests.controller.bank import DONE, LOST, RUNNING, refuses, says
from tests.controller.house import CONTRACT, House, house

BEGINNING = Instant(0)


def changed(h: House, *changes: tuple[str, str]) -> Any:
    text = CONTRACT.format(url=h.bank.url)
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return parse(text, "acme.toml")


async def impact(h: House, *changes: tuple[str, str], since: Instant = BEGINNING) -> tuple[list[Difference], Counts]:
    counts = Counts()
    made = changed(h, *changes)
    found = differences(h.core.store, h.core.snapshots, made, since, counts)
    return [one async for one in found], counts


PAUSED = ('waiting = ["queued", "running"]', 'waiting = ["queued"]')
COMPILES = ('waiting = ["queued", "running"]', 'waiting = ["queued", "running", "compiling"]')


@pytest.mark.rule("S8")
async def test_the_same_contract_changes_nothing_whatever_was_answered(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING, refuses(503), LOST, RUNNING, DONE)
        await h.submit("job-2", says("compiling"))
        await h.submit("job-3", says("failed"))
        await h.submit("job-4", refuses(429, {"Retry-After": "20"}), RUNNING, says("done"))
        await h.run()
        found, counts = await impact(h)
        assert found == []
        assert (counts.operations, counts.answers, counts.faults, counts.unreadable) == (4, 9, 1, 0)


@pytest.mark.rule("S8", "S2")
async def test_a_state_that_the_changed_contract_lists_differs_where_it_stopped(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING, says("compiling"))
        await h.submit("job-2", RUNNING, DONE)
        await h.run()
        found, counts = await impact(h, COMPILES)
        assert [(one.operation_id, one.n, one.was, one.would_be) for one in found] == [
            ("op-job-1", 2, "unknown_state", "wait")
        ]
        assert (found[0].was_state, found[0].rule, found[0].whole) == ("compiling", "states.waiting", True)
        assert (counts.differences, counts.operations_that_differ, counts.operations) == (1, 1, 2)


@pytest.mark.rule("S8")
async def test_an_earlier_end_is_told_once_with_the_requests_that_it_saves(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", says("queued"), RUNNING, RUNNING, DONE)
        await h.run()
        found, counts = await impact(h, PAUSED)
        (one,) = found
        assert (one.n, one.was, one.would_be, one.not_asked) == (2, "wait", "unknown_state", 2)
        assert counts.answers == 4


@pytest.mark.rule("S8", "S4")
async def test_a_guard_on_success_that_is_added_differs_at_the_end(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING, DONE)
        await h.run()
        stricter = ("[success]\n", '[[success.requires]]\npath = "body.rows"\n[success]\n')
        (one,), _ = await impact(h, stricter)
        assert (one.was, one.would_be) == ("succeed", "integration_failure")
        assert one.would_be_detail == "succeeded_without_result"


@pytest.mark.rule("S8", "E4")
async def test_what_an_operator_granted_beyond_a_stop_is_no_difference(tmp_path: Path) -> None:
    async with house(tmp_path, ("max_status_requests = 12", "max_status_requests = 2")) as h:
        await h.submit("job-1", RUNNING, RUNNING, RUNNING, DONE)
        await h.run()
        assert (await h.op()).stop_reason is StopReason.REQUEST_BUDGET_EXHAUSTED
        await h.choose(ChoiceKind.EXTEND)
        await h.run()
        found, counts = await impact(h)
        assert (found, counts.answers) == ([], 4)


@pytest.mark.rule("S8")
async def test_only_answers_since_then_are_told_and_other_contracts_are_left_out(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        h.write_contract(name="other")
        await h.submit("job-1", RUNNING, says("compiling"))
        await h.submit("job-1", says("compiling"), provider="other", operation_id="op-other")
        await h.run()
        h.clock.jump(3_600_000)
        later = h.clock.now().wall
        await h.submit("job-3", says("compiling"))
        await h.run()
        found, counts = await impact(h, COMPILES, since=later)
        assert [one.operation_id for one in found] == ["op-job-3"]
        assert (counts.operations, counts.answers) == (1, 1)
        found, counts = await impact(h, COMPILES)
        assert {one.operation_id for one in found} == {"op-job-1", "op-job-3"}
        assert counts.operations == 2


@pytest.mark.rule("S8")
async def test_pages_end_where_the_store_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pollcore.actions import impact as module

    monkeypatch.setattr(module, "PAGE", 2)
    assert PAGE == 100
    async with house(tmp_path) as h:
        for n in range(5):
            await h.submit(f"job-{n}", RUNNING, RUNNING, says("compiling"))
        await h.run()
        found, counts = await impact(h, COMPILES)
        assert sorted(one.operation_id for one in found) == [f"op-job-{n}" for n in range(5)]
        assert (counts.operations, counts.answers) == (5, 15)


@pytest.mark.rule("S8", "K4")
async def test_nothing_is_sent_or_written_and_a_key_that_is_not_at_hand_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING, says("compiling"))
        await h.run()
        before, sent = await h.core.store.change(), len(h.bank.requests)
        await impact(h, COMPILES)
        assert (await h.core.store.change(), len(h.bank.requests)) == (before, sent)

        def shut(*_: Any) -> bytes:
            raise SealedUnreadable("the reading key is not at hand")

        monkeypatch.setattr(h.core._sealer, "open", shut)
        with pytest.raises(SealedUnreadable):
            await impact(h, COMPILES)


@pytest.mark.rule("S8")
async def test_a_large_answer_is_read_as_far_as_it_was_kept_and_says_so(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", says("compiling", filler="x" * 4_000))
        await h.run()
        (one,), _ = await impact(h, COMPILES)
        assert (one.would_be, one.whole) == ("wait", False)
