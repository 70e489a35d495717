"""The program as a process: what it imports, its exit codes, pipes, signals, environment."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

LIMIT_S = 60
PROGRAM = [sys.executable, "-m", "pollconsole"]
ROOT = Path(__file__).resolve().parents[3]
HEAVY = {"textual", "rich", "httpx", "httpcore", "keyring", "cryptography", "sqlite_utils", "platformdirs", "humanize"}


def environment(**more: str) -> dict[str, str]:
    paths = os.pathsep.join((str(ROOT / "core"), str(ROOT / "console")))
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TEXTUAL")}
    return {**inherited, "PYTHONPATH": paths, "TERM": "xterm", **more}


def run(*argv: str, stdin: bytes = b"", **more: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*PROGRAM, *argv], input=stdin, capture_output=True, timeout=LIMIT_S, env=environment(**more))


def imported(*argv: str) -> set[str]:
    """Top-level names of what a run imports."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "pollconsole", *argv],
        capture_output=True, text=True, timeout=LIMIT_S, env=environment(),
    )  # fmt: skip
    names = re.findall(r"^import time:\s+\d+ \|\s+\d+ \|\s+(\S+)", done.stderr, re.MULTILINE)
    assert "pollconsole" in names
    return {name.partition(".")[0] for name in names}


def test_the_version_needs_next_to_nothing() -> None:
    names = imported("--version")
    assert not names & (HEAVY | {"click", "msgspec", "asyncio", "json"})
    assert run("--version").stdout.decode().startswith("pollconsole ")


@pytest.mark.parametrize(
    "argv", [["--help"], ["submit", "--help"], ["show", "--help"], ["audit", "limits"], ["submit"]]
)
def test_help_and_refusals_import_neither_screen_nor_network(argv: list[str]) -> None:
    assert imported(*argv) & HEAVY == set()


@pytest.mark.rule("G3")
def test_variables_that_press_keys_are_taken_away_and_named() -> None:
    done = run("audit", "limits", TEXTUAL_PRESS="1,y", TEXTUAL_DRIVER="x:Y")
    assert done.returncode == 0
    assert b"ignored: TEXTUAL_DRIVER, TEXTUAL_PRESS" in done.stderr


def test_a_reader_that_leaves_ends_the_program_quietly() -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [*PROGRAM, "audit", "limits"], stdout=write, stderr=subprocess.PIPE, timeout=LIMIT_S, env=environment()
        )
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this platform")
def test_an_output_that_is_full_is_told_in_one_line() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*PROGRAM, "audit", "limits"], stdout=full, stderr=subprocess.PIPE, timeout=LIMIT_S, env=environment()
        )
    assert done.returncode == 1
    assert done.stderr.startswith(b"pollconsole: the output could not be written")
    assert b"Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this platform")
def test_an_error_that_finds_no_room_is_no_reader_that_left(tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*PROGRAM, "show", "op-1", "--json", "--home", str(tmp_path)], stdout=full, stderr=subprocess.PIPE,
            timeout=LIMIT_S, env=environment(),
        )  # fmt: skip
    assert done.returncode == 1
    assert b"no operation" in done.stderr


def test_a_home_that_is_too_long_for_a_path_is_refused_in_one_line() -> None:
    for more in ((), ("--home", "a" * 5_000)):
        done = run("list", *more, POLLCONSOLE_HOME="/tmp/" + "a" * 5_000)
        assert done.returncode in (1, 2)
        assert b"too long for a path" in done.stderr
        assert b"fault of ours" not in done.stderr


def test_a_folder_that_others_need_keeps_its_mode(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o755)
    shared.joinpath("somebody's").touch()
    shared.joinpath("config.toml").touch()  # without anything of ours it would be no home to read
    for _ in range(2):  # the second time a store of ours lies in it
        assert run("audit", "show", "--home", str(shared)).returncode == 0
        assert shared.stat().st_mode & 0o777 == 0o755
    shared.joinpath("somebody's").unlink()
    run("audit", "show", "--home", str(shared))
    assert shared.stat().st_mode & 0o777 == 0o700
    shared.chmod(0o1777)
    refused = run("audit", "show", "--home", str(shared))
    assert refused.returncode == 1
    assert b"everybody uses it: name a folder of your own in it" in refused.stderr


def test_a_latin_terminal_gets_escapes_instead_of_an_error() -> None:
    done = run("shów-作业", PYTHONIOENCODING="latin-1", PYTHONUTF8="0", LC_ALL="C.UTF-8")
    assert done.returncode == 2
    assert "No such command 'shów-\\u4f5c\\u4e1a'" in done.stderr.decode("latin-1")


def test_arguments_that_are_no_utf8_are_refused() -> None:
    done = subprocess.run(
        [*(os.fsencode(p) for p in PROGRAM), b"show", b"op-\xff\x1b[31m", b"--json"],
        capture_output=True, timeout=LIMIT_S, env=environment(),
    )  # fmt: skip
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["code"] == "usage"
    assert b"\x1b" not in done.stderr + done.stdout


@pytest.mark.rule("K1")
def test_a_secret_at_the_prompt_is_not_echoed(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    home = str(tmp_path / "h")
    process = subprocess.Popen(
        [*PROGRAM, "credential", "set", "k", "--origin", "https://a.example", "--kind", "bearer", "--home", home],
        stdin=theirs, stdout=theirs, stderr=theirs, env=environment(), start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    try:
        while b"Secret" not in seen:
            seen += os.read(ours, 4096)
        os.write(ours, b" canary-5f2c9e \n")  # refused: spaces at its ends, so nothing is stored
        while True:
            try:
                chunk = os.read(ours, 4096)
            except OSError:
                break
            if not chunk:
                break
            seen += chunk
        assert process.wait(LIMIT_S) == 2
    finally:
        process.kill()
        process.wait(LIMIT_S)
        os.close(ours)
    assert b"spaces at its ends" in seen
    assert b"canary" not in seen


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_completion_script(shell: str) -> None:
    done = run("completion", shell)
    assert done.returncode == 0
    assert b"_POLLCONSOLE_COMPLETE" in done.stdout


def test_commands_and_flags_are_completed() -> None:
    done = run(_POLLCONSOLE_COMPLETE="bash_complete", COMP_WORDS="pollconsole esc", COMP_CWORD="1")
    assert b"plain,escalations" in done.stdout
    flags = run(_POLLCONSOLE_COMPLETE="bash_complete", COMP_WORDS="pollconsole submit --max-r", COMP_CWORD="2")
    assert flags.stdout.split() == [b"plain,--max-requests", b"plain,--max-rate-limited"]
