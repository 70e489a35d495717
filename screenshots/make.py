"""Make the pictures of the screens: `python screenshots/make.py [NAME ...] [--into FOLDER]`, from the checkout.

One demo with a fixed seed and a fixed beginning runs without a terminal; when enough has gone wrong its time is stopped
and every screen is drawn at 80x24 and 140x40, the table in every theme as well. NAME: some pictures alone, by the
beginning of their name (`card`, `theme-`). Without --into they go beside this file.

SVG: no font and nothing else from outside, any monospace font will do. PNG, for the few in `PNGS`: by cairosvg
(`pip install cairosvg`), else rsvg-convert, else chromium; without any of them they are left out and that is said.
What stands on a picture repeats from run to run but for ages and countdowns. It takes about a minute.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent
for _floor in ("core", "console", "screenshots"):
    sys.path.insert(0, str(HERE.parent / _floor))

from drawing import as_svg, to_png  # noqa: E402
from scenes import PICTURES, SMALL, Picture, Studio, until  # noqa: E402
from textual.pilot import Pilot  # noqa: E402

from pollconsole import bridge, demo  # noqa: E402
from pollconsole.console import ConsoleApp  # noqa: E402
from pollconsole.core_thread import CoreThread  # noqa: E402
from pollconsole.demo.clock import DemoClock  # noqa: E402
from pollconsole.driver import headless_guard_driver  # noqa: E402
from pollconsole.guard_facts import GuardTimes  # noqa: E402
from pollconsole.theme_choice import Colours  # noqa: E402
from pollcore.facts import Instant  # noqa: E402

SEED: Final = 7
BEGIN: Final = Instant(1_772_442_000_000)
"""2026-03-02T09:00:00Z."""
SETTLE_S: Final = 1.5
"""Real time in which what was under way when time stopped is recorded."""
PNGS: Final = ("live-80x24", "card-80x24", "detail-80x24", "detail-140x40")
MAX_PNG: Final = 150_000
"""Bytes; a picture is looked at over a network."""


class QuickApp(ConsoleApp):
    """The console with a guard that waits less; its rules are the same."""

    guard_times = GuardTimes(quiet=0.12, alone=0.05, quiet_again=0.08, stall=30.0)


class Clock:
    """Lets the demo's time pass up to a moment, and no further."""

    def __init__(self, clock: DemoClock) -> None:
        self._clock = clock
        self._life_ms = clock._life_ms

    async def reach(self, pilot: Pilot[Any], at_s: float) -> None:
        """Go on to *at_s* of demo time, then stand still: the demo's own way to do so, before its time."""
        if self._clock.passed_s() < at_s:
            self._clock._life_ms = self._life_ms
            await until(pilot, lambda: self._clock.passed_s() >= at_s, f"the demo comes to {at_s:.0f} s")
            self._clock._life_ms = 0.0
            await pilot.pause(SETTLE_S)


@asynccontextmanager
async def studio() -> AsyncIterator[tuple[ConsoleApp, Pilot[Any], Clock]]:
    """A console over the demo."""
    with demo.start(seed=SEED, begin=BEGIN) as setup:

        def runner(job: Any) -> None:
            bridge.with_core(setup.home, job, kind="demo", **setup.overrides)

        link = CoreThread(runner)
        link.start()
        app = QuickApp(link, title="pollconsole demo", home=setup.home, colours=Colours.FULL, home_named_by="the demo")
        try:
            with headless_guard_driver():
                async with app.run_test(size=SMALL) as pilot:
                    yield app, pilot, Clock(setup.clock)
        finally:
            await asyncio.to_thread(link.stop)


async def take(app: ConsoleApp, pilot: Pilot[Any], picture: Picture) -> str:
    """One picture as SVG; the app stands on its first screen again afterwards."""
    app.colours = picture.colours
    app.wear(next(each for each in app.loaded_themes if each.name == picture.theme))
    await pilot.resize_terminal(*picture.size)
    await pilot.pause(0.2)
    app.state.board._figures = None  # counted once a second of a clock that stands still
    await picture.scene(Studio(app, pilot, picture.size))
    await pilot.pause(0.6)
    svg = as_svg(app, picture.name, picture.terminal)
    while len(app.screen_stack) > 1:
        app.pop_screen()
        await pilot.pause(0.1)
    app.state.messages.clear()
    await pilot.press("escape", "1")
    await pilot.pause(0.1)
    return svg


async def make(into: Path, names: list[str]) -> int:
    """Take the pictures; the exit code."""
    wanted = [each for each in PICTURES if not names or each.name.startswith(tuple(names))]
    if not wanted:
        print(f"no such picture; there are {', '.join(each.name for each in PICTURES)}", file=sys.stderr)
        return 2
    drawn = True
    async with studio() as (app, pilot, clock):
        for picture in sorted(wanted, key=lambda each: each.at_s):
            await clock.reach(pilot, picture.at_s)
            path = into / f"{picture.name}.svg"
            path.write_text(await take(app, pilot, picture), "utf-8")
    print(f"{len(wanted)} pictures in {into}")
    for picture in wanted:
        if picture.name in PNGS and drawn:
            png = into / f"{picture.name}.png"
            drawn = to_png(into / f"{picture.name}.svg", png)
            if drawn:
                print(png, f"{png.stat().st_size / 1000:.0f} kB", "TOO LARGE" * (png.stat().st_size > MAX_PNG))
    if not drawn:
        print("no PNG: neither cairosvg nor rsvg-convert nor chromium is here", file=sys.stderr)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="some pictures alone, by the beginning of their name")
    parser.add_argument("--into", type=Path, default=HERE, metavar="FOLDER")
    given = parser.parse_args()
    given.into.mkdir(parents=True, exist_ok=True)
    return asyncio.run(make(given.into, given.names))


if __name__ == "__main__":
    sys.exit(main())
