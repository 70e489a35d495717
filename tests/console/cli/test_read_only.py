"""A home that is not there, cannot be written, or lies on a full disk: what is said, and that nothing is made."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.console.cli.conftest import Outcome
from tests.console.cli.test_process import LIMIT_S, environment

from pollconsole import bridge

Call = Callable[..., Outcome]
PROGRAM = f"{sys.executable} -m pollconsole"
READING = ("list", "show op-a", "audit show op-a", "provider list", "escalations", "doctor")


def own_mounts() -> bool:
    """Whether this user may mount file systems in a namespace of its own."""
    try:
        done = subprocess.run(["unshare", "-rm", "true"], capture_output=True, timeout=LIMIT_S, check=False)
    except OSError:
        return False
    return done.returncode == 0


mounts = pytest.mark.skipif(not own_mounts(), reason="no mount namespace of one's own here")


def mounted(script: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, timeout=2 * LIMIT_S,
        env=environment(PC=PROGRAM, **more), check=False,
    )  # fmt: skip


@pytest.fixture
def home(real_home: Path, call: Call) -> Path:
    """A real home with one operation."""
    submit = ("submit", "--home", str(real_home), "--provider", "lab", "--job-id", "j", "--id", "op-a")
    assert call(*submit).code == 0
    return real_home


@mounts
@pytest.mark.rule("O6")
@pytest.mark.parametrize("command", READING)
def test_a_home_on_a_file_system_mounted_read_only_can_be_read_and_it_is_said(home: Path, command: str) -> None:
    mount = 'mount --bind "$H" "$H" && mount -o remount,ro,bind "$H" "$H" && '
    done = mounted(f'{mount} $PC {command} --home "$H"', H=str(home))
    assert done.returncode == 0, done.stderr
    assert done.stdout or "no open questions" in done.stderr
    told = done.stdout if command == "doctor" else done.stderr
    assert "it is only read" in told or command == "provider list"


@mounts
@pytest.mark.rule("O6")
def test_what_another_process_left_in_the_wal_is_read_from_a_read_only_home_too(home: Path) -> None:
    # the process ends without closing: the last commit is in the WAL alone
    leave = (
        f'{sys.executable} -c "import os,sys; from pollcore.adapters.store import opening; '
        "c = opening.open_writer(sys.argv[1]); c.execute(\\\"UPDATE operation SET last_known_state='in-the-wal'\\\"); "
        'os._exit(0)" "$H/pollconsole.db" && test -s "$H/pollconsole.db-wal" && '
    )
    mount = 'mount --bind "$H" "$H" && mount -o remount,ro,bind "$H" "$H" && '
    done = mounted(f'{leave}{mount} $PC list --home "$H"', H=str(home))
    assert "in-the-wal" in done.stdout, done.stderr


@mounts
@pytest.mark.rule("O6")
def test_a_wal_that_cannot_be_read_is_an_error_and_never_an_older_record(home: Path) -> None:
    leave = (
        f'{sys.executable} -c "import os,sys; from pollcore.adapters.store import opening; '
        "c = opening.open_writer(sys.argv[1]); c.execute(\\\"UPDATE operation SET last_known_state='in-the-wal'\\\"); "
        'os._exit(0)" "$H/pollconsole.db" && rm "$H/pollconsole.db-shm" && test -s "$H/pollconsole.db-wal" && '
    )
    mount = 'mount --bind "$H" "$H" && mount -o remount,ro,bind "$H" "$H" && '
    done = mounted(f'{leave}{mount} $PC list --home "$H"', H=str(home))
    assert "in-the-wal" in done.stdout or (done.returncode, done.stdout) == (1, "")
    assert "in-the-wal" in done.stdout or "it cannot be opened" in done.stderr


@mounts
@pytest.mark.rule("O6")
def test_a_read_only_home_takes_no_submission_and_says_the_way_out(home: Path) -> None:
    mount = 'mount --bind "$H" "$H" && mount -o remount,ro,bind "$H" "$H" && '
    done = mounted(f'{mount} $PC submit --provider lab --job-id k --home "$H"', H=str(home))
    assert done.returncode == 1
    assert "it cannot be written" in done.stderr
    assert "give this user the right" in done.stderr


@mounts
@pytest.mark.rule("O6")
def test_a_backup_onto_a_full_disk_says_so_and_leaves_no_half_copy(home: Path, tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    script = 'mount -t tmpfs -o size=64k t "$S" && $PC backup "$S/copy.db" --home "$H"; echo "$?"; ls "$S"'
    done = mounted(script, S=str(tmp_path / "small"), H=str(home))
    assert "the disk is full while making a backup" in done.stderr
    assert "our fault" not in done.stderr
    assert done.stdout == "1\n"


@mounts
@pytest.mark.rule("O6")
def test_doctor_says_that_a_disk_is_full_before_it_is_quite_full(home: Path, tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    script = 'mount -t tmpfs -o size=8m t "$S" && cp -a "$H" "$S/h" && $PC doctor --home "$S/h"; echo "$?"'
    done = mounted(script, S=str(tmp_path / "small"), H=str(home))
    assert "x store:" in done.stdout
    assert "the disk is full, nothing is sent while it is" in done.stdout
    assert done.stdout.endswith("\n1\n")


# --- a home that is not there -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        ["list"], ["show", "op"], ["wait", "op"], ["result", "op"], ["escalations"], ["report"], ["audit", "show"],
        ["close", "op", "--because", "x"], ["pause", "--provider", "p", "--until", "1h"], ["credential", "list"],
        ["provider", "list"], ["provider", "show", "p"],
    ],
)  # fmt: skip
def test_a_misspelt_home_is_refused_with_the_near_name_and_not_made(command: list[str], home: Path, call: Call) -> None:
    wrong = home.with_name("hone")
    done = call(*command, "--home", str(wrong), "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "no_home")
    assert f"no home at {wrong}; did you mean {home}?" in done.err
    assert not wrong.exists()


def test_doctor_names_the_near_home_and_makes_none(home: Path, call: Call) -> None:
    wrong = home.with_name("hone")
    done = call("doctor", "--home", str(wrong))
    assert f"{wrong} does not exist yet; did you mean {home}?" in done.out
    assert not wrong.exists()


def test_shipped_contracts_are_listed_before_there_is_any_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    monkeypatch.delenv("POLLCONSOLE_HOME", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "none"))
    assert "example-jobs" in call("provider", "list").out
    assert not (tmp_path / "none").exists()


def test_a_relative_home_in_a_deleted_folder_says_what_is_wrong(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        ["sh", "-c", f'cd "$D" && rmdir "$D" && {PROGRAM} list --home h'], capture_output=True, text=True,
        timeout=LIMIT_S, env=environment(D=str(gone)), check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "counts from the current folder, which does not exist any more" in done.stderr
    assert "--home" in done.stderr


def test_a_home_that_can_be_written_is_not_called_read_only(home: Path, call: Call) -> None:
    assert "only read" not in call("list", "--home", str(home)).err
    assert os.access(home, os.W_OK)


def test_reading_contracts_opens_no_store(real_home: Path, call: Call) -> None:
    for command in (["provider", "list"], ["provider", "show", "lab"]):
        assert call(*command, "--home", str(real_home)).code == 0
    assert not bridge.store_path(real_home).exists()
