"""The console's life: the core's thread first, screens over it, screens again after a crash, both ended within bounds.

Job: open, run, restart, end. Must not know: what stands on the screens.

Source: spec V3.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pollconsole import bridge, collector, crash
from pollconsole.console import TITLE, ConsoleApp
from pollconsole.core_thread import CoreRunner, CoreThread, Glancer
from pollconsole.state import State
from pollcore.facts import NotFound, Refused

MAX_RESTARTS: Final = 3
RESTART_WINDOW_S: Final = 60.0
"""A screen that crashes more often than this stays down; the core goes on until ctrl-c."""
WATCH_S: Final = 1.0
SWITCH_S: Final = 0.0005
"""How long one thread may keep the interpreter from the other (Python's own: ten times as long)."""


def run_app(
    core_runner: CoreRunner,
    *,
    title: str = TITLE,
    read_only: bool = False,
    home: Path | None = None,
    glance: Glancer | None = None,
    home_named_by: str = "",
    prepare: Callable[[State], None] | None = None,
) -> int:
    """Run the console over the core that *core_runner* opens, until the operator quits; the exit code.

    The core's clock is the screen's clock, whatever it is. A crash of the screens restarts them over the running core.
    *prepare* puts into their state what only the caller knows, each time.
    """
    if os.environ.get("TERM", "") in ("", "dumb"):
        raise Refused(
            "the console needs a terminal that can move its cursor; "
            "'pollconsole --plain', 'pollconsole list' and 'run' do not"
        )
    # the screen's loop lets go of the interpreter several times for one key, and each time waits so long for the core
    sys.setswitchinterval(SWITCH_S)
    link = CoreThread(core_runner, read_only=read_only, glance=glance)
    link.start()
    try:
        return _screens(link, prepare, title=title, home=home, home_named_by=home_named_by)
    finally:
        if not link.stop():
            print("requests in flight were not answered in time; they stay counted", file=sys.stderr)


def _screens(
    link: CoreThread, prepare: Callable[[State], None] | None, *, title: str, home: Path | None, home_named_by: str
) -> int:
    crashes: list[float] = []
    said: str | None = None
    while True:
        app = ConsoleApp(link, title=title, home=home, home_named_by=home_named_by)
        if prepare is not None:
            prepare(app.state)
        if said is not None:
            app.state.say(f"{said}; the core went on", "danger")
            link.reload()
        app.run(mouse=False)  # rows are copied by the terminal's own selection
        if app.crashed is None:
            return 0 if app.return_code in (0, None) else app.return_code
        reference, path = crash.record(app.crashed, home)
        said = crash.told(app.crashed, reference, path)
        now = time.monotonic()
        crashes = [at for at in crashes if now - at < RESTART_WINDOW_S] + [now]
        if len(crashes) > MAX_RESTARTS or not link.alive:
            return _without_a_screen(link, said)


def _without_a_screen(link: CoreThread, said: str) -> int:
    """The screens cannot be drawn: the core goes on until ctrl-c."""
    collector.wake()
    print(said, file=sys.stderr)
    if link.alive:
        print("the core goes on without a screen; ctrl-c ends it", file=sys.stderr)
    with contextlib.suppress(KeyboardInterrupt):
        while link.alive:
            time.sleep(WATCH_S)
    return 1


def run_console(home: Path | None, read_only: bool, glance: Glancer | None = None) -> int:
    """`pollconsole`: the console on *home*; the exit code. *glance*: as `bridge.first_rows` gives it."""
    found = bridge.home_path(home)

    def runner(job: Any) -> None:
        bridge.with_core(home, job, kind="console", ready_later=True)

    named_by = bridge.home_source(home)
    return run_app(runner, read_only=read_only, home=found, glance=glance, home_named_by=named_by)


def run_demo() -> int:
    """`pollconsole demo`: the console on a throw-away home with a provider that misbehaves.

    `pollconsole.demo.start()` is a context manager; what it gives has `home` and `overrides` (of `open_core`).
    """
    try:
        demo: Any = importlib.import_module("pollconsole.demo")
        start = demo.start
    except (ImportError, AttributeError) as error:
        raise NotFound("this build has no demo") from error
    with start() as setup:

        def runner(job: Any) -> None:
            bridge.with_core(setup.home, job, kind="demo", ready_later=True, **setup.overrides)

        def prepare(state: State) -> None:
            state.guide = dict(demo.GUIDE)
            state.clock_name, state.home_lasts = "demo time", False
            state.reading = setup.clock.as_in_life

        # short: at 80 cells the status line must keep room for what is wrong
        title, named_by = f"demo x{setup.clock.factor:g}", "the demo, thrown away at its end"
        return run_app(runner, title=title, home=setup.home, home_named_by=named_by, prepare=prepare)
