"""The console on terminals of every size, none at all included: it polls, rests, quits and heals on a resize."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.console.ptylib import Terminal
from tests.console.screens.fakes import FakeCore
from tests.console.screens.harness import QuickApp, console, lives_on, screen_text, until
from textual import events
from textual.geometry import Size

from pollconsole.screens.base import ConsoleScreen

LIMIT = 60.0
WATCHED_S = 2.0
WATCHES = 10
"""A console that has begun rests; how long it takes to begin is the machine's. An endless repaint never rests."""
MAX_CPU_PART = 0.5
"""Of one core, on a machine that others use; an endless repaint takes all of it."""
MAX_BYTES = 30_000
"""Two whole screens and the seconds that count; an endless repaint writes half a megabyte a second."""


@contextmanager
def opened(home: Path, columns: int, rows: int) -> Iterator[Terminal]:
    """The console on a pty that has this size before the console begins."""
    program = f"read go; stty rows {rows} cols {columns}; exec '{sys.executable}' -m pollconsole --home '{home}'"
    with Terminal(["/bin/sh", "-c", program], columns=80, rows=24) as terminal:
        terminal.send("\n")
        terminal.until(lambda: b"\x1b[?1049h" in terminal.raw, LIMIT, "the screen opens")
        yield terminal


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rests(terminal: Terminal) -> bool:
    """For a while it wrote little and took little of the processor."""
    written, used = len(terminal.raw), cpu_seconds(terminal.pid)
    terminal.run_for(WATCHED_S)
    wrote, took = len(terminal.raw) - written, cpu_seconds(terminal.pid) - used
    return wrote < MAX_BYTES and took < WATCHED_S * MAX_CPU_PART


SIZES = [(0, 0), (1, 1), (5, 3), (0, 24), (80, 0)]


@pytest.mark.rule("V3")
@pytest.mark.parametrize(("columns", "rows"), SIZES)
def test_on_a_terminal_of_any_size_the_console_polls_rests_and_heals_on_a_resize(
    tmp_path: Path, columns: int, rows: int
) -> None:
    with opened(tmp_path / "home", columns, rows) as terminal:
        terminal.until(lambda: (tmp_path / "home").exists(), LIMIT, "the core opens")
        assert any(rests(terminal) for _ in range(WATCHES)), "it draws without end"
        terminal.resize(100, 30)
        terminal.until_text("ACTIVE")
        terminal.until(lambda: "q quit" in terminal.text.split("\n")[29], LIMIT, "the last line is the last line")
        terminal.send("q")
        terminal.until_text("Q quits")
        terminal.send("Q")
        terminal.until(lambda: terminal.exit_code == 0, LIMIT, "it quits")


@pytest.mark.rule("V3")
def test_without_a_size_the_keys_quit(tmp_path: Path) -> None:
    with opened(tmp_path / "home", 0, 0) as terminal:
        terminal.until_text("ACTIVE")
        terminal.send("q")
        terminal.until_text("Q quits")
        terminal.send("Q")
        terminal.until(lambda: terminal.exit_code == 0, LIMIT, "it quits")


@pytest.mark.rule("V3")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("size", [(0, 0), (80, 24)])
def test_a_signal_ends_the_console_and_gives_the_terminal_back(
    tmp_path: Path, number: signal.Signals, size: tuple[int, int]
) -> None:
    with opened(tmp_path / "home", *size) as terminal:
        terminal.until_text("ACTIVE")
        os.kill(terminal.pid, number)
        terminal.until(lambda: terminal.exit_code is not None, LIMIT, "it ends")
        assert terminal.exit_code == 0
        assert b"\x1b[?1049l" in terminal.raw


async def test_a_second_size_that_comes_while_the_first_is_laid_out_is_the_one_that_stands(fake: FakeCore) -> None:
    async with console(fake.runner, app_class=QuickApp) as (app, pilot):
        screen = app.screen
        assert isinstance(screen, ConsoleScreen)
        laid_out: list[Any] = []
        stock = screen._refresh_layout
        last = Size(110, 36)

        def interrupted(*args: Any, **options: Any) -> None:
            laid_out.append(args)
            if len(laid_out) == 1:
                app._size = last
                screen.post_message(events.Resize(last, last))
            stock(*args, **options)

        screen._refresh_layout = interrupted  # type: ignore[method-assign]
        screen.post_message(events.Resize(Size(90, 30), Size(90, 30)))
        await until(pilot, lambda: len(laid_out) > 1, "it is laid out")
        await until(pilot, lambda: screen.size == last, "for the last size")
        await until(pilot, lambda: len(screen_text(app).splitlines()) == last.height, "it is drawn")
        await lives_on(app, pilot)
        settled = len(laid_out)
        await lives_on(app, pilot)
        assert len(laid_out) == settled
