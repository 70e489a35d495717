"""`audit verify`, `export`, `accept-loss` and keys from the command line: exit codes, JSON, no key needed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pollconsole.cli import entry
from pollcore.adapters.system import SystemClock
from pollcore.chain.notes import key_text
from pollcore.facts import DAY, Instant, iso
from tests.audit.logs import Log, flipped
from tests.audit.test_evidence import made, written


def call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """One command, in this process."""
    code = entry.run(list(words))
    told = capsys.readouterr()
    return code, told.out, told.err


def damage(log: Log, how: str) -> None:
    """Bring *log* into the state of one exit code."""
    if how == "altered":
        log.change(5, lambda blob: flipped(blob, 150))
    elif how == "removed_or_reordered":
        del log.rows[5]
    elif how == "truncated":
        del log.rows[10:]
    elif how == "torn_last_write":
        log.add(1)
        log.rows[-1] = (log.rows[-1][0], log.rows[-1][1][:60], b"")
    elif how == "missing":
        log.rows, log.notes = [], []
    elif how == "unsigned_tail":
        log.add(1)
    elif how == "other_log":
        other = made()
        log.rows, log.notes = other.rows, other.notes


@pytest.mark.rule("A3", "A4")
@pytest.mark.parametrize(
    ("how", "code"),
    [
        ("intact", 0),
        ("altered", 20),
        ("removed_or_reordered", 21),
        ("truncated", 22),
        ("torn_last_write", 23),
        ("missing", 24),
        ("unsigned_tail", 25),
        ("other_log", 26),
    ],
)
def test_each_verdict_has_its_exit_code(
    how: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = made()
    key = key_text(log.log_id, log.public)
    damage(log, how)
    path = written(log, tmp_path / "evidence.jsonl")
    found, text, _ = call(capsys, "audit", "verify", str(path), "--key", key, "--json")
    report = json.loads(text)
    assert (found, report["verdict"], report["exit_code"]) == (code, how, code), report["faults"]
    found, text, _ = call(capsys, "audit", "verify", str(path), "--key", key)
    assert found == code
    assert "confirmed up to" not in text  # no anchor is asked of a file, and nothing else was given
    assert how.replace("_", " ") in text


@pytest.mark.rule("A4")
def test_a_kept_head_is_given_as_a_file_or_as_number_and_hash(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = made()
    kept = tmp_path / "head.txt"
    kept.write_text(log.notes[-1][1])
    text = f"{len(log.rows)}:{log.rows[-1][2].hex()}"
    whole = written(log, tmp_path / "whole.jsonl")
    log.rows, log.notes = log.rows[:6], [note for note in log.notes if note[0] <= 6]
    cut = written(log, tmp_path / "cut.jsonl")
    for head in (str(kept), text):
        found, text, _ = call(capsys, "audit", "verify", str(whole), "--expect-head", head)
        assert (found, "confirmed up to link" in text) == (0, True)
        assert call(capsys, "audit", "verify", str(cut), "--expect-head", head)[0] == 22
    assert call(capsys, "audit", "verify", str(whole), "--expect-head", f"12:{'0' * 64}")[0] == 20
    assert call(capsys, "audit", "verify", str(whole), "--expect-head", "nonsense")[0] == 2
    assert call(capsys, "audit", "verify", str(whole), "--key", "nonsense")[0] == 2


@pytest.mark.rule("A4", "A3")
def test_a_home_without_a_keyring_is_exported_and_verified_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home, keys, target = tmp_path / "home", tmp_path / "audit.key", tmp_path / "evidence.jsonl"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(f'[audit]\nkey_file = "{keys}"\n')
    at = ("--home", str(home))
    tomorrow = iso(Instant(SystemClock().now().wall + DAY))
    assert call(capsys, "audit", "verify", *at)[0] == 24
    assert not (home / "pollconsole.db").exists()
    assert call(capsys, "pause", "--provider", "example-jobs", "--until", tomorrow, *at)[0] == 0
    code, text, _ = call(capsys, "audit", "export", str(target), "--json", *at)
    told = json.loads(text)
    assert (code, told["signed"]) == (0, True)
    assert call(capsys, "audit", "verify", str(target), "--key", told["key"])[0] == 0
    code, text, _ = call(capsys, "audit", "verify", "--json", "--with-key", *at)
    report = json.loads(text)
    assert (code, report["keys_in"], report["story"]["differing_count"]) == (0, "key file", 0)
    assert call(capsys, "audit", "new-keys", *at)[0] == 0
    assert call(capsys, "audit", "forget", "0", "--because", "kept long enough", *at)[0] == 2  # nobody confirmed
    assert call(capsys, "audit", "forget", "0", "--because", "kept long enough", "--yes", *at)[0] == 0
    code, text, _ = call(capsys, "audit", "verify", "--json", "--with-key", *at)
    report = json.loads(text)
    assert (report["epoch"], report["story"]["unreadable"]) == (1, 1)
    assert call(capsys, "audit", "export", str(target), *at)[0] == 2
    code, text, _ = call(capsys, "audit", "limits", *at)
    assert code == 0
    assert "Not promised" in text


@pytest.mark.rule("A3")
def test_an_archive_that_cannot_be_read_is_told_as_that(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not Path("/proc/self/mem").exists():
        pytest.skip("no file here that opens and cannot be read")
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(f'[audit]\nkey_file = "{tmp_path / "audit.key"}"\n')
    tomorrow = iso(Instant(SystemClock().now().wall + DAY))
    at = ("--home", str(home))
    assert call(capsys, "pause", "--provider", "example-jobs", "--until", tomorrow, *at)[0] == 0
    code, text, told = call(capsys, "audit", "verify", "--archive", "/proc/self/mem", "--json", *at)
    assert (code, json.loads(text)["error"]["code"]) == (2, "file")
    assert "/proc/self/mem: cannot be read: Input/output error" in told
