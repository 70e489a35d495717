"""The home folder and the lock files of workers."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from pollcore.adapters import places, worker_lock
from pollcore.adapters.store import opening
from pollcore.adapters.worker_lock import Deaths, WorkerLock
from pollcore.facts import StoreUnusable


@pytest.mark.rule("O6")
def test_the_home_is_the_option_then_the_variable_then_the_platforms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(places.VARIABLE, str(tmp_path / "by-variable"))
    assert places.find(str(tmp_path / "by-option")).home == tmp_path / "by-option"
    assert places.find().home == tmp_path / "by-variable"
    monkeypatch.delenv(places.VARIABLE)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert places.find().home.name == "pollconsole"
    assert places.find().database.name == "pollconsole.db"


@pytest.mark.rule("O6")
def test_a_home_is_made_for_its_user_alone_and_made_so_again(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        home = places.prepare(places.find(str(tmp_path / "deep" / "home")))
    finally:
        os.umask(before)
    home.home.chmod(0o755)
    places.prepare(home)
    assert [stat.S_IMODE(p.stat().st_mode) for p in (home.home, home.workers)] == [0o700, 0o700]


@pytest.mark.rule("O6")
def test_a_home_behind_a_symlink_or_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "file").write_text("")
    for name in ("link", "file"):
        with pytest.raises(StoreUnusable, match="--home"):
            places.prepare(places.find(str(tmp_path / name)))


@pytest.mark.rule("O6")
@pytest.mark.parametrize(
    ("point", "kind"),
    [("/a/b", "nfs"), ("/a/b/c", "ext4"), ("/a/bc", "ext4"), ("/with space/x", "cifs"), ("/again", "tmpfs")],
)
def test_the_file_system_is_that_of_the_nearest_and_newest_mount(point: str, kind: str) -> None:
    table = (
        "1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 0:1 / /a/b rw shared:1 - nfs server:/ rw\nnonsense\n"
        "3 2 0:2 / /a/b/c rw - ext4 /dev/sdb rw\n4 1 0:3 / /with\\040space rw - cifs //x rw\n"
        "5 1 0:4 / /again rw - nfs s:/ rw\n6 1 0:5 / /again rw - tmpfs t rw\n"
    )
    assert places.file_system(Path(point), table) == kind


@pytest.mark.rule("O6")
def test_a_cloud_folder_is_warned_about() -> None:
    assert "cloud folder" in places.warnings(Path("/home/ann/Dropbox/pollconsole"))[0]
    assert places.warnings(Path("/home/ann/.local/share/pollconsole")) == []


@pytest.mark.rule("O2")
def test_a_worker_that_ended_is_dead_and_one_that_lives_is_not(tmp_path: Path) -> None:
    dead = Deaths(tmp_path)
    lock = WorkerLock(tmp_path, "w-1")
    assert not dead("w-1")
    with pytest.raises(StoreUnusable, match="alive"):
        WorkerLock(tmp_path, "w-1")
    lock.release()
    lock.release()
    assert dead("w-1")
    WorkerLock(tmp_path, "w-1").release()


@pytest.mark.rule("O2")
def test_what_cannot_be_known_is_no_proof_of_death(tmp_path: Path) -> None:
    assert not Deaths(tmp_path)("../pollconsole")
    assert not Deaths(tmp_path / "missing")("w-1")
    (tmp_path / "w-2.lock").symlink_to(tmp_path / "elsewhere")
    assert not Deaths(tmp_path)("w-2")


@pytest.mark.rule("O2")
def test_a_sweep_removes_the_files_of_the_dead_alone(tmp_path: Path) -> None:
    lock = WorkerLock(tmp_path, "alive")
    (tmp_path / "gone.lock").write_text("")
    assert worker_lock.sweep(tmp_path) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["alive.lock"]
    assert not Deaths(tmp_path)("alive")
    assert Deaths(tmp_path)("gone")
    assert stat.S_IMODE((tmp_path / "alive.lock").stat().st_mode) == 0o600
    lock.release()


@pytest.mark.rule("O2")
def test_a_worker_that_starts_sweeps_the_dead_away(tmp_path: Path) -> None:
    (tmp_path / "killed.lock").write_text("")
    alive = WorkerLock(tmp_path, "alive")
    assert [p.name for p in tmp_path.iterdir()] == ["alive.lock"]
    other = WorkerLock(tmp_path, "other")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["alive.lock", "other.lock"]
    alive.release()
    other.release()


@pytest.mark.rule("O2")
def test_a_sweep_never_takes_the_file_from_one_who_is_about_to_lock_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the sweep's look and its unlink another worker of the same name gets the lock."""
    (tmp_path / "setup.lock").write_text("")
    taken: list[WorkerLock] = []
    real = Path.unlink

    def unlink(path: Path, missing_ok: bool = False) -> None:
        if not taken:
            monkeypatch.setattr(worker_lock, "ATTEMPTS", 1)
            try:
                taken.append(WorkerLock(tmp_path, "setup"))
            except StoreUnusable:
                pass  # the sweep holds it: the worker tries again and makes a new file
        real(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink)
    worker_lock.sweep(tmp_path)
    monkeypatch.undo()
    assert taken == []
    WorkerLock(tmp_path, "setup").release()


def test_a_relative_home_needs_a_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(StoreUnusable, match="does not exist any more"):
        places.find("relative")
    assert places.find(str(tmp_path)).home == tmp_path
    monkeypatch.chdir(tmp_path)


def test_only_folders_with_a_store_are_near_names(tmp_path: Path) -> None:
    for name in ("b", "a", "empty"):
        (tmp_path / name).mkdir()
    for name in ("a", "b"):
        opening.open_writer(str(tmp_path / name / "pollconsole.db")).close()
    assert places.beside(tmp_path / "c") == ["a", "b"]
    assert places.beside(tmp_path / "none" / "c") == []


@pytest.mark.rule("O6")
def test_a_home_that_cannot_be_written_is_left_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "can_be_written", lambda _: False)
    tmp_path.chmod(0o755)
    places.prepare(places.find(str(tmp_path)))
    assert (stat.S_IMODE(tmp_path.stat().st_mode), list(tmp_path.iterdir())) == (0o755, [])
