"""The file of a service: its text, that a service manager takes it, and that nothing of others is overwritten."""

from __future__ import annotations

import configparser
import json
import os
import plistlib
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pollconsole.cli import service, service_text
from pollcore.facts import Refused

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 60
PROGRAM = (sys.executable, "-m", "pollconsole")


def call(config: Path, *argv: str, code: int = 0, home: Path | None = None) -> str:
    done = subprocess.run(
        [*PROGRAM, "--home", str(home or config / "my home"), "service", *argv],
        capture_output=True,
        timeout=LIMIT_S,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(ROOT / "core"), str(ROOT / "console"))),
            "XDG_CONFIG_HOME": str(config),
            "HOME": str(config),
        },
    )
    assert done.returncode == code, done
    return done.stdout.decode()


def parsed(text: str) -> configparser.ConfigParser:
    read = configparser.ConfigParser(interpolation=None, strict=True)
    read.optionxform = str  # type: ignore[assignment,method-assign]
    read.read_string(text)
    return read


def test_a_unit_starts_the_run_by_whole_paths_and_ends_it_as_it_wants_to_be_ended() -> None:
    read = parsed(service_text.unit(PROGRAM, Path("/home/ann/my home")))
    started = read["Service"]
    assert shlex.split(started["ExecStart"]) == [*PROGRAM, "run", "--home", "/home/ann/my home"]
    assert (started["Restart"], started["KillSignal"], started["UMask"]) == ("on-failure", "SIGTERM", "0077")
    # an answer may take 30 s in all (H7), and the end has work after it
    assert int(started["TimeoutStopSec"]) > 30 + 15
    assert started["RestartPreventExitStatus"] == "2"
    assert read["Install"]["WantedBy"] == "default.target"


@pytest.mark.rule("K2")
def test_nothing_in_a_unit_takes_the_keyring_away() -> None:
    started = parsed(service_text.unit(PROGRAM, Path("/h")))["Service"]
    away = {"PrivateUsers", "ProtectHome", "PrivateTmp", "PrivateNetwork", "DynamicUser", "User", "InaccessiblePaths"}
    assert set(started) & away == set()
    assert "AF_UNIX" in started["RestrictAddressFamilies"].split()
    assert started["NoNewPrivileges"] == "yes"


@pytest.mark.parametrize("path", ["/h/50%", "/h/$HOME", '/h/a"b', "/h/back\\slash", "/h/'q'", "/h/ü x"])
def test_a_path_is_taken_literally(path: str) -> None:
    line = parsed(service_text.unit(PROGRAM, Path(path)))["Service"]["ExecStart"]
    word = line.rpartition(' "')[2][:-1]
    literal = word.replace("%%", "%").replace("$$", "$").replace('\\"', '"').replace("\\\\", "\\")
    assert literal == path


@pytest.mark.parametrize("path", ["/h/new\nline", "/h/\x1b[2J", "/h/\udcff"])
def test_a_path_that_could_write_other_lines_is_refused(path: str) -> None:
    for made in (service_text.unit, lambda program, home: service_text.agent(program, home, "x")):
        with pytest.raises(Refused, match="control characters"):
            made(PROGRAM, Path(path))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    path = tmp_path / "pollconsole.service"
    path.write_text(service_text.unit(PROGRAM, tmp_path / "50% of $HOME"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--man=no", str(path)],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
    )
    about_us = [line for line in (done.stdout + done.stderr).splitlines() if "pollconsole.service" in line]
    assert about_us == []


def test_an_agent_of_launchd_says_the_same() -> None:
    read = plistlib.loads(service_text.agent(PROGRAM, Path("/Users/ann/<my> home"), "local.pollconsole.x").encode())
    assert read["ProgramArguments"] == [*PROGRAM, "run", "--home", "/Users/ann/<my> home"]
    assert read["KeepAlive"] == {"SuccessfulExit": False}
    assert read["ExitTimeOut"] == service_text.STOP_S
    assert (read["Label"], read["RunAtLoad"], read["Umask"]) == ("local.pollconsole.x", True, 0o077)


def test_each_home_has_a_service_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    one, other = service.wanted(Path("/h/one"), "linux"), service.wanted(Path("/h/two"), "linux")
    assert one.path.parent == other.path.parent == tmp_path / "systemd" / "user"
    assert one.name != other.name
    mac = service.wanted(Path("/h/one"), "darwin")
    assert mac.path.parent.parts[-2:] == ("Library", "LaunchAgents")
    assert any("launchctl bootstrap" in line for line in service.next_steps(mac))
    with pytest.raises(Refused, match="no service manager"):
        service.wanted(Path("/h/one"), "plan9")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks for a systemd unit")
def test_it_is_written_shown_and_removed_and_another_file_is_left_alone(tmp_path: Path) -> None:
    units = tmp_path / "systemd" / "user"
    text = call(tmp_path, "install", "--dry-run")
    assert service_text.MARK in text
    assert not units.exists()
    said = call(tmp_path, "install", "--user")
    (unit,) = units.iterdir()
    assert unit.read_text().strip() == text.strip()
    assert f"systemctl --user enable --now {unit.stem}" in said
    assert "loginctl enable-linger" in said
    assert "keyring_locked" in said
    call(tmp_path, "install")  # the same again
    assert json.loads(call(tmp_path, "show", "--json"))["service"]["current"] is True
    unit.write_text("[Service]\nExecStart=/bin/mine\n")
    call(tmp_path, "install", code=2)
    call(tmp_path, "remove", code=2)
    assert "mine" in unit.read_text()
    assert json.loads(call(tmp_path, "show", "--json"))["service"]["current"] is False
    call(tmp_path, "install", "--force")
    call(tmp_path, "remove")
    assert list(units.iterdir()) == []
    assert not (tmp_path / "my home").exists()  # no home is made for a file
    unit.symlink_to(tmp_path / "elsewhere")
    call(tmp_path, "install", code=2)
    call(tmp_path, "install", "--force", code=2)
    assert not (tmp_path / "elsewhere").exists()
