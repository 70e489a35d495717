"""The reading key: a copy of the store says what belongs to it, and a value that stays sealed is never told as one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.console.cli.conftest import FakeCore, Outcome, make_operation

from pollconsole import bridge
from pollcore.facts import CredentialUnavailable, ResultPointer, Status, StopDetail

Call = Callable[..., Outcome]
FETCH = ["fetch", "op-a", "--to", "F"]
WARNING = "what is sealed of this operation cannot be opened again"


@pytest.fixture
def home(real_home: Path, call: Call) -> Path:
    """A real home with its key in a file, a contract of its own, and one succeeded operation."""
    shutil.copytree(Path(__file__).parents[3] / "core/pollcore/contracts", real_home / "providers")
    saved = real_home / "saved.txt"
    saved.write_text(
        'HTTP/1.1 202 Accepted\r\n\r\n{"id": "j", "status": "succeeded", '
        '"result": {"url": "http://127.0.0.1:9/results/j?sig=presigned"}}'
    )
    done = call("submit", "--home", str(real_home), "--provider", "lab", "--from-response", str(saved), "--id", "op-a")
    assert done.code == 0, done.err
    return real_home


def restored(home: Path, tmp_path: Path, call: Call) -> Path:
    """Another home with the backup of *home*, its settings and contracts, and no key."""
    there = tmp_path / "restored"
    there.mkdir(mode=0o700)
    assert call("backup", str(there / "pollconsole.db"), "--home", str(home)).code == 0
    shutil.copy(home / "config.toml", there)
    shutil.copytree(home / "providers", there / "providers")
    return there


@pytest.mark.rule("A4", "K1")
def test_a_backup_names_by_path_what_must_be_kept_with_it(home: Path, tmp_path: Path, call: Call) -> None:
    done = call("backup", str(tmp_path / "copy.db"), "--home", str(home))
    assert done.code == 0
    for name in ("reading.key", "reading.key.audit", "config.toml", "providers"):
        assert f"  {home / name}: " in done.out
    kept = call("backup", str(tmp_path / "two.db"), "--home", str(home), "--json").json["backup"]["keep_with_it"]
    assert str(home / "reading.key") in [one["path"] for one in kept["files"]]
    assert (kept["keyring"], kept["missing"]) == (False, None)


@pytest.mark.rule("A4")
def test_a_backup_of_a_home_whose_key_is_gone_warns(home: Path, tmp_path: Path, call: Call) -> None:
    (home / "reading.key").unlink()
    done = call("backup", str(tmp_path / "copy.db"), "--home", str(home))
    assert "warning: what is sealed in the copy cannot be opened" in done.err
    assert str(home / "reading.key") in done.err


@pytest.mark.rule("S4", "A4")
@pytest.mark.parametrize("command", [["result", "op-a"], ["result", "op-a", "--reveal"], FETCH])
def test_a_result_that_cannot_be_opened_is_an_error_and_no_value(
    command: list[str], home: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "presigned" in call("result", "op-a", "--reveal", "--home", str(home)).out
    there = restored(home, tmp_path, call)
    done = call(*command, "--home", str(there), "--json")
    assert (done.code, done.json["error"]["code"]) == (1, "sealed_unreadable")
    assert "reading key" in done.err
    assert "sealed:unreadable" not in done.out
    assert not (tmp_path / "F").exists()
    shown = call("show", "op-a", "--home", str(there), "--json").json["result"]
    assert (shown["fields"], shown["sealed"]) == ({}, True)
    (listed,) = call("list", "--home", str(there), "--json").json["operations"]
    assert listed["result"]["fields"] == {}
    shutil.copy(home / "reading.key", there)
    assert "presigned" in call("result", "op-a", "--reveal", "--home", str(there)).out


@pytest.mark.rule("A4")
def test_doctor_finds_the_missing_private_half_and_says_what_is_lost(home: Path, tmp_path: Path, call: Call) -> None:
    there = restored(home, tmp_path, call)
    done = call("doctor", "--home", str(there))
    assert done.code == 1
    (line,) = [line for line in done.out.splitlines() if line.startswith("x public key:")]
    assert f"its private half is neither in {there / 'reading.key'} nor in a keyring" in line
    assert "links of results, status addresses, idempotency keys" in line
    assert "put the key back" in done.out
    assert "+ public key:" in call("doctor", "--home", str(home)).out


@pytest.mark.rule("A4")
def test_a_submission_that_is_sealed_for_a_key_that_is_gone_is_warned_about(home: Path, call: Call) -> None:
    again = ("submit", "--home", str(home), "--provider", "lab", "--job-id")
    assert WARNING not in call(*again, "k1").err
    (home / "reading.key").unlink()
    done = call(*again, "k2", "--json")
    assert done.code == 0
    assert WARNING in done.json["warnings"][0]


@pytest.mark.rule("K2", "A4")
async def test_a_keyring_that_is_only_locked_is_no_loss(core: FakeCore) -> None:
    def locked(_public: str) -> None:
        raise CredentialUnavailable("the keyring is locked", StopDetail.KEYRING_LOCKED)

    async def document(_kind: str, _name: str) -> bytes:
        return b"pollconsole-read-1:x"

    core.store.document = document  # type: ignore[method-assign]
    core.reading_keys = type("Keys", (), {"load": staticmethod(locked)})  # type: ignore[attr-defined]
    lost = await bridge.lost_key(core)  # type: ignore[arg-type]
    assert lost is not None
    assert (lost[1], "the keyring is locked" in lost[0]) == (False, True)


@pytest.mark.rule("S4")
def test_a_sealed_result_is_shown_as_sealed(core: FakeCore, call: Call) -> None:
    core.store.rows["op-1"] = make_operation(
        status=Status.SUCCEEDED, result=ResultPointer(fields={"sealed:unreadable": True})
    )
    text = call("show", "op-1").out
    assert "sealed: yes" in text
    assert "unreadable" not in text


# --- a store that was put back ----------------------------------------------------------------------------------------


def put_back(home: Path, call: Call) -> None:
    """An old copy of the store over a newer one; the anchor knows a link that the copy has not."""
    old = home.parent / "old.db"
    assert call("backup", str(old), "--home", str(home)).code == 0
    assert call("submit", "--provider", "lab", "--job-id", "k", "--id", "op-k", "--home", str(home)).code == 0
    for file in home.glob("pollconsole.db*"):
        file.unlink()
    old.rename(home / "pollconsole.db")


@pytest.mark.rule("A4")
def test_the_hand_over_says_that_the_record_was_cut(home: Path, call: Call) -> None:
    whole = call("handover", "--home", str(home), "--json").json["handover"]["audit"]
    assert (whole["anchored"], whole["alarm"]) == (True, None)
    put_back(home, call)
    cut = call("handover", "--home", str(home), "--json").json["handover"]["audit"]
    assert cut["anchored"] is False
    assert "the anchor knows link" in cut["alarm"]
    assert "audit: DAMAGED: truncated" in call("handover", "--home", str(home)).out


@pytest.mark.rule("A4")
def test_no_loss_is_put_on_record_where_nothing_is_lost(home: Path, call: Call) -> None:
    def accept() -> Outcome:
        return call("audit", "accept-loss", "--because", "Monday's copy put back", "--home", str(home), "--json")

    before = call("audit", "verify", "--home", str(home), "--json").json["links"]
    refused = accept()
    assert (refused.code, refused.json["error"]["code"]) == (2, "no_loss")
    after = call("audit", "verify", "--home", str(home), "--json").json
    assert (after["links"], after["verdict"]) == (before, "intact")
    put_back(home, call)
    assert accept().json == {"accepted": True}
    assert any(
        "went on without links" in one for one in call("audit", "verify", "--home", str(home), "--json").json["remarks"]
    )
    assert accept().json["error"]["code"] == "no_loss"
