"""`doctor`: one fault hides no other, and what is wrong comes with the way to mend it."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.console.cli.conftest import FakeCore, Outcome

from pollcore.adapters.config import Config, Instance
from pollcore.facts import CredentialUnavailable, StoreUnusable

Call = Callable[..., Outcome]


@pytest.fixture
def home(tmp_path: Path, core: FakeCore) -> Path:
    """A home with a store, and a core that tells two facts."""
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    sqlite3.connect(folder / "pollconsole.db").close()  # nothing else opens a store
    (folder / "pollconsole.db").chmod(0o600)

    async def facts() -> dict[str, Any]:
        return {"sqlite": "3.53.0", "odd": {"state": "wrong", "text": "locked", "mend": "unlock it"}}

    core.facts = facts  # type: ignore[attr-defined]
    return folder


def findings(done: Outcome) -> dict[str, dict[str, Any]]:
    return {finding["name"]: finding for finding in done.json["findings"]}


@pytest.mark.rule("K2", "G5", "O8")
def test_facts_of_the_core_judgements_and_heartbeats_are_told(home: Path, core: FakeCore, call: Call) -> None:
    done = call("doctor", "--home", str(home), "--json")
    found = findings(done)
    assert done.code == 1
    assert (found["odd"]["state"], found["odd"]["mend"]) == ("wrong", "unlock it")
    assert found["keyring"]["text"] == "tests.Backend; credentials in use: none"
    assert found["sqlite"]["text"] == "3.53.0"
    assert "no core has run" in found["core"]["text"]
    assert "advisory" in found["gate"]["text"]
    core.store.beat(age_ms=4_000)
    assert "last heartbeat" in findings(call("doctor", "--home", str(home), "--json"))["core"]["text"]


@pytest.mark.rule("H2")
def test_an_instance_without_tls_is_named(home: Path, call: Call) -> None:
    (home / "config.toml").write_text(
        '[providers.lab]\ncontract = "x"\nbase_url = "http://lab.example"\nallow_http = true\n'
    )
    assert "http://lab.example" in findings(call("doctor", "--home", str(home), "--json"))["provider lab"]["text"]


def test_a_broken_setting_hides_no_other_finding(home: Path, call: Call) -> None:
    (home / "config.toml").write_text("[ceiling]\n")
    found = findings(call("doctor", "--home", str(home), "--json"))
    assert "did you mean ceilings?" in found["settings"]["text"]
    assert found["sqlite"]["state"] == "ok"


def test_a_settings_error_is_told_once_in_its_own_line(real_home: Path, call: Call) -> None:
    assert call("list", "--home", str(real_home)).code == 0  # makes the store, which needs the settings to be opened
    for name in ("config.toml", "nothing"):
        (real_home / "config.toml").write_text("[ceiling]\n")
        done = call("doctor", "--home", str(real_home))
        assert (done.code, done.out.count("did you mean ceilings?")) == (1, 1), name
        assert "x settings: " in done.out
        assert ". store: not looked at: mend settings first" in done.out
        (real_home / "pollconsole.db").unlink(missing_ok=True)


def test_a_store_that_cannot_be_opened_hides_no_other_finding(
    home: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise StoreUnusable("disk full: free some room")

    monkeypatch.setattr("pollconsole.bridge.with_core", fail)
    done = call("doctor", "--home", str(home))
    assert done.code == 1
    assert "x store: disk full" in done.out
    assert "+ home:" in done.out


@pytest.mark.rule("K1")
def test_files_that_others_can_read_are_named_with_the_command_that_mends_them(home: Path, call: Call) -> None:
    key = home / "reading.key"
    key.write_text("x")
    key.chmod(0o644)
    found = findings(call("doctor", "--home", str(home), "--json"))["reading.key"]
    assert (found["state"], found["mend"]) == ("wrong", f"chmod 600 {key}")


def test_what_opening_mends_is_no_fault(home: Path, call: Call) -> None:
    home.chmod(0o755)
    (home / "pollconsole.db").chmod(0o644)
    found = findings(call("doctor", "--home", str(home), "--json"))
    assert (found["home"]["state"], found["pollconsole.db"]["state"]) == ("note", "note")
    assert "sets 0700" in found["home"]["text"]
    assert "sets 0600" in found["pollconsole.db"]["text"]


@pytest.mark.slow
def test_a_home_that_does_not_exist_is_not_made(tmp_path: Path, call: Call) -> None:
    done = call("doctor", "--home", str(tmp_path / "none"))
    assert "does not exist yet" in done.out
    assert not os.path.lexists(tmp_path / "none")


@pytest.mark.rule("K2")
def test_a_keyring_that_cannot_be_used_is_wrong_and_names_the_way_out(home: Path, core: FakeCore, call: Call) -> None:
    def fail() -> str:
        raise CredentialUnavailable("no keyring: start a Secret Service", "keyring_absent")

    core.vault.describe = fail
    look = lambda: findings(call("doctor", "--home", str(home), "--json"))["keyring"]  # noqa: E731
    assert look()["state"] == "note"
    core.config = Config(providers={"acme": Instance(contract="acme", credential="acme-key")})
    found = look()
    assert found["state"] == "wrong"
    assert found["text"] == "no keyring: start a Secret Service; credentials in use: acme-key"
    core.vault.describe = lambda: fail_with("; see pollconsole doctor")
    assert "pollconsole doctor" not in look()["text"]


def fail_with(more: str) -> str:
    raise CredentialUnavailable(f"no keyring: start a Secret Service{more}", "keyring_absent")


def tree(folder: Path) -> dict[str, int]:
    """Every file and folder with its mode."""
    return {str(path.relative_to(folder)): path.stat().st_mode for path in sorted(folder.rglob("*"))}


@pytest.mark.slow
def test_doctor_makes_and_changes_nothing_in_a_home_without_a_store(tmp_path: Path, call: Call) -> None:
    (tmp_path / "providers").mkdir()
    (tmp_path / "providers" / "broken.toml").write_text("x")
    tmp_path.chmod(0o755)
    before = tree(tmp_path), tmp_path.stat().st_mode
    done = call("doctor", "--home", str(tmp_path), "--json")
    assert (tree(tmp_path), tmp_path.stat().st_mode) == before
    found = findings(done)
    assert found["store"]["text"] == f"{tmp_path / 'pollconsole.db'} does not exist yet"
    assert found["contract broken"]["state"] == "wrong"
    assert {"keyring", "contracts", "clock"} <= set(found)


def test_a_folder_that_can_be_no_home_is_told_without_opening_it(tmp_path: Path, call: Call) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    found = findings(call("doctor", "--home", str(tmp_path / "link"), "--json"))
    assert (found["home"]["state"], "a symlink" in found["home"]["text"]) == ("wrong", True)


def test_traces_of_crashes_are_named_the_newest_ones(home: Path, call: Call) -> None:
    (home / "crashes").mkdir()
    for number in range(5):
        file = home / "crashes" / f"{9 - number}.txt"
        file.touch()
        os.utime(file, (number, number))
    told = call("doctor", "--home", str(home)).out
    assert [f"/{number}.txt" in told for number in (9, 8, 7, 6, 5)] == [False, False, True, True, True]
    assert "2 older ones" in told


@pytest.mark.slow
def test_a_real_home_is_told_in_readable_lines(real_home: Path, call: Call) -> None:
    assert call("list", "--home", str(real_home)).code == 0
    fresh = call("doctor", "--home", str(real_home))
    assert "+ public key: none yet: the next" in fresh.out
    assert call("submit", "--home", str(real_home), "--provider", "lab", "--job-id", "j").code == 0
    told = call("doctor", "--home", str(real_home)).out
    assert not re.search(r"[{}()\[\]]?'?\w+'?: (True|False|None)|\bTrue\b|\bNone\b|0o\d|boot id|WAL-reset", told)
    assert re.search(
        r"^\+ store: \S+/pollconsole\.db, [\d.]+ \w+, mode 0600, schema \d+, [\d.]+ \w+ free", told, re.MULTILINE
    )
    assert re.search(r"^\+ public key: \S{20,} \(public: it opens nothing", told, re.MULTILINE)
    assert re.search(r"^\+ contracts: \d+ contracts and 1 configured provider can be used$", told, re.MULTILINE)
