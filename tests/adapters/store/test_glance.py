"""The first look at a store: what stands on top, from a process of its own, without a word about trouble."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.console.seed import fill_core, many, seeded, stopped, write_config

from pollcore.adapters.keyring_store import MemoryBackend
from pollcore.adapters.store.glance import MAX_FIRST, glance
from pollcore.assembly import open_core
from pollcore.facts import StopReason

AHEAD = """
import os, sys, threading, time
from pathlib import Path
from pollcore.adapters.store.ahead import Ahead
found = Ahead(Path(sys.argv[1])).take()
print(None if found is None else (len(found[0]), len(found[1])))
try:
    os.waitpid(-1, os.WNOHANG)
    print("a child is left")
except ChildProcessError:
    pass
held = threading.Event()
threading.Thread(target=held.wait, daemon=True).start()
try:
    Ahead(Path(sys.argv[1]))
    print("forked with a thread")
except OSError:
    print("refused")
"""


async def filled(home: Path) -> Any:
    write_config(home)
    async with open_core(home, kind="cli", backend=MemoryBackend()) as core:
        now = core.clock.now()
        rows = [*seeded(now), *many(2 * MAX_FIRST, now), stopped(0x700, StopReason.RATE_LIMITED, now=now)]
        await fill_core(core, rows)
        return await core.store.questions()


def ahead(path: Path) -> list[str]:
    run = subprocess.run([sys.executable, "-c", AHEAD, str(path)], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    return run.stdout.split("\n")[:-1]


@pytest.mark.slow
@pytest.mark.rule("V1", "V4")
async def test_what_is_asked_and_what_ends_first_stand_in_the_first_look(tmp_path: Path) -> None:
    questions = await filled(tmp_path / "home")
    found = glance(tmp_path / "home/pollconsole.db")
    assert found is not None
    operations, asked = found
    ids = {operation.operation_id for operation in operations}
    assert {question.escalation_id for question in asked} == {question.escalation_id for question in questions}
    assert {question.operation_id for question in questions} <= ids
    assert "op-00000003" in ids  # about to run out of time
    assert MAX_FIRST <= len(operations) <= 2 * MAX_FIRST


@pytest.mark.rule("O6")
def test_no_store_and_another_programs_file_give_nothing_and_are_left_as_they_are(tmp_path: Path) -> None:
    missing, foreign = tmp_path / "none.db", tmp_path / "other.db"
    foreign.write_bytes(b"SQLite format 3\\x00 but not really" * 40)
    before = foreign.read_bytes()
    assert glance(missing) is None
    assert glance(foreign) is None
    assert not missing.exists()
    assert foreign.read_bytes() == before


@pytest.mark.slow
@pytest.mark.rule("V3")
async def test_a_process_of_its_own_looks_ends_and_is_forked_only_before_there_are_threads(tmp_path: Path) -> None:
    await filled(tmp_path / "home")
    assert ahead(tmp_path / "none.db") == ["None", "refused"]
    counts, last = ahead(tmp_path / "home/pollconsole.db")
    assert counts.startswith("(")
    assert last == "refused"
