"""`doctor` of a home whose store is gone or emptied, while its anchor or its keys say that there was one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.console.cli.gate_home import LIMIT_S, run

PROVIDER = '[providers.lab]\ncontract = "example-jobs"\nbase_url = "http://127.0.0.1:9"\n'
NAMED = '[audit]\nkey_file = "{}"\n'


@pytest.fixture(autouse=True)
def without_a_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys and the anchor lie in files of the home, also where this machine has a Secret Service."""
    for name in [each for each in os.environ if each.startswith("DBUS")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)


def _begun(home: Path, settings: str) -> None:
    """A home with one operation."""
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(PROVIDER + settings)
    done = run(home, "submit", "--provider", "lab", "--job-id", "j1")
    assert done.returncode == 0, done.stderr


def _gone(home: Path) -> None:
    for path in home.glob("pollconsole.db*"):
        path.unlink()


def _emptied(home: Path) -> None:
    _gone(home)
    # in a process of its own: nothing here opens a store by hand
    script = "import sys, pathlib; pathlib.Path(sys.argv[1]).touch(mode=0o600)"
    subprocess.run([sys.executable, "-c", script, str(home / "pollconsole.db")], check=True, timeout=LIMIT_S)


def _wrong(home: Path) -> tuple[int, list[str]]:
    done = run(home, "doctor")
    return done.returncode, [line for line in done.stdout.splitlines() if line.startswith("x ")]


@pytest.mark.slow
@pytest.mark.rule("A3", "A4", "O6")
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("lose", [_gone, _emptied])
def test_a_store_that_the_anchor_knows_and_that_is_gone_or_empty_is_wrong(
    tmp_path: Path, named: bool, lose: Callable[[Path], None]
) -> None:
    home = tmp_path / "home"
    _begun(home, NAMED.format(tmp_path / "audit.key") if named else "")
    assert _wrong(home) == (0, [])
    lose(home)
    code, wrong = _wrong(home)
    assert code == 1
    assert any("its anchor knows" in line and "of this home is gone" in line for line in wrong), wrong
    assert run(home, "audit", "verify").returncode == 24
    # looking made nothing that hides it the next time
    assert _wrong(home) == (code, wrong)


@pytest.mark.slow
@pytest.mark.rule("A4", "O6")
@pytest.mark.parametrize(("lose", "says"), [(_gone, "is gone: "), (_emptied, "the store was emptied or replaced")])
def test_keys_in_the_home_tell_of_a_lost_store_without_an_anchor(
    tmp_path: Path, lose: Callable[[Path], None], says: str
) -> None:
    home = tmp_path / "home"
    _begun(home, "")
    (home / "reading.key.audit").unlink()
    lose(home)
    code, wrong = _wrong(home)
    assert code == 1
    assert any(says in line and "reading.key" in line for line in wrong), wrong


@pytest.mark.rule("O6")
def test_a_new_home_and_a_key_file_that_was_there_before_it_are_well(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o700)
    (tmp_path / "home" / "config.toml").write_text(PROVIDER + NAMED.format(tmp_path / "audit.key"))
    (tmp_path / "audit.key").touch(mode=0o600)
    assert _wrong(tmp_path / "home") == (0, [])
