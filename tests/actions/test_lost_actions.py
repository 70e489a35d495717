"""An action whose process died between its grant and its answer is unknown, on record, and told (O5)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pollconsole import rows
from pollconsole.bridge.archive import archive
from pollconsole.cli import present
from pollconsole.draw import plain
from pollconsole.screens.detail_lines import fact_lines
from pollcore import story
from pollcore.facts import (
    DAY,
    HOUR,
    ActionKind,
    ActionOutcome,
    ActionRecord,
    ChoiceKind,
    EventName,
    Refused,
    Status,
    lost_words,
)
from pollcore.ports import Write
from pollcore.views import operation_view
from tests.controller.bank import DONE, RUNNING, refuses, says
from tests.controller.house import House, house, until

WORDS = "a granted cancel: outcome unknown, it may not have left"


class Killed(BaseException):
    """Stands for a process that ends in the middle of a request."""


@contextlib.contextmanager
def killed_while_sending(h: House) -> Iterator[None]:
    """The process of what happens inside ends while its request is out."""
    transport: Any = h.core.transport
    send = transport.send

    async def dies(*_: Any) -> Any:
        raise Killed

    transport.send = dies
    with pytest.raises(Killed):
        yield
    transport.send = send


async def dead_cancel(h: House, *answers: dict[str, Any]) -> ActionRecord:
    """`op-job-1` stopped, a cancel was granted, and its process ended while its request was out."""
    await h.submit("job-1", says("strange"), *answers)
    await h.run()
    with killed_while_sending(h):
        await h.choose(ChoiceKind.CANCEL_AT_PROVIDER)
    return await the_action(h)


async def the_action(h: House) -> ActionRecord:
    (found,) = await h.core.store.actions("op-job-1")
    return found


@pytest.mark.rule("O5", "A5", "E5")
async def test_a_cancel_whose_process_died_becomes_unknown_at_the_next_start_and_is_told_everywhere(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as h:
        assert (await dead_cancel(h, RUNNING)).outcome is ActionOutcome.INTENDED
        async with h.open() as later:
            await h.run(1_000, later)
        action = await the_action(h)
        assert (action.outcome, action.answered_at, action.http_code) == (ActionOutcome.UNKNOWN, None, None)
        (event,) = await h.events(EventName.ACTION_LOST)
        assert (event.operation_id, event.decision, event.detail) == ("op-job-1", "unknown", "cancel")
        assert WORDS in story.line(event)
        op, now = await h.op(), h.clock.now()
        assert rows.note_span(op, now, asked=False)[0] == WORDS
        assert any(WORDS in plain(line) for line in fact_lines(op, now, asked=False))
        assert operation_view(op)["unknown_actions"] == ["cancel"]
        assert WORDS in present.operation(operation_view(op))
        assert present.lost_notes([op]) == [f"op-job-1: {WORDS}"]


@pytest.mark.rule("O5")
async def test_an_unknown_action_is_told_once_and_never_repeated_by_itself(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await dead_cancel(h, RUNNING)
        await h.run()
        assert await h.core.actions.settle_lost() == 0
        assert len(await h.events(EventName.ACTION_LOST)) == 1
        assert h.bank.cancels == 0
        assert (await h.op()).status is Status.ESCALATED


@pytest.mark.rule("O5")
async def test_an_action_that_is_being_carried_out_is_left_alone_however_long_it_takes(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", says("strange"), RUNNING, says("cancelled"))
        await h.run()
        h.bank.cancel_answer = refuses(202)
        transport: Any = h.core.transport
        send, out, answer = transport.send, asyncio.Event(), asyncio.Event()

        async def slow(*args: Any) -> Any:
            out.set()
            await answer.wait()
            return await send(*args)

        transport.send = slow
        async with h.open() as other:
            granting = asyncio.create_task(h.choose(ChoiceKind.CANCEL_AT_PROVIDER))
            await until(out.is_set, "the cancel is out")
            h.clock.jump(3 * HOUR)
            assert await other.actions.settle_lost() == 0
            assert (await the_action(h)).outcome is ActionOutcome.INTENDED
            answer.set()
            await granting
            assert await other.actions.settle_lost() == 0
        transport.send = send
        assert (await the_action(h)).outcome is ActionOutcome.DONE
        assert await h.events(EventName.ACTION_LOST) == []
        assert (await h.op()).memory.unknown_actions == ()


HOLDER = """
import sys
from pathlib import Path
from pollcore.adapters.worker_lock import WorkerLock
lock = WorkerLock(Path(sys.argv[1]), sys.argv[2])
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.rule("O5", "O2")
async def test_another_process_is_known_to_live_until_it_is_killed(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        action = await dead_cancel(h, RUNNING)
        holder = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(h.core.home.workers), action.action_id],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            assert await h.core.actions.settle_lost() == 0
            os.kill(holder.pid, signal.SIGSTOP)
            assert await h.core.actions.settle_lost() == 0, "a stopped process is not a dead one"
        finally:
            holder.kill()
            holder.communicate()
        assert await h.core.actions.settle_lost() == 1


@pytest.mark.rule("O5")
async def test_a_late_answer_still_tells_what_became_of_an_unknown_action(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        action = await dead_cancel(h, RUNNING)
        await h.core.actions.settle_lost()
        op = await h.op()
        done = msgspec.structs.replace(action, outcome=ActionOutcome.DONE, http_code=202)
        write = Write(after=op, fence_change=op.change, release_lease=False, action=done)
        await h.core.store.commit(h.clock.now(), (write,))
        assert (await the_action(h)).outcome is ActionOutcome.DONE
        again = msgspec.structs.replace(done, outcome=ActionOutcome.REFUSED)
        op = await h.op()
        write = Write(after=op, fence_change=op.change, release_lease=False, action=again)
        await h.core.store.commit(h.clock.now(), (write,))
        assert (await the_action(h)).outcome is ActionOutcome.DONE, "a settled outcome stays"


@pytest.mark.rule("O5", "E5")
async def test_a_cancel_that_is_granted_again_and_answered_takes_the_remark_away(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        h.bank.cancel_answer = refuses(202)
        await dead_cancel(h, RUNNING)
        await h.run()
        assert (await h.op()).memory.unknown_actions == ("cancel",)
        await h.choose(ChoiceKind.CANCEL_AT_PROVIDER)
        assert (await h.op()).memory.unknown_actions == ()
        assert h.bank.cancels == 1


@pytest.mark.rule("O5", "E5")
async def test_a_cancel_that_is_granted_again_and_stays_unknown_leaves_the_remark(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        h.bank.cancel_answer = refuses(503)
        await dead_cancel(h, RUNNING)
        await h.run()
        await h.choose(ChoiceKind.CANCEL_AT_PROVIDER)
        assert [one.outcome for one in await h.core.store.actions("op-job-1")] == [ActionOutcome.UNKNOWN] * 2
        assert (await h.op()).memory.unknown_actions == ("cancel",)


@pytest.mark.rule("O5", "S7")
async def test_an_action_of_a_dead_process_keeps_its_operation_out_of_no_archive(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await dead_cancel(h, DONE)
        h.clock.jump(60_000)
        await h.run()
        assert (await h.op()).status is Status.SUCCEEDED
        h.clock.jump(2 * DAY)
        made = await archive(h.core, h.clock.now().wall - HOUR, None, dry_run=True, operator="me")
        assert made["operations"] == 1


@pytest.mark.rule("O5")
async def test_a_fetch_whose_process_died_is_unknown_and_is_not_done_again(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", DONE)
        await h.run()
        with killed_while_sending(h):
            await h.core.actions.fetch("op-job-1", tmp_path / "out", "me")
        assert await h.core.actions.settle_lost() == 1
        action = await the_action(h)
        assert (action.kind, action.outcome) == (ActionKind.FETCH_RESULT, ActionOutcome.UNKNOWN)
        with pytest.raises(Refused, match="outcome unknown"):
            await h.core.actions.fetch("op-job-1", tmp_path / "out", "me")
        assert present.lost_notes([await h.op()]) == [f"op-job-1: {lost_words('fetch_result')}"]
