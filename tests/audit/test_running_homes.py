"""A home whose core is at work while it is looked at: nothing that an honest core writes in between is an edit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pollconsole.bridge import reports
from pollconsole.bridge.proof import compare_story
from pollcore.adapters import audit_read
from pollcore.adapters.audit_epochs import rotate
from pollcore.adapters.store import connecting
from pollcore.adapters.store import contrary as rows
from pollcore.facts import DAY, ChoiceKind
from tests.audit.test_archive import archive
from tests.audit.test_edited_rows import SHORT, edited, found
from tests.controller.bank import DONE, RUNNING, says
from tests.controller.house import LIMIT_S, House, house


class Once:
    """Does something the first time only."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work
        self.done = False

    async def __call__(self) -> None:
        if not self.done:
            self.done = True
            await self._work()


async def stopped(h: House) -> None:
    """One operation that has spent its budget and asks."""
    await h.submit("job-1", RUNNING, RUNNING, RUNNING, DONE)
    await h.run()


@pytest.mark.rule("A5", "E7")
async def test_a_poll_between_record_and_events_is_no_contradiction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house(tmp_path, SHORT) as h:
        await h.submit("job-1", RUNNING, RUNNING, RUNNING, DONE)
        await h.submit("job-3", says("strange"), DONE)
        real, polls = vars(reports)["operations"], Once(h.run)

        async def slow(core: Any, **wanted: Any) -> Any:
            read = await real(core, **wanted)
            await polls()
            return read

        monkeypatch.setattr(reports, "operations", slow)
        assert await found(h.core) == ([], [])
        assert polls.done


@pytest.mark.rule("A5", "E7")
async def test_a_record_that_moves_at_every_look_is_not_accused_and_not_looked_at_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house(tmp_path, SHORT) as h:
        await stopped(h)
        real, looks = reports._events, 0

        async def moved(core: Any, operation_id: str, steps: Any) -> Any:
            nonlocal looks
            looks += 1
            await h.core.store._write(lambda s: s.conn.execute("UPDATE operation SET change=change+1"))
            return await real(core, operation_id, steps)

        with monkeypatch.context() as always:
            always.setattr(reports, "_events", moved)
            assert await reports.story(h.core, "op-job-1") is None
        assert looks == reports.MAX_LOOKS
        edited(h.home, "UPDATE operation SET max_status_requests=5000")
        told, _ = await found(h.core)
        assert any("allows 5000" in line for line in told), told


class Between:
    """A connection of the store; *work* is done after the first statement that reads events."""

    def __init__(self, conn: Any, work: Callable[[], Any]) -> None:
        self._conn, self._work = conn, work
        self.done = False
        self.outside: list[str] = []
        """Statements that saw another moment than the one before them."""

    @property
    def in_transaction(self) -> bool:
        return bool(self._conn.in_transaction)

    def execute(self, sql: str, *values: Any) -> Any:
        if not sql.startswith(("BEGIN", "COMMIT", "ROLLBACK")) and not self._conn.in_transaction:
            self.outside.append(sql)
        made = self._conn.execute(sql, *values)
        if "FROM event" not in sql or self.done:
            return made
        read, self.done = made.fetchall(), True
        self._work()
        made = self._conn.execute("SELECT 1 WHERE 0")

        class Read:
            def fetchall(self) -> Any:
                return read

        return Read()


@pytest.mark.rule("A5", "E7", "G4")
async def test_a_decision_while_the_store_looks_at_itself_is_told_by_its_event(tmp_path: Path) -> None:
    async with house(tmp_path, SHORT) as h:
        await stopped(h)
        loop = asyncio.get_running_loop()

        def decide() -> None:
            asyncio.run_coroutine_threadsafe(h.choose(ChoiceKind.EXTEND, "op-job-1"), loop).result(LIMIT_S)

        def look() -> tuple[list[str], Between]:
            with closing(connecting.connect(str(h.home / "pollconsole.db"), read_only=True)) as conn:
                between = Between(conn, decide)
                return rows.run(between), between

        told, between = await asyncio.to_thread(look)
        assert between.done
        assert (told, between.outside) == ([], [])
        assert await h.core.store.contrary() == []


@pytest.mark.rule("A5", "G4")
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_grant_given_while_the_chain_is_read_is_neither_forged_nor_gone(
    when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house(tmp_path, SHORT) as h:
        await stopped(h)
        real, give = audit_read.compare, Once(lambda: h.choose(ChoiceKind.EXTEND, "op-job-1"))

        async def slow(*values: Any) -> Any:
            if when == "before":
                await give()
            read = await real(*values)
            await give()
            return read

        monkeypatch.setattr(audit_read, "compare", slow)
        assert (await compare_story(h.core))["differing"] == []
        assert give.done


@pytest.mark.rule("A3", "A5")
async def test_an_event_written_behind_the_last_link_that_was_read_is_covered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house(tmp_path, SHORT) as h:
        await stopped(h)
        real, submits = h.core.store.audit_links, Once(lambda: h.submit("job-2", DONE))

        async def slow(after: int = 0, limit: int = 10_000) -> Any:
            links = await real(after, limit)
            if not links:
                await submits()
            return links

        monkeypatch.setattr(h.core.store, "audit_links", slow)
        assert (await compare_story(h.core))["differing"] == []
        assert submits.done
        edited(h.home, "INSERT INTO event(seq, at, event) SELECT max(seq) + 1, at, 'clock_step' FROM event")
        with_key = (await compare_story(h.core))["differing"]
        assert any("no link covers" in line for line in with_key), with_key


@pytest.mark.rule("A5", "G4", "S7")
async def test_an_archived_grant_of_a_clock_set_back_since_is_not_called_forged(tmp_path: Path) -> None:
    async with house(tmp_path, SHORT) as h:
        await stopped(h)
        await h.choose(ChoiceKind.EXTEND, "op-job-1")
        await h.run()
        h.clock.step(-3 * DAY)
        await rotate(h.core.audit, h.core.store, h.clock.now(), "test")
        await h.submit("job-2", RUNNING, RUNNING, RUNNING, DONE)
        await h.run()
        await h.choose(ChoiceKind.EXTEND, "op-job-2")
        h.clock.jump(20 * DAY)
        made = await archive(h)
        assert (made.operations, made.epochs) == (1, 1)
        assert (await compare_story(h.core))["differing"] == []
        # what the links that are left must hold is still told
        edited(
            h.home,
            "INSERT INTO \"grant\" SELECT 'grant-forged', g.operation, 'esc-x', g.version, g.granted_at, "
            "replace(body, grant_id, 'grant-forged') FROM \"grant\" g JOIN operation o ON o.op=g.operation "
            "WHERE o.id='op-job-2'",
        )
        with_key = (await compare_story(h.core))["differing"]
        assert with_key == ["grant grant-forged: no sealed record of it: it was never given"]
