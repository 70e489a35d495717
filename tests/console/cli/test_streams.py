"""Standard streams that are closed at the start: commands keep their exit codes, nothing crashes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.console.cli.conftest import Outcome
from tests.console.cli.test_process import LIMIT_S, environment

PROGRAM = f"{sys.executable} -m pollconsole"


def shell(script: str, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", script], capture_output=True, text=True, timeout=LIMIT_S, check=False,
        env=environment(PC=PROGRAM, H=str(home)),
    )  # fmt: skip


@pytest.fixture
def home(real_home: Path, call: Callable[..., Outcome]) -> Path:
    assert call("submit", "--home", str(real_home), "--provider", "lab", "--job-id", "j", "--id", "op-a").code == 0
    return real_home


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ('list --home "$H" >&-', 0),
        ('list --home "$H" >&- 2>&- <&-', 0),
        ("--version >&-", 0),
        ('wait op-a --timeout 0s --home "$H" >&-', 15),
        ('wait op-a --timeout 0s --json --home "$H" >&- 2>&-', 15),
        ('submit --provider lab --job-id k --id op-k --home "$H" >&-', 0),
        ('submit --file - --home "$H" <&-', 2),
        ('provider explain lab --response - --home "$H" <&-', 2),
        ('show nothing --home "$H" >&-', 2),
    ],
)
def test_a_closed_stream_changes_no_exit_code_and_is_no_crash(command: str, code: int, home: Path) -> None:
    done = shell(f"$PC {command}", home)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert not (home / "crashes").exists()


def test_a_submission_with_stdout_closed_is_stored(home: Path, call: Callable[..., Outcome]) -> None:
    assert shell('$PC submit --provider lab --job-id k --id op-k --home "$H" >&-', home).returncode == 0
    assert call("show", "op-k", "--home", str(home)).code == 0


def test_no_file_of_ours_gets_the_descriptor_of_a_closed_stream(tmp_path: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path; from pollconsole.__main__ import open_closed_streams; "
        "open_closed_streams(); null = os.stat(os.devnull); "
        "same = [os.path.samestat(os.fstat(n), null) for n in range(3)]; "
        "print('to nowhere'); print('nor there', file=sys.stderr); "
        "Path(os.environ['O']).write_text(repr((same, sys.stdin.read())))"
    )
    told = tmp_path / "told"
    done = subprocess.run(
        ["sh", "-c", f'{sys.executable} -c "$S" <&- >&- 2>&-'], timeout=LIMIT_S, check=False,
        env=environment(S=script, O=str(told)),
    )  # fmt: skip
    assert (done.returncode, told.read_text()) == (0, "([True, True, True], '')")
