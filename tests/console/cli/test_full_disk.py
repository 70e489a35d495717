"""A home on a disk that is full: what is there is read, what cannot be written says why, and nothing half is left."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from io import RawIOBase
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.console.cli.gate_home import run

from pollconsole import home_files
from pollconsole.bridge import beginning
from pollcore.adapters import places
from pollcore.adapters.store import connecting, opening
from pollcore.adapters.store.errors import FULL, unusable
from pollcore.adapters.store.library import sqlite3
from pollcore.facts import Refused, StoreUnusable

FULL_WORDS = "the disk is full"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=3m,mode=0700", "none", str(place)]
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("a small file system can be mounted by root on Linux alone")
    if subprocess.run(mount, capture_output=True, timeout=20, check=False).returncode:
        pytest.skip("this root may not mount a tmpfs (a container without CAP_SYS_ADMIN)")
    yield place
    subprocess.run(["umount", "-l", str(place)], timeout=20, check=True)


def _written(file: RawIOBase) -> bool:
    try:
        return bool(file.write(bytes(4096)))
    except OSError:
        return False


def _filled(place: Path) -> Path:
    filler = place / "filler"
    with filler.open("wb", buffering=0) as file:
        while _written(file):
            pass
    return filler


@pytest.mark.slow
@pytest.mark.rule("O6")
def test_a_full_disk_is_named_reads_go_on_and_no_half_file_is_left(disk: Path, tmp_path: Path) -> None:
    home = disk / "home"
    (home / "providers").mkdir(parents=True)
    home.chmod(0o700)
    (home / "config.toml").write_text(
        f'[audit]\nkey_file = "{tmp_path / "audit.key"}"\n'
        '[providers.lab]\ncontract = "example-jobs"\nbase_url = "http://127.0.0.1:9"\n'
    )
    assert run(home, "submit", "--provider", "lab", "--job-id", "j1", "--id", "op-1").returncode == 0
    filler = _filled(disk)
    for command in (["list"], ["show", "op-1"], ["escalations"], ["audit", "verify"], ["audit", "show", "op-1"]):
        done = run(home, *command)
        assert done.returncode == 0, (command, done.stderr)
    assert "op-1" in run(home, "list").stdout
    for command in (["submit", "--provider", "lab", "--job-id", "j2"], ["close", "op-1", "--because", "x"], ["run"]):
        done = run(home, *command)
        assert (done.returncode, FULL_WORDS in done.stderr, "free space" in done.stderr) == (1, True, True), command
    doctor = run(home, "doctor")
    assert doctor.returncode == 1
    assert FULL_WORDS in doctor.stdout
    new = run(home, "provider", "new", "abc", "--base-url", "https://a.example", "--path", "/x/{job_id}")
    assert new.returncode == 2
    assert "free space there" in new.stderr
    export = run(home, "audit", "export", str(disk / "evidence.jsonl"))
    assert export.returncode == 2
    assert "free space there" in export.stderr
    assert list((home / "providers").iterdir()) == []
    assert sorted(p.name for p in disk.iterdir()) == ["filler", "home"]
    elsewhere = run(home, "backup", str(tmp_path / "copy.db"))
    assert elsewhere.returncode == 0, elsewhere.stderr
    filler.unlink()
    assert run(home, "close", "op-1", "--because", "x").returncode == 0


@pytest.mark.rule("O6")
@pytest.mark.parametrize(
    "text", ["disk I/O error", "unable to open database file", "attempt to write a readonly database"]
)
def test_what_sqlite_says_on_a_full_disk_is_told_as_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    error = sqlite3.OperationalError(text)
    assert FULL_WORDS not in str(unusable(error, str(tmp_path / "s.db"), "opening it"))
    monkeypatch.setattr(places, "is_full", lambda folder: folder == tmp_path)
    told = unusable(error, str(tmp_path / "s.db"), "opening it")
    assert told.name == FULL
    assert FULL_WORDS in str(told)
    assert "free space on it" in str(told)
    damaged = unusable(sqlite3.DatabaseError("database disk image is malformed"), str(tmp_path / "s.db"), "reading it")
    assert FULL_WORDS not in str(damaged)


@pytest.mark.rule("O6")
@pytest.mark.parametrize(
    ("blocks", "files", "free_files", "full"),
    [(0, 10, 5, True), (900, 10, 0, True), (900, 0, 0, False), (900, 9, 9, False)],
)
def test_a_disk_without_blocks_or_without_inodes_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blocks: int, files: int, free_files: int, full: bool
) -> None:
    found = SimpleNamespace(f_bavail=blocks, f_frsize=4096, f_files=files, f_favail=free_files)
    monkeypatch.setattr(os, "statvfs", lambda _: found)
    assert places.is_full(tmp_path) == full


@pytest.mark.rule("O6", "O2")
def test_a_store_whose_last_commits_lie_in_its_wal_is_not_read_without_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "pollconsole.db")
    opening.open_writer(path).close()
    monkeypatch.setattr(connecting, "_holds_commits", lambda wal: wal == Path(f"{path}-wal"))

    class Failing:
        def execute(self, *_: object) -> object:
            raise sqlite3.OperationalError("disk I/O error")

        def close(self) -> None: ...

    monkeypatch.setattr(places, "is_full", lambda _: True)
    monkeypatch.setattr(connecting, "_connect", lambda target, **_: Failing())
    with pytest.raises(StoreUnusable, match=r"the disk is full; .*last commits lie in .*-wal; free space"):
        connecting.connect(path, read_only=True)


@pytest.mark.rule("O6")
def test_a_file_that_cannot_be_written_whole_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        name = str(tmp_path / ".abc.toml.part")

        def __enter__(self) -> Full:
            Path(self.name).touch()
            return self

        def __exit__(self, *_: object) -> None: ...

        def write(self, _: str) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(home_files.tempfile, "NamedTemporaryFile", lambda *_, **__: Full())
    with pytest.raises(Refused, match="No space left on device: free space there"):
        beginning.begin(None, "abc", "text", str(tmp_path / "abc.toml"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.rule("O6")
@pytest.mark.parametrize("links", [True, False])
def test_a_new_file_takes_nothing_elses_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool) -> None:
    if not links:

        def refused(*_: object) -> None:
            raise OSError(errno.EPERM, "Operation not permitted")

        monkeypatch.setattr(home_files.os, "link", refused)
    target = tmp_path / "abc.toml"
    assert beginning.begin(None, "abc", "text", str(target)) == str(target)
    assert (target.read_text(), target.stat().st_mode & 0o777) == ("text", 0o600)
    (tmp_path / "lost.toml").symlink_to("nowhere")
    for there in (target, tmp_path / "lost.toml"):
        with pytest.raises(Refused, match="exists already"):
            beginning.begin(None, "abc", "other", str(there))
    assert target.read_text() == "text"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["abc.toml", "lost.toml"]
