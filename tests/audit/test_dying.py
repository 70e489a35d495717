"""kill -9 at every durable step of archiving, of new keys, of a forgotten key: nothing is lost, a second call ends."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pollcore.adapters.audit_read import compare
from pollcore.adapters.audit_safe import ANCHOR, FileSafe, anchor_of
from pollcore.adapters.audit_verify import Wanted, verify_store
from pollcore.assembly import open_core
from pollcore.chain.findings import Head, Report, Verdict
from tests.audit.dying_clock import LateClock
from tests.controller.bank import DONE, RUNNING
from tests.controller.house import house

ROOT = Path(__file__).parents[2]
LIMIT_S = 60
MAX_STEPS = 200


async def laid_out(folder: Path, *, rotated: bool) -> Path:
    """A home with two ended operations, its keys in a file; *rotated*: their epoch is over."""
    from pollcore.adapters.audit_epochs import rotate

    async with house(folder) as h:
        first = h.core
        h.home = folder / "with-a-key-file"
        h.write_contract()
        h.write_config('[audit]\nkey_file = "reading.key"\n')
        async with h.open() as core:
            h.core = core
            await h.submit("job-1", RUNNING, RUNNING, DONE)
            await h.submit("job-2", RUNNING, DONE)
            await h.run()
            if rotated:
                await rotate(core.audit, core.store, h.clock.now(), "test")
                await core.store.record(h.clock.now(), [(await h.events())[0]])
        h.core = first
    return h.home


def copied(model: Path, home: Path) -> Path:
    """A fresh copy of *model*; by another program, because this one must not open a store by hand."""
    shutil.rmtree(home, ignore_errors=True)
    subprocess.run(["cp", "-a", str(model), str(home)], check=True, timeout=LIMIT_S)
    return home


def call(home: Path, what: str, at: int) -> tuple[int, int]:
    """(exit code, steps)."""
    command = [sys.executable, "-m", "tests.audit.dying", str(home), what, str(at)]
    ended = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT}:{ROOT / 'core'}:{ROOT / 'console'}"},
    )  # fmt: skip
    assert ended.returncode in (0, -signal.SIGKILL), ended.stderr[-2_000:]
    return ended.returncode, int(ended.stdout or 0)


def proved(home: Path, *archives: Path) -> Report:
    known = anchor_of(FileSafe(home / "reading.key.audit").get(ANCHOR))
    assert known is not None
    head = Head(known.seq, known.hash, "the anchor", known.log_id)
    return verify_store(home / "pollconsole.db", Wanted(heads=[head], archives=archives))


async def figures(home: Path) -> tuple[int, int, list[str], bool]:
    """Charges in the store, operations with their counters, what does not add up, whether there is an alarm."""
    async with open_core(home, kind="run", clock=LateClock()) as core:
        used = [op.status_requests_used for op in [await core.store.operation(f"op-job-{n}") for n in (1, 2)] if op]
        charges = sum([len(await core.store.intents(f"op-job-{n}")) for n in (1, 2)])
        return charges, sum(used), list(await core.store.check()), core.audit.state.alarm


@pytest.mark.slow
@pytest.mark.rule("S7", "O6", "A4")
async def test_archiving_killed_at_any_step_loses_nothing_and_a_second_call_ends_it(tmp_path: Path) -> None:
    model = await laid_out(tmp_path / "model", rotated=True)
    before = proved(model)
    assert before.verdict is Verdict.INTACT
    seen = set()
    for at in range(1, MAX_STEPS):
        home = copied(model, tmp_path / "home")
        code, _ = call(home, "archive", at)
        if code == 0:
            break
        file = home / "archives" / "0001.jsonl"
        charges, used, wrong, alarm = await figures(home)
        assert (used, wrong, alarm) == (5, [], False), at
        if charges == 0:  # it was cut: the file holds all of it, and is named by the store
            report = proved(home, file)
            assert (report.verdict.exit_code in (0, 25), report.first) == (True, 1), (at, report.faults)
            assert sum('"charge"' in line for line in file.read_text().splitlines()) == 5
        else:
            assert charges == 5, at
            report = proved(home)
            assert (report.verdict.exit_code in (0, 25), report.first) == (True, 1), (at, report.faults)
        seen.add((charges, file.exists()))
        assert call(home, "archive", 0)[0] == 0
        charges, used, wrong, alarm = await figures(home)
        assert (charges, used, wrong, alarm) == (0, 5, [], False), at
        report = proved(home, file)
        assert (report.verdict, report.first, len(report.archives)) == (Verdict.INTACT, 1, 1), (at, report.faults)
        assert [path.name for path in (home / "archives").iterdir()] == ["0001.jsonl"], at
    else:
        raise AssertionError("it never ended")
    assert seen == {(5, False), (5, True), (0, True)}


@pytest.mark.slow
@pytest.mark.rule("A4")
async def test_new_keys_killed_at_any_step_leave_one_epoch_in_force_and_no_old_signing_key(tmp_path: Path) -> None:
    model = await laid_out(tmp_path / "model", rotated=False)
    epochs = set()
    for at in range(1, MAX_STEPS):
        home = copied(model, tmp_path / "home")
        code, _ = call(home, "rotate", at)
        if code == 0:
            break
        report = proved(home)
        assert report.verdict.exit_code in (0, 25), (at, report.faults)
        epochs.add(report.epoch)
        async with open_core(home, kind="run", clock=LateClock()) as core:
            state = core.audit.state
            assert (state.alarm, state.why, state.epoch) == (False, None, report.epoch), at
            found = await compare(core.store, core.audit.room)
            assert (found.unreadable, found.differing_count) == (0, 0), at
        kept = json.loads((home / "reading.key.audit").read_text())
        signing = [name for name in kept if name.startswith(f"audit-sign/{report.epoch}-")]
        assert len(signing) == 1 or report.epoch == 0, (at, signing)
        assert not [name for name in kept if report.epoch and name.startswith("audit-sign/0-")], at
        # and on it goes
        assert call(home, "rotate", 0)[0] == 0
        assert (proved(home).verdict, proved(home).epoch) == (Verdict.INTACT, report.epoch + 1), at
    else:
        raise AssertionError("it never ended")
    assert epochs == {0, 1}


@pytest.mark.slow
@pytest.mark.rule("A4")
async def test_a_key_forgotten_halfway_is_on_record_before_it_is_gone(tmp_path: Path) -> None:
    model = await laid_out(tmp_path / "model", rotated=True)
    for at in range(1, MAX_STEPS):
        home = copied(model, tmp_path / "home")
        code, _ = call(home, "forget", at)
        kept = json.loads((home / "reading.key.audit").read_text())
        gone = not [name for name in kept if name.startswith("audit-read/0-")]
        async with open_core(home, kind="run", clock=LateClock()) as core:
            told = [event for _, event in await core.store.events() if event.event.value == "audit_keys"]
            found = await compare(core.store, core.audit.room)
        assert told or not gone, at
        assert (found.unreadable > 0) is gone, at
        assert proved(home).verdict is Verdict.INTACT, at
        if code == 0:
            assert gone
            break
    else:
        raise AssertionError("it never ended")
