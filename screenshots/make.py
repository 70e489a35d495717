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
import contextlib
import io
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

HERE: Final = Path(__file__).resolve().parent
for _floor in ("core", "console"):
    sys.path.insert(0, str(HERE.parent / _floor))

from rich.console import Console  # noqa: E402
from rich.terminal_theme import TerminalTheme  # noqa: E402
from textual.pilot import Pilot  # noqa: E402

from pollconsole import bridge, demo  # noqa: E402
from pollconsole.console import ConsoleApp  # noqa: E402
from pollconsole.core_thread import CoreThread  # noqa: E402
from pollconsole.demo.clock import DemoClock  # noqa: E402
from pollconsole.driver import headless_guard_driver  # noqa: E402
from pollconsole.guard import GuardTimes, State  # noqa: E402
from pollconsole.screens.card import CardScreen  # noqa: E402
from pollconsole.theme_choice import Colours  # noqa: E402
from pollconsole.themes import SHIPPED  # noqa: E402
from pollconsole.widgets import LinesView  # noqa: E402
from pollcore.facts import Instant, StopReason  # noqa: E402

SEED: Final = 7
BEGIN: Final = Instant(1_772_442_000_000)
"""2026-03-02T09:00:00Z."""
EARLY_S: Final = 46.0
LATE_S: Final = 170.0
"""Demo times at which pictures are taken: when some things have gone wrong, and when most have."""
SETTLE_S: Final = 1.5
"""Real time in which what was under way when time stopped is recorded."""
LIMIT_S: Final = 120.0
"""Real time that any one thing may take."""
SMALL: Final = (80, 24)
LARGE: Final = (140, 40)
PNGS: Final = ("live-80x24", "card-80x24", "detail-80x24", "detail-140x40")
MAX_PNG: Final = 150_000
"""Bytes; a picture is looked at over a network."""
CARD_OF: Final = (StopReason.REQUEST_BUDGET_EXHAUSTED, StopReason.DEADLINE_EXCEEDED, StopReason.UNKNOWN_STATE)
"""The card that is drawn answers a question of the first of these reasons that is open."""

Rgb = tuple[int, int, int]
_SIXTEEN: Final[list[Rgb]] = [
    *((0, 0, 0), (205, 49, 49), (13, 188, 121), (229, 229, 16), (36, 114, 200), (188, 63, 188), (17, 168, 205)),
    *((229, 229, 229), (102, 102, 102), (241, 76, 76), (35, 209, 139), (245, 245, 67), (59, 142, 234), (214, 112, 214)),
    *((41, 184, 219), (255, 255, 255)),
]
ON_DARK: Final = TerminalTheme((12, 12, 12), (204, 204, 204), _SIXTEEN[:8], _SIXTEEN[8:])
ON_LIGHT: Final = TerminalTheme((255, 255, 255), (40, 40, 40), _SIXTEEN[:8], _SIXTEEN[8:])
"""A terminal's own sixteen colours, as one of the common ones has them."""

CELL: Final = (12.0, 24.4)
"""Of one character, in the units of the picture, as rich draws it."""
MARGIN: Final = 8
COLOURS_IN_PNG: Final = 256

_SVG: Final = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 WIDE HIGH" width="WIDE" height="HIGH">
<style>
.{unique_id}-matrix {{ font-family: "DejaVu Sans Mono", "Liberation Mono", Menlo, Consolas, monospace;
  font-size: {char_height}px; line-height: {line_height}px; white-space: pre; }}
{styles}
</style>
<defs>
{lines}
</defs>
<rect width="WIDE" height="HIGH" fill="PAPER"/>
<g transform="translate(MARGIN, MARGIN)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


class QuickApp(ConsoleApp):
    """The console with a guard that waits less; its rules are the same."""

    guard_times = GuardTimes(quiet=0.12, alone=0.05, quiet_again=0.08, stall=30.0)


class Studio(NamedTuple):
    """What a scene works with."""

    app: ConsoleApp
    pilot: Pilot[Any]
    size: tuple[int, int]


Scene = Callable[[Studio], Awaitable[None]]


class Picture(NamedTuple):
    """One file: what is done before it is taken, at which size, in which theme."""

    name: str
    scene: Scene
    size: tuple[int, int] = SMALL
    theme: str = "dark"
    at_s: float = EARLY_S
    terminal: TerminalTheme = ON_DARK
    colours: Colours = Colours.FULL


# --- scenes -----------------------------------------------------------------------------------------------------------


async def until(pilot: Pilot[Any], condition: Callable[[], Any], what: str) -> None:
    """Let the app run until *condition* holds. Raises TimeoutError."""
    end = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"did not happen within {LIMIT_S:.0f} s: {what}")
        await pilot.pause(0.05)


async def live(studio: Studio) -> None:
    await studio.pilot.press("g", "down", "down")


async def filtered(studio: Studio) -> None:
    await studio.pilot.press("slash", *"status:waiting")


async def needs_you(studio: Studio) -> None:
    await studio.pilot.press("2")


async def decisions(studio: Studio) -> None:
    await studio.pilot.press("E")


async def approvals(studio: Studio) -> None:
    await studio.pilot.press("A")


async def help_(studio: Studio) -> None:
    await studio.pilot.press("question_mark")


async def messages(studio: Studio) -> None:
    await studio.pilot.press("p", "p", "q", "M")


async def themes(studio: Studio) -> None:
    await studio.pilot.press("T")


async def detail(studio: Studio) -> None:
    studio.app.opens("detail", asked_about(studio.app))


async def card(studio: Studio) -> None:
    """A card that was read to its end, at its beginning again."""
    app, pilot = studio.app, studio.pilot
    ids = [q.operation_id for q in app.state.board.wanted() if q.operation_id]
    app.opens("card", asked_about(app), ids)
    await until(pilot, lambda: isinstance(app.screen, CardScreen) and app.screen.shown, "the card is there")
    screen = app.screen
    assert isinstance(screen, CardScreen)
    body = screen.query_one("#card", LinesView)
    await until(pilot, lambda: body.size.height > 0, "the card is laid out")
    while not body.at_end:
        await pilot.press("pagedown")
        await pilot.pause(0.1)
    await armed(pilot, screen, 1)
    screen.action_ends(0)


async def confirm(studio: Studio) -> None:
    await card(studio)
    screen = studio.app.screen
    assert isinstance(screen, CardScreen)
    assert screen.shown is not None
    digit = next(each.key for each in screen.shown.card.choices if each.grants and each.unavailable is None)
    await studio.pilot.press(digit)
    await armed(studio.pilot, screen, 2)


async def armed(pilot: Pilot[Any], screen: CardScreen, step: int) -> None:
    await until(
        pilot,
        lambda: screen._view is not None and screen._view.step == step and screen._view.state is State.ARMED,
        f"step {step} of the card is armed",
    )


def asked_about(app: ConsoleApp) -> str:
    """The operation whose card is drawn."""
    questions = sorted(app.state.board.wanted(), key=lambda question: question.asked_at)
    for reason in CARD_OF:
        for question in questions:
            if question.reason is reason and question.operation_id:
                return question.operation_id
    raise LookupError("the demo asks nothing that is worth a picture")


SCREENS: Final[tuple[tuple[str, Scene, float], ...]] = (
    ("live", live, EARLY_S),
    ("filter", filtered, EARLY_S),
    ("themes", themes, EARLY_S),
    ("help", help_, EARLY_S),
    ("messages", messages, EARLY_S),
    ("needs-you", needs_you, LATE_S),
    ("decisions", decisions, LATE_S),
    ("approvals", approvals, LATE_S),
    ("detail", detail, LATE_S),
    ("card", card, LATE_S),
    ("confirm", confirm, LATE_S),
)
PICTURES: Final[tuple[Picture, ...]] = (
    *(Picture(f"{name}-{w}x{h}", scene, (w, h), at_s=at_s) for w, h in (SMALL, LARGE) for name, scene, at_s in SCREENS),
    *(Picture(f"theme-{name}", live, theme=name) for name in SHIPPED),
    Picture("theme-terminal-on-light", live, theme="terminal", terminal=ON_LIGHT),
    Picture("theme-no-colour", live, theme="monochrome", colours=Colours.NONE),
)

# --- taking -----------------------------------------------------------------------------------------------------------


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
        app = QuickApp(link, title="pollconsole demo", home=setup.home, colours=Colours.FULL)
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
    svg = as_svg(app, picture)
    while len(app.screen_stack) > 1:
        app.pop_screen()
        await pilot.pause(0.1)
    app.state.messages.clear()
    await pilot.press("escape", "1")
    await pilot.pause(0.1)
    return svg


def as_svg(app: ConsoleApp, picture: Picture) -> str:
    """The screen on top, drawn with what every viewer has."""
    width, height = app.size
    console = Console(
        width=width,
        height=height,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        record=True,
        legacy_windows=False,
    )
    console.print(app.screen._compositor.render_update(full=True))
    ground = app.worn.background
    paper = (
        ground.hex if ground.ansi is None and picture.colours is Colours.FULL else picture.terminal.background_color.hex
    )
    frame = _SVG.replace("PAPER", paper).replace("MARGIN", str(MARGIN))
    for mark, cells, cell in (("WIDE", width, CELL[0]), ("HIGH", height, CELL[1])):
        frame = frame.replace(mark, f"{cells * cell + 2 * MARGIN:.0f}")
    svg = console.export_svg(
        theme=picture.terminal,
        code_format=frame,
        font_aspect_ratio=0.6,
        unique_id=picture.name,
    )
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def to_png(svg: Path, png: Path) -> bool:
    """Draw *svg* with whatever this machine has; False where it has nothing."""
    drawn = _draw(svg, png)
    with contextlib.suppress(ImportError):
        from PIL import Image  # type: ignore[import-not-found, import-untyped, unused-ignore]

        if drawn:  # a screen has few colours: a palette makes a third of it
            whole = Image.open(png).convert("RGB")
            whole.quantize(COLOURS_IN_PNG, kmeans=2, dither=Image.Dither.NONE).save(png, optimize=True)
    return drawn


def _draw(svg: Path, png: Path) -> bool:
    with contextlib.suppress(ImportError, OSError):  # OSError: the binding without its library
        import cairosvg  # type: ignore[import-not-found, import-untyped, unused-ignore]

        cairosvg.svg2png(url=str(svg), write_to=str(png))
        return True
    if found := shutil.which("rsvg-convert"):
        subprocess.run([found, str(svg), "-o", str(png)], check=True, timeout=LIMIT_S)
        return True
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            first = svg.read_text("utf-8").split('viewBox="0 0 ')[1].split('"')[0].split()
            size = ",".join(str(round(float(each))) for each in first)
            command = [
                found,
                "--headless",
                "--hide-scrollbars",
                f"--window-size={size}",
                f"--screenshot={png}",
                str(svg),
            ]
            subprocess.run(command, check=True, timeout=LIMIT_S, capture_output=True)
            return True
    return False


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
