"""A real worker on a disk that fills up: nothing is sent without its reservation, people are told, and it goes on."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.processes.herd import Herd, hand_over, lay_out, specs, until
from tests.processes.provider import CountingProvider
from tests.processes.verdict import settled, wrong

SMALL: Final = "2m"
ROOMY: Final = "200m"
"""More than the 64 MiB that must be free after a disk was full before anything is claimed."""
BLOCK: Final = 4096
JOBS: Final = 8
LIMIT_S: Final = 60.0


def mount(*arguments: str) -> bool:
    """Whether mount(8) did it."""
    done = subprocess.run(["mount", *arguments], capture_output=True, timeout=20, check=False)
    return done.returncode == 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("a file system of 2 MiB can be mounted by root on Linux alone")
    if not mount("-t", "tmpfs", "-o", f"size={SMALL},mode=0700", "none", str(place)):
        pytest.skip("this root may not mount a tmpfs (a container without CAP_SYS_ADMIN)")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], timeout=20, check=True)


def fill(place: Path, leave: int) -> None:
    """Write a file until *leave* bytes are free."""
    with (place / "filler").open("wb", buffering=0) as file:
        try:
            while os.statvfs(place).f_bavail * BLOCK > leave:
                file.write(bytes(BLOCK))
        except OSError:
            pass


@pytest.mark.slow
@pytest.mark.rule("B3", "O6", "O1")
async def test_a_full_disk_stops_all_sending_says_so_and_goes_on_when_there_is_room(disk: Path, tmp_path: Path) -> None:
    wanted = specs(random.Random(3), JOBS, deadline_s=90)
    with CountingProvider(dict.fromkeys(wanted, ("wait",))) as provider:
        lay_out(disk / "home", provider.url)
        await hand_over(disk / "home", wanted)
        with Herd(disk / "home", tmp_path, 1) as herd:
            worker = herd.workers[0]
            herd.wait_ready()
            until(lambda: sum(provider.seen.values()) >= 4, "requests are out")
            fill(disk, leave=0)
            until(lambda: "nothing is sent: " in worker.said() and "the disk is full" in worker.said(), "it is told")
            quiet = dict(provider.seen)
            # a smaller file proves nothing: less than 64 MiB are free, so nothing may be claimed
            (disk / "filler").unlink()
            until(lambda: "less than 64 MiB free" in worker.said(), "it waits for room")
            assert dict(provider.seen) == quiet
            assert mount("-o", f"remount,size={ROOMY}", str(disk))
            until(lambda: "the store can be written again" in worker.said(), "it goes on")
            assert await settled(disk / "home", LIMIT_S)
            assert herd.end() == [0]
            assert sum(provider.seen.values()) > sum(quiet.values())
        assert await wrong(disk / "home", provider.seen, wanted) == []
