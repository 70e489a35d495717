"""The program with one thing about it made wrong: run as `python program.py HOW ARGUMENTS...`.

HOW: `plain` (nothing), `widget` (a widget's drawing fails), `command` (a command fails), `later` (a task that nobody
awaits, a thread and a finaliser fail), `abort` (the process aborts itself while its core runs), `picture` (the console
writes SVG pictures of what it shows), `late` (its clock is two days ahead). What fails holds every secret of the file
SECRETS in locals and message.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

HOW, SECRETS, PICTURES, CONTROL = "TRUST_HOW", "TRUST_SECRETS", "TRUST_PICTURES", "TRUST_CONTROL"


def fail() -> None:
    """As code of ours that holds secrets, and quotes them.

    In the control they are words that nothing knows as secrets, and the error's class is named by one.
    """
    from pollcore.adapters.pinned import PinnedSecret

    words = Path(os.environ[SECRETS]).read_text().splitlines()
    if os.environ.get(CONTROL):
        raise type(words[0], (RuntimeError,), {})(f"cannot use {words}")
    held = [PinnedSecret(word, ()) for word in words]
    assert all(one.scrubber for one in held)
    header = {"authorization": f"Bearer {words}"}
    raise RuntimeError(f"cannot use {header} {held} {' '.join(words)} at https://h.example/p?token={words[0]}")


def wrong_widget() -> None:
    from pollconsole.screens.operation_table import OperationTable

    drawn = OperationTable.render_line

    def render_line(self: Any, y: int) -> Any:
        if y == 3:
            fail()
        return drawn(self, y)

    OperationTable.render_line = render_line  # type: ignore[method-assign]


def wrong_command() -> None:
    from pollconsole import bridge

    async def operations(*_: Any, **__: Any) -> Any:
        fail()

    bridge.operations = operations


def wrong_later() -> None:
    import asyncio
    import gc
    import threading

    from pollconsole import bridge

    class Loud:
        def __repr__(self) -> str:
            return Path(os.environ[SECRETS]).read_text()

        def __del__(self) -> None:
            fail()

    async def later() -> None:
        fail()

    async def operations(*_: Any, **__: Any) -> Any:
        task = asyncio.create_task(later())
        await asyncio.sleep(0.05)
        del task
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
        Loud()
        # slow callbacks are told by asyncio's debug mode, with their arguments
        asyncio.get_running_loop().call_soon(lambda _: __import__("time").sleep(0.3), Loud.__repr__(Loud.__new__(Loud)))
        await asyncio.sleep(0.1)
        gc.collect()
        return []

    bridge.operations = operations


def wrong_abort() -> None:
    import signal
    import threading

    def end() -> None:
        secret = Path(os.environ[SECRETS]).read_text()
        assert secret
        os.kill(os.getpid(), signal.SIGABRT)

    threading.Timer(3.0, end).start()


def pictures() -> None:
    from pollconsole.console import ConsoleApp

    folder = Path(os.environ[PICTURES])
    tick = ConsoleApp._tick

    def drawn(self: Any, *more: Any) -> Any:
        (folder / f"{len(list(folder.iterdir()))}.svg").write_text(self.export_screenshot())
        return tick(self, *more)

    ConsoleApp._tick = drawn  # type: ignore[method-assign]


def two_days_later() -> None:
    import msgspec

    from pollcore.adapters.system import SystemClock
    from pollcore.assembly import parts as assembled
    from pollcore.facts import DAY, Instant, Moment

    class Late(SystemClock):
        def now(self) -> Moment:
            found = super().now()
            return msgspec.structs.replace(found, wall=Instant(found.wall + 2 * DAY))

    assembled.SystemClock = Late  # type: ignore[attr-defined,misc]


if __name__ == "__main__":
    how = os.environ.pop(HOW, "plain")
    {
        "plain": lambda: None,
        "widget": wrong_widget,
        "command": wrong_command,
        "later": wrong_later,
        "abort": wrong_abort,
        "picture": pictures,
        "late": two_days_later,
    }[how]()
    sys.argv[0] = "pollconsole"
    from pollconsole.__main__ import main

    main()
