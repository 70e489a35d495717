"""A screen as SVG and as PNG, without anything from outside.

Job: draw. Must not know: which screen it is, how it came about.
"""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import TerminalTheme

from pollconsole.console import ConsoleApp
from pollconsole.theme_choice import Colours

RENDER_S: Final = 60
"""Real time that a program may take to draw one picture."""
CELL: Final = (12.0, 24.4)
"""Of one character, in the units of the picture, as rich draws it."""
MARGIN: Final = 8
COLOURS_IN_PNG: Final = 256

Rgb = tuple[int, int, int]
_SIXTEEN: Final[list[Rgb]] = [
    *((0, 0, 0), (205, 49, 49), (13, 188, 121), (229, 229, 16), (36, 114, 200), (188, 63, 188), (17, 168, 205)),
    *((229, 229, 229), (102, 102, 102), (241, 76, 76), (35, 209, 139), (245, 245, 67), (59, 142, 234), (214, 112, 214)),
    *((41, 184, 219), (255, 255, 255)),
]
ON_DARK: Final = TerminalTheme((12, 12, 12), (204, 204, 204), _SIXTEEN[:8], _SIXTEEN[8:])
ON_LIGHT: Final = TerminalTheme((255, 255, 255), (40, 40, 40), _SIXTEEN[:8], _SIXTEEN[8:])
"""A terminal's own sixteen colours, as one of the common ones has them."""

_SVG: Final = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 WIDE HIGH" width="WIDE" height="HIGH">
<style>
.{unique_id}-matrix {{ font-family: "DejaVu Sans Mono", "Liberation Mono", Menlo, Consolas, monospace;
  font-size: {char_height}px; line-height: {line_height}px; white-space: pre; }}
{styles}
</style>
<rect width="WIDE" height="HIGH" fill="PAPER"/>
<g transform="translate(MARGIN, MARGIN)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def as_svg(app: ConsoleApp, name: str, terminal: TerminalTheme) -> str:
    """The screen on top, drawn with what every viewer has. *terminal*: what the terminal's own colours are."""
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
    console.print(app.screen._compositor.render_update(full=True, simplify=True))
    ground = app.worn.background
    paper = ground.hex if ground.ansi is None and app.colours is Colours.FULL else terminal.background_color.hex
    frame = _SVG.replace("PAPER", paper).replace("MARGIN", str(MARGIN))
    for mark, cells, cell in (("WIDE", width, CELL[0]), ("HIGH", height, CELL[1])):
        frame = frame.replace(mark, f"{cells * cell + 2 * MARGIN:.0f}")
    svg = console.export_svg(
        theme=terminal,
        code_format=frame,
        font_aspect_ratio=0.6,
        unique_id=name,
    )
    return _smaller(svg, paper)


def _smaller(svg: str, paper: str) -> str:
    """Without what is not seen: cells of the paper's own colour, clips of text that keeps to its length, line ends."""
    for unseen in (
        rf'<rect fill="{paper}"[^>]*shape-rendering[^>]*/>',
        r' clip-path="url\([^)]*\)"',
        r"<text [^>]*>\s*</text>",
    ):
        svg = re.sub(unseen, "", svg)
    svg = svg.replace("><text", ">\n<text").replace("><rect", ">\n<rect")
    return "\n".join(line.rstrip() for line in svg.splitlines() if line.strip()) + "\n"


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
        subprocess.run([found, str(svg), "-o", str(png)], check=True, timeout=RENDER_S)
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
            subprocess.run(command, check=True, timeout=RENDER_S, capture_output=True)
            return True
    return False
