"""The pictures of the screens: whole XML, nothing from outside, small, and made by one command."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from pollconsole.themes import SHIPPED

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "screenshots"
PICTURES = sorted(FOLDER.glob("*.svg"))
IN_THE_README = ("live-80x24.png", "card-80x24.png", "detail-140x40.png")
SPACE = "http://www.w3.org/2000/svg"
MAX_PNG = 150_000
LIMIT_S = 240


def outside(svg: str) -> list[str]:
    """What a viewer would fetch or run. Words that are drawn are no addresses, whatever they say."""
    found: list[str] = []
    for element in ElementTree.fromstring(svg).iter():
        tag = element.tag.removeprefix(f"{{{SPACE}}}")
        if tag not in ("svg", "style", "defs", "clipPath", "rect", "g", "text"):
            found.append(f"<{tag}>")
        values = list(element.attrib.items())
        if tag == "style":
            values.append(("style", element.text or ""))
        for name, value in values:
            without = re.sub(r"url\(#[\w-]+\)", "", value)
            if name.startswith("on") or re.search(r"url\(|@import|@font-face|//|data:|javascript:", without):
                found.append(f"{tag}.{name}: {value[:80]}")
    return found


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_a_picture_is_whole_xml_and_fetches_nothing(path: Path) -> None:
    svg = path.read_text("utf-8")
    assert outside(svg) == []
    root = ElementTree.fromstring(svg)
    assert root.tag == f"{{{SPACE}}}svg"
    assert len([*root.iter(f"{{{SPACE}}}text")]) > 5


def test_the_measure_sees_what_a_stock_screenshot_fetches() -> None:
    stock = f'<svg xmlns="{SPACE}"><style>@font-face {{ src: url("https://cdn.example/a.woff") }}</style></svg>'
    assert outside(stock)
    assert outside(f'<svg xmlns="{SPACE}"><image href="https://cdn.example/a.png"/></svg>')
    assert outside(f'<svg xmlns="{SPACE}"><rect clip-path="url(#a)"/><text>http://127.0.0.1</text></svg>') == []


def test_every_screen_stands_there_at_both_sizes_and_every_theme_once() -> None:
    names = {path.stem for path in PICTURES}
    screens = ("live", "needs-you", "filter", "decisions", "approvals", "detail", "card", "confirm", "group", "members")
    beside = ("help", "messages", "themes", "settings", "providers", "contract", "credentials", "audit", "log")
    gate = ("call-card", "session-card", "first-use-card", "mode-card")
    wanted = {f"{each}-{size}" for each in (*screens, *beside, *gate) for size in ("80x24", "140x40")}
    assert wanted <= names
    assert {f"theme-{name}" for name in SHIPPED} <= names


@pytest.mark.parametrize("name", IN_THE_README)
def test_the_readmes_pictures_are_there_and_small(name: str) -> None:
    data = (FOLDER / name).read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert len(data) <= MAX_PNG
    width, height = struct.unpack(">II", data[16:24])
    columns, rows = (int(each) for each in name.removesuffix(".png").rpartition("-")[2].split("x"))
    assert (width, height) == pytest.approx((columns * 12, rows * 24.4), abs=20)


@pytest.mark.rule("K1")
@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_no_picture_holds_what_looks_like_a_token(path: Path) -> None:
    """The demo's tokens are 32 characters of URL-safe base64; digests, which are lower-case hex, may be seen."""
    words = re.findall(r"(?<![\w-])[A-Za-z0-9_-]{32}(?![\w-])", path.read_text("utf-8"))
    assert [word for word in words if not re.fullmatch(r"[0-9a-f]+", word)] == []


@pytest.mark.slow
def test_one_command_makes_one_picture(tmp_path: Path) -> None:
    command = [sys.executable, str(FOLDER / "make.py"), "theme-light", "--into", str(tmp_path / "new")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    (made,) = (tmp_path / "new").iterdir()
    assert made.name == "theme-light.svg"
    svg = made.read_text("utf-8")
    assert outside(svg) == []
    drawn = "".join(ElementTree.fromstring(svg).itertext()).replace("\xa0", " ")
    assert "escalated" in drawn
    assert "decisions" in drawn


def test_a_name_of_no_picture_is_refused_with_those_there_are(tmp_path: Path) -> None:
    command = [sys.executable, str(FOLDER / "make.py"), "nothing", "--into", str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    assert ran.returncode == 2
    assert "live-80x24" in ran.stderr
    assert not [*tmp_path.iterdir()]
