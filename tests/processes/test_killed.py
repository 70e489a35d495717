"""Real worker processes on one database, killed and stopped at random, against a provider that counts."""

from __future__ import annotations

import asyncio
import random
import signal
from pathlib import Path

import pytest

from pollcore.actions import SubmitSpec
from pollcore.adapters.store import library
from pollcore.adapters.store.schema import SCHEMA
from pollcore.assembly import open_core
from pollcore.facts import EventName, Status
from pollcore.ports import Filter
from tests.processes.herd import PROGRAM, Herd, Worker, hand_over, lay_out, shortened, specs, until
from tests.processes.provider import CountingProvider, script
from tests.processes.verdict import counted, settled, wrong
from tests.processes.worker import journal as choose_journal

WORKERS = 3
JOBS = 50
WAVE = 5
DEADLINE_S = 60
CHAOS_S = 9.0
STOP_S = 4.0
SETTLE_S = DEADLINE_S + 30 + 30
SHORT_LEASE_MS = 2_000


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.mark.slow
@pytest.mark.rule("B2", "B3", "O1", "O2", "O3", "O4", "O6", "S9")
@pytest.mark.parametrize("journal", ["WAL", "DELETE"])
async def test_killed_and_stopped_workers_never_send_more_than_the_budget_nor_uncounted(
    journal: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I1-I7, I9-I11, I24, I26. DELETE: through the switch that serves a SQLite with the WAL-reset bug."""
    chance = random.Random(f"killed-{journal}")
    monkeypatch.setattr(library, "has_wal_reset_bug", library.has_wal_reset_bug)
    choose_journal(journal)
    wanted = specs(chance, JOBS, deadline_s=DEADLINE_S)
    with CountingProvider({job: script(chance, 8) for job in wanted}) as provider:
        lay_out(home, provider.url)
        command = PROGRAM if journal == "WAL" else shortened(journal=journal)
        with Herd(home, tmp_path, WORKERS, command) as herd:
            herd.wait_ready()
            chaos = asyncio.to_thread(herd.chaos, chance, CHAOS_S, STOP_S)
            # jobs are handed over while the workers die, so that there is something in flight to the end
            await asyncio.gather(chaos, hand_over(home, wanted, WAVE, WAVE * CHAOS_S / JOBS))
            assert await settled(home, SETTLE_S)
            codes = herd.end()
        async with open_core(home, kind="cli") as core:
            assert (await core.store.health()).journal_mode.upper() == journal
        assert await wrong(home, provider.seen, wanted) == []
        assert await counted(home, EventName.ANSWER_LOST) >= 1
    assert set(codes) == {0}
    assert herd.kills >= 3
    assert herd.stops >= 3
    assert sum(provider.seen.values()) > JOBS


@pytest.mark.slow
@pytest.mark.rule("O2", "O3", "B4", "S9")
async def test_a_worker_stopped_beyond_its_lease_changes_nothing_when_it_wakes(home: Path, tmp_path: Path) -> None:
    """I7: its request stays counted as lost, the next owner ends the job, its own late answer is only told."""
    wanted = {"job-1": SubmitSpec(provider="lab", job_id="job-1", operation_id="op-1", max_status_requests=4)}
    with CountingProvider({"job-1": ["failed", "wait", "ok"]}) as provider:
        provider.hold_s["job-1"] = 0.4
        lay_out(home, provider.url)
        await hand_over(home, wanted)
        short = shortened(SHORT_LEASE_MS)
        with Herd(home, tmp_path, 1, short) as herd:
            sleeper = herd.workers[0]
            until(lambda: provider.seen["job-1"] == 1, "the first request is out")
            sleeper.send(signal.SIGSTOP)
            other = Worker(home, short, tmp_path / "other.log")
            herd.workers.append(other)
            assert await settled(home, 40)
            before = await record(home)
            sleeper.send(signal.SIGCONT)
            until(lambda: sleeper.is_ready(), "the sleeper is awake")
            assert await told(home, EventName.LATE_RESULT, 20)
            assert herd.end() == [0, 0]
        after = await record(home)
        assert before == after == (Status.SUCCEEDED, 3, 0)
        assert provider.seen["job-1"] == 3
        assert await counted(home, EventName.LATE_RESULT) == 1
        assert await wrong(home, provider.seen, {"job-1": full(wanted["job-1"])}) == []


def full(spec: SubmitSpec) -> SubmitSpec:
    """With the contract's defaults, against which limits are compared."""
    import msgspec

    return msgspec.structs.replace(spec, max_transport_failures=4, max_rate_limited=3)


async def record(home: Path) -> tuple[Status, int, int]:
    """(status, requests, failures) of op-1."""
    async with open_core(home, kind="cli") as core:
        o = await core.store.operation("op-1")
        assert o is not None
        return o.status, o.status_requests_used, o.transport_failures_used


async def told(home: Path, name: EventName, limit_s: float) -> bool:
    """Wait until an event of that name is there."""
    async with open_core(home, kind="cli") as core:
        seen = -1
        for _ in range(int(limit_s * 4)):
            if any(event.event is name for _, event in await core.store.events()):
                return True
            seen = await core.store.wait_for_change(seen, 0.25)
    return False


@pytest.mark.slow
@pytest.mark.rule("O1", "O2", "O4", "S9")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=lambda s: s.name)
async def test_a_signal_ends_a_worker_cleanly_and_no_request_is_left_unrecorded(
    number: signal.Signals, home: Path, tmp_path: Path
) -> None:
    wanted = specs(random.Random(7), 12, deadline_s=60)
    with CountingProvider(dict.fromkeys(wanted, ("slow", "ok"))) as provider:
        lay_out(home, provider.url)
        await hand_over(home, wanted)
        with Herd(home, tmp_path, 1) as herd:
            herd.wait_ready()
            until(lambda: len(provider.seen) >= 6, "requests are out")
            code = herd.workers[0].end(number)
            assert code == 0, herd.workers[0].said()
            said = herd.workers[0].said()
        assert "Traceback" not in said
        assert f"{number.name}: ending" in said
        async with open_core(home, kind="cli") as core:
            operations = await core.store.operations(Filter())
            for o in operations:
                assert o.status_requests_used == o.completed_polls == provider.seen[o.submitted.job_id]
                assert o.lease_owner is None
            lost = [e for _, e in await core.store.events() if e.event is EventName.ANSWER_LOST]
            assert lost == []
            assert list(await core.store.check()) == []


@pytest.mark.slow
@pytest.mark.rule("O4", "O6", "A4")
async def test_workers_started_at_the_same_moment_on_a_new_home_agree_on_one_key_and_one_schema(
    home: Path, tmp_path: Path
) -> None:
    with CountingProvider({"job-1": ["wait", "ok"]}) as provider:
        lay_out(home, provider.url)
        with Herd(home, tmp_path, 3) as herd:
            herd.wait_ready()
            made = [worker.said().count("made this home's reading key pair") for worker in herd.workers]
            assert sum(made) == 1, [w.said() for w in herd.workers]
            wanted = {"job-1": SubmitSpec(provider="lab", job_id="job-1", operation_id="op-1")}
            await hand_over(home, wanted)
            assert await settled(home, 40)
            assert herd.end() == [0, 0, 0]
        async with open_core(home, kind="cli") as core:
            assert list(await core.store.documents("public_key")) == ["reading"]
            # a record that another process sealed is read with the one key file
            assert await core.store.last_answer("op-1") is not None
            assert (await core.store.health()).schema == SCHEMA
            assert list(await core.store.check()) == []
        assert oct((home / "reading.key").stat().st_mode & 0o777) == "0o600"
