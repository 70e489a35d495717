"""FIFOs that nobody writes to, in the place of a home's files: no command waits for them, and doctor names them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.console.cli.gate_home import run

from pollconsole import keys_file, theme_files, ui_file

SAID = "it is no regular file"


@pytest.mark.rule("V5", "O6")
@pytest.mark.parametrize("name", ["providers/evil.toml", "config.toml", "keys.toml"])
def test_doctor_names_a_fifo_in_the_place_of_a_file_and_nothing_waits_for_it(tmp_path: Path, name: str) -> None:
    home = tmp_path / "home"
    (home / "providers").mkdir(parents=True)
    home.chmod(0o700)
    os.mkfifo(home / name, 0o600)
    done = run(home, "doctor")
    lines = [line for line in done.stdout.splitlines() if line.startswith("x ") and SAID in line]
    assert done.returncode == 1
    assert len(lines) == 1
    assert Path(name).name in lines[0]
    listed = run(home, "provider", "list")
    assert listed.returncode == (2 if name == "config.toml" else 0)
    assert (SAID in listed.stdout + listed.stderr) == (name != "keys.toml")


@pytest.mark.rule("V5")
def test_the_screens_own_files_wait_for_no_fifo(tmp_path: Path) -> None:
    (tmp_path / "themes").mkdir()
    for name in (keys_file.FILE, ui_file.FILE, "themes/odd.toml"):
        os.mkfifo(tmp_path / name)
    assert SAID in keys_file.read(tmp_path).complaints[0]
    assert ui_file.read(tmp_path) == {}
    assert any(SAID in said for said in theme_files.available(tmp_path)[1])
