"""A frame written as a difference leaves the same picture as the frame written whole, in fewer bytes."""

from __future__ import annotations

import io

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.geometry import Region
from textual.strip import Strip

from pollconsole.frame_diff import Picture
from pollconsole.terminal_output import wall

WIDTH, HEIGHT = 24, 4
CONSOLE = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor", width=WIDTH, height=HEIGHT)
STYLES = st.sampled_from([Style(), Style(color="#c9d1d9", bgcolor="#12161b"), Style(color="#8fb3c7"), Style(bold=True)])
WORDS = st.text(st.sampled_from("ab 0123456789:/…出口│"), max_size=WIDTH)


@st.composite
def lines(draw: st.DrawFn) -> Strip:
    pieces = draw(st.lists(st.tuples(WORDS, STYLES), max_size=4))
    return Strip([Segment(words, style) for words, style in pieces]).adjust_cell_length(WIDTH, draw(STYLES))


FRAMES = st.lists(lines(), min_size=HEIGHT, max_size=HEIGHT)


def whole(strips: list[Strip]) -> LayoutUpdate:
    return LayoutUpdate([[strip] for strip in strips], Region(0, 0, WIDTH, HEIGHT))


def span(strips: list[Strip], y: int, first: int, last: int) -> ChopsUpdate:
    return ChopsUpdate([{0: strip} for strip in strips], [(y, first, last)], [[WIDTH]] * HEIGHT)


class Terminal:
    """What a terminal shows after these bytes: characters and colours of every cell."""

    def __init__(self) -> None:
        self.screen = pyte.Screen(WIDTH, HEIGHT)
        self.stream = pyte.Stream(self.screen)

    def show(self, written: str) -> None:
        assert wall(written) == written  # nothing but what this program may write
        self.stream.feed(written)

    @property
    def cells(self) -> list[list[tuple[str, str, str, bool]]]:
        buffer = self.screen.buffer
        return [
            [(cell.data, cell.fg, cell.bg, cell.bold) for cell in (buffer[y][x] for x in range(WIDTH))]
            for y in range(HEIGHT)
        ]


@pytest.mark.rule("V1")
@given(st.lists(FRAMES, min_size=1, max_size=5))
def test_after_any_frames_the_terminal_shows_what_whole_frames_would_show(frames: list[list[Strip]]) -> None:
    picture, patched, redrawn = Picture(), Terminal(), Terminal()
    for strips in frames:
        patched.show(picture.write(whole(strips), CONSOLE))
        redrawn.show(whole(strips).render_segments(CONSOLE).replace("\n", ""))
        assert patched.cells == redrawn.cells


@pytest.mark.rule("V1")
@given(FRAMES, FRAMES, st.integers(0, HEIGHT - 1), st.integers(0, WIDTH - 1), st.integers(1, WIDTH))
def test_a_span_draws_at_least_itself_and_is_never_drawn_twice(
    before: list[Strip], after: list[Strip], y: int, first: int, cells: int
) -> None:
    picture, terminal, wanted = Picture(), Terminal(), Terminal()
    terminal.show(picture.write(whole(before), CONSOLE))
    wanted.show(whole(after).render_segments(CONSOLE).replace("\n", ""))
    last = min(WIDTH, first + cells)
    terminal.show(picture.write(span(after, y, 0, WIDTH), CONSOLE))
    assert terminal.cells[y] == wanted.cells[y]
    assert picture.write(span(after, y, first, last), CONSOLE) == ""
    others = [n for n in range(HEIGHT) if n != y]
    kept = Terminal()
    kept.show(whole(before).render_segments(CONSOLE).replace("\n", ""))
    assert [terminal.cells[n] for n in others] == [kept.cells[n] for n in others]


def test_what_stands_there_already_is_not_written_and_one_second_of_a_countdown_is_one_character() -> None:
    style = Style(color="#c9d1d9", bgcolor="#12161b")
    picture = Picture()
    first = [Strip([Segment("op-1  running      24:53", style)])] * HEIGHT
    assert picture.write(whole(first), CONSOLE) != ""
    assert picture.write(whole(first), CONSOLE) == ""
    later = [Strip([Segment("op-1  running      24:52", style)])] * HEIGHT
    written = picture.write(whole(later), CONSOLE)
    assert written.count("48;2;") == 1  # the colour is named once
    assert written.count("H2") == HEIGHT
    assert len(written) < HEIGHT * 8 + 60


def test_after_forgetting_everything_is_written_again() -> None:
    picture = Picture()
    frame = whole([Strip([Segment("x" * WIDTH)])] * HEIGHT)
    first = picture.write(frame, CONSOLE)
    picture.forget()
    assert picture.write(frame, CONSOLE) == first
