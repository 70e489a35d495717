"""A copy of a home that is evidence: whoever may only read it reads all of it, and exports its log."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.console.cli.test_process import LIMIT_S, environment
from tests.console.cli.test_read_only import PROGRAM, READING, Call


@pytest.fixture
def home(real_home: Path, call: Call) -> Path:
    """A real home with one operation."""
    submit = ("submit", "--home", str(real_home), "--provider", "lab", "--job-id", "j", "--id", "op-a")
    assert call(*submit).code == 0
    return real_home


def read_alone(command: str, home: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """*command* by a user who may read *home* and write nothing in it; root gives up what lets it write everywhere."""
    for path in (home, *home.rglob("*")):
        path.chmod(0o500 if path.is_dir() else 0o400)
    drop = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"] if os.geteuid() == 0 else []
    done = subprocess.run(
        [*drop, "sh", "-c", f'{PROGRAM} {command} --home "$H"'], capture_output=True, text=True, timeout=2 * LIMIT_S,
        env=environment(H=str(home), **more), check=False,
    )  # fmt: skip
    for path in (home, *home.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return done


drops = pytest.mark.skipif(
    os.geteuid() == 0 and shutil.which("setpriv") is None,
    reason="root writes everywhere, and cannot be kept from it here",
)
EVIDENCE = (
    *READING, "audit verify", "audit verify --with-key", "audit limits", "report", "report op-a", "handover",
    "credential list", "notice list", "--plain --once", "provider show lab",
)  # fmt: skip


@drops
@pytest.mark.rule("O6")
@pytest.mark.parametrize("command", EVIDENCE)
def test_a_home_that_its_modes_make_read_only_can_be_read(home: Path, command: str) -> None:
    done = read_alone(command, home)
    assert done.returncode == 0, done.stderr
    assert done.stdout or "no " in done.stderr
    assert "the next start sets" not in done.stdout


@drops
@pytest.mark.rule("A4")
def test_a_copy_that_is_evidence_is_exported_with_the_checkpoint_that_it_holds(
    home: Path, tmp_path: Path, call: Call
) -> None:
    target = tmp_path / "evidence.jsonl"
    done = read_alone(f"audit export {target} --json", home)
    made = json.loads(done.stdout)
    assert (done.returncode, made["signed"], made["signed_to"]) == (0, True, made["last_link"])
    assert (
        "no new checkpoint was made; the last stored one signs all of it"
        in read_alone(f"audit export {tmp_path / 'again.jsonl'}", home).stderr
    )
    assert call("audit", "verify", str(target), "--key", made["key"]).code == 0


@drops
@pytest.mark.rule("A4")
def test_an_export_of_a_copy_says_up_to_where_it_is_signed(home: Path, tmp_path: Path, call: Call) -> None:
    leave_unsigned(home)
    target = tmp_path / "evidence.jsonl"
    done = read_alone(f"audit export {target}", home)
    assert done.returncode == 0, done.stderr
    assert re.search(r"the last stored checkpoint signs links up to \d+; those up to \d+ are under none: ", done.stderr)
    assert "it cannot be written" in done.stderr
    assert call("audit", "verify", str(target)).code == 25
    # where it can be written, the same command signs to the end
    again = call("audit", "export", str(tmp_path / "signed.jsonl"), "--home", str(home), "--json").json
    assert (again["signed"], again["why"]) == (True, None)


def leave_unsigned(home: Path) -> None:
    """Have a core write links to *home* and end before its last checkpoint, as one that is killed."""
    script = """
import asyncio, sys
from pathlib import Path
from pollcore.assembly import open_core
from pollcore.assembly.audit_side import AuditSide
from pollcore.facts import AuditEvent, EventName

async def nothing(_):
    pass

async def main():
    AuditSide.end = nothing
    async with open_core(Path(sys.argv[1])) as core:
        await core.prepare()
        now = core.clock.now()
        await core.store.record(now, (AuditEvent(at=now.wall, event=EventName.PAUSED, text="lab"),))

asyncio.run(main())
"""
    subprocess.run([sys.executable, "-c", script, str(home)], check=True, timeout=LIMIT_S, env=environment())


@drops
@pytest.mark.rule("O6")
def test_an_empty_wal_hinders_no_reading(home: Path) -> None:
    subprocess.run(["touch", str(home / "pollconsole.db-wal")], check=True, timeout=LIMIT_S)
    assert "op-a" in read_alone("list", home).stdout


def as_reader(command: str, home: Path) -> subprocess.CompletedProcess[str]:
    reader = [
        "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps", "+dac_read_search",
        "--ambient-caps", "+dac_read_search", "--bounding-set", "-all,+dac_read_search",
    ]  # fmt: skip
    return subprocess.run(
        [*reader, "sh", "-c", f'{PROGRAM} {command} --home "$H"'], capture_output=True, text=True,
        timeout=2 * LIMIT_S, env=environment(H=str(home)), check=False,
    )  # fmt: skip


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None, reason="only root can make a home of another user"
)
@pytest.mark.rule("O6", "A4")
def test_another_users_home_is_read_where_it_cannot_be_written_and_refused_where_it_can(
    home: Path, tmp_path: Path, call: Call
) -> None:
    seen = as_reader("list", home)
    assert (seen.returncode, "op-a" in seen.stdout) == (0, True), seen.stderr
    out = tmp_path / "out"
    out.mkdir()
    out.chmod(0o777)
    assert as_reader(f"audit export {out / 'e.jsonl'}", home).returncode == 0
    told = as_reader("doctor", home).stdout
    assert "another user" not in told
    assert "it is only read" in told
    os.chown(home, 65534, 65534)  # root, who asks now, may write to it
    refused = call("list", "--home", str(home))
    assert refused.code == 1
    assert "or, to read it alone, a copy that you cannot write to" in refused.err
