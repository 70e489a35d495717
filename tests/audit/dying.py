"""One step on a home whose keys lie in a file, in a process of its own that kills itself at its n-th durable step.

Run: python -m tests.audit.dying HOME archive|rotate|forget N. Steps: syncs of files and folders, links, replaced files,
removed files, commits. N 0: never. Ends with 0 and prints how many steps there were.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from pollcore.adapters.audit_archive import archive_ended
from pollcore.adapters.audit_epochs import rotate
from pollcore.adapters.store.transaction import Writer
from pollcore.assembly import open_core
from pollcore.facts import DAY, Instant, Moment
from tests.audit.dying_clock import LateClock

count = 0


def watched(owner: Any, name: str, at: int) -> None:
    """Kill this process before and after each call, where it is the *at*-th such moment."""
    real = getattr(owner, name)

    def call(*args: Any, **more: Any) -> Any:
        step(at)
        made = real(*args, **more)
        step(at)
        return made

    setattr(owner, name, call)


def step(at: int) -> None:
    """One more moment."""
    global count
    count += 1
    if count == at:
        os.kill(os.getpid(), signal.SIGKILL)


async def body(home: Path, what: str) -> None:
    async with open_core(home, kind="cli", clock=LateClock()) as core:
        await core.audit.load(core.store)
        now: Moment = core.clock.now()
        if what == "archive":
            await archive_ended(
                core.audit, core.store, core.home.database, now, before=Instant(now.wall - 5 * DAY),
                target=None, dry_run=False, operator="ops",
            )  # fmt: skip
        elif what == "rotate":
            await rotate(core.audit, core.store, now, "test")
        else:
            from pollconsole.bridge import proof

            await proof.forget(core, 0, "kept long enough")


def main() -> int:
    home, what, at = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    places: list[tuple[Any, str]] = [
        (os, "fsync"), (os, "link"), (Path, "replace"), (Path, "unlink"), (Writer, "_commit"),
    ]  # fmt: skip
    for owner, name in places:
        watched(owner, name, at)
    asyncio.run(body(home, what))
    sys.stdout.write(f"{count}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
