"""Nothing that a terminal would obey gets out unless we wrote it, and the watch sees only what was really written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from pollconsole.terminal_output import FrameWatch, HarmlessLines, plain, wall

pytestmark = pytest.mark.rule("G4")
BLACK = Color(0, 0, 0)


@pytest.mark.parametrize(
    "data",
    [
        "\x1b[?1049h\x1b[?25l\x1b[?1004h\x1b[>25u\x1b[?2026$p\x1b[?2048$p\x1b[?7l\x1b[?2004h",
        "\x1b[?2026h\x1b[1;1H\x1b[38;2;1;2;3;48;5;17mtext\x1b[0m\n\x1b[2;1H",
        "\x1b[<u\x1b[?1049l",
        "\x07",
        "\x1b]52;c;aGk=\x07",
        "\x1b]2;pollconsole - 3 waiting\x1b\\",
        "\x1b]22;pointer\x07",
        "世界 é …",
    ],
)
def test_what_the_console_writes_passes_unchanged(data: str) -> None:
    assert wall(data) == data


@pytest.mark.parametrize(
    "inside",
    [
        "\x1b]52;c;aGk=\x07",
        "\x1b]0;title\x07",
        "\x1b]8;;http://x/\x1b\\",
        "\x1b[6n",
        "\x1b[c",
        "\x1b[>q",
        "\x1bP$qm\x1b\\",
        "\x1b]11;?\x07",
        "\x1bc",
        "\x1b7",
        "\x1b[?1000;25h",
        "\x1b[5i",
        "\x9b6n",
        "\x00\x08\x7f",
        "\x1b",
    ],
)
def test_a_sequence_in_drawn_text_is_taken_apart_where_it_can_be_seen(inside: str) -> None:
    out = wall(f"\x1b[1;1Hstatus {inside} end")
    assert out.startswith("\x1b[1;1Hstatus ")
    assert out.endswith(" end")
    assert "\x1b" not in out[6:]
    assert "␛" in out or "�" in out


@given(st.text(max_size=200))
def test_no_text_gets_a_foreign_sequence_through_the_wall(text: str) -> None:
    assert wall(wall(text)) == wall(text)
    assert plain(wall("x" + text)).isprintable() or any(ord(c) > 0xA0 for c in text)


def test_the_line_filter_keeps_styles_and_cells_and_drops_what_has_none() -> None:
    style = Style(bold=True)
    segments = [Segment("ok", style), Segment("a\x1b[31mb\u202ec\u200b世", style), Segment("\ue000", None)]
    out = HarmlessLines().apply(segments, BLACK)
    assert [segment.text for segment in out] == ["ok", "a[31mbc世", "�"]
    assert out[1].style == style
    assert sum(segment.cell_length for segment in out) == sum(segment.cell_length for segment in segments)


def test_a_clean_line_is_passed_on_as_it_is() -> None:
    segments = [Segment("ok"), Segment("fine")]
    assert HarmlessLines().apply(segments, BLACK) is segments


def frame(*rows: str) -> str:
    return "".join(f"\x1b[{number};1H\x1b[1m{row}\x1b[0m   \n" for number, row in enumerate(rows, 1))


def test_a_card_is_seen_when_marker_and_all_lines_were_written() -> None:
    watch = FrameWatch()
    watch.begin("card 1234.5", ["Operation: op-1", "a line that is wrapped", "last"])
    watch.wrote(frame("Operation: op-1", "a line that", "is wrapped", "card 1234.5"))
    assert (watch.complete, watch.missing) == (False, "last")
    watch.wrote(frame("last"))
    assert (watch.complete, watch.missing) == (True, None)


def test_lines_without_the_marker_prove_nothing() -> None:
    watch = FrameWatch()
    watch.begin("card 1234.5", ["Operation: op-1"])
    watch.wrote(frame("Operation: op-1"))
    assert not watch.complete
    assert watch.missing is None


def test_a_text_cut_by_the_edge_is_not_seen() -> None:
    watch = FrameWatch()
    watch.begin("card 1234.5", ["Host: api.acme.example"])
    watch.wrote(frame("Host: api.ac", "card 1234.5"))
    assert watch.missing == "Host: api.acme.example"


def test_colours_within_a_line_do_not_hide_it() -> None:
    watch = FrameWatch()
    watch.begin("card 1234.5", ["State: UNKNOWN"])
    watch.wrote("\x1b[1;1HState: \x1b[31mUNK\x1b[1mNOWN\x1b[0m\x1b[2;1Hcard 1234.5")
    assert watch.complete


def test_lines_seen_before_need_no_second_look_only_when_told_so() -> None:
    watch = FrameWatch()
    watch.begin("card 1234.1", ["first", "second"])
    watch.wrote(frame("first", "second", "card 1234.1"))
    watch.begin("card 1234.2", ["first", "second", "third"], again=True)
    watch.wrote(frame("third", "card 1234.2"))
    assert watch.complete
    watch.begin("card 1234.3", ["first"])
    watch.wrote(frame("card 1234.3"))
    assert not watch.complete
