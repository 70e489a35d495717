"""Any bytes of a terminal become events or are dropped and counted; none ends the app, none is spelled out as keys."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events

from pollconsole import terminal_input
from pollconsole.terminal_input import MAX_PASTE, MAX_STRING, FenceReply, Parsed, Reader, Stray

pytestmark = pytest.mark.rule("G3")


def names(parsed: list[Parsed]) -> list[str]:
    messages = (item.message for item in parsed)
    return [each.key if isinstance(each, events.Key) else type(each).__name__ for each in messages]


def read(data: bytes) -> list[Parsed]:
    reader = Reader()
    parsed = reader.feed(data)
    return parsed + reader.flush()


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"1", "1"),
        (b"\x1b[49;;49u", "1"),
        (b"\x1b[38;2;49u", "1"),
        (b"\x1b[121;;121u", "y"),
        ("ф".encode(), "ф"),
        (b"\x1b", "escape"),
        (b"\x1b[A", "up"),
        (b"\x1bOA", "up"),
        (b"\x1b[[A", "f1"),
        (b"\x1b[57441;2u", "left_shift"),
    ],
)
def test_one_key_in_one_read_is_a_lone_key(data: bytes, name: str) -> None:
    parsed = read(data)
    assert names(parsed) == [name]
    assert parsed[0].isolated


@pytest.mark.parametrize(
    "data",
    [
        b"y\r",
        b"11",
        b"\x1b[0;;49:50u",
        b"1\x1b[",
        b"\x1b[I1",
        b"\x1b[?1;2c1",
        b"\x1by",
        b"\x1b[121;3u",
        b"\x1b[121;3;121u",
        b"\x1b[49;5;49u",
        b"\x1b[200~y\x1b[201~y",
    ],
)
def test_a_key_that_comes_with_anything_is_not_alone(data: bytes) -> None:
    assert not [item for item in read(data) if item.isolated and isinstance(item.message, events.Key)]


@pytest.mark.parametrize("data", [b"\x1by", b"\x1b[121;3u"])
def test_alt_y_is_not_y(data: bytes) -> None:
    assert names(read(data)) == ["alt+y"]


@pytest.mark.parametrize(
    "data",
    [
        b"\x1b[97;1:2u",
        b"\x1b[97:65;2;65u",
        b"\x1b[99999999999u",
        b"\x1b[1114112u",
        b"\x1b[97;;1114112u",
        b"\x1b[?1;2c",
        b"\x1b[>0;276;0c",
        b"\x1bP1$r0;97;40m\x1b\\",
        b"\x1bP>|XTerm(379)\x1b\\",
        b"\x1b]11;rgb:ffff/ffff/ffff\x07",
        b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\",
        b"\x1b_Gi=1;OK\x1b\\",
        b"\x1b[48;999999;999999;1;1t",
        b"\x1b[" + b"1;" * 100 + b"u",
        b"\x1b[M\xff",
        b"\x1b[201~",
    ],
)
def test_what_is_no_key_is_dropped_and_counted_and_types_nothing(data: bytes) -> None:
    reader = Reader()
    parsed = reader.feed(data) + reader.flush()
    assert not [item for item in parsed if isinstance(item.message, events.Key) and item.isolated]
    assert any(isinstance(item.message, Stray) for item in parsed)
    assert reader.dropped >= 1
    assert names(reader.feed(b"j")) == ["j"], "it must go on reading"


def test_a_cursor_report_is_an_answer_with_its_cell() -> None:
    (item,) = read(b"\x1b[17;42R")
    assert isinstance(item.message, FenceReply)
    assert (item.message.row, item.message.column) == (17, 42)


def test_a_paste_is_one_event_and_a_nul_in_it_is_gone() -> None:
    (item,) = read(b"\x1b[200~yes\x00\r\x1b[A please\x1b[201~")
    assert isinstance(item.message, events.Paste)
    assert item.message.text == "yes\r\x1b[A please"


def test_a_paste_that_never_ends_is_kept_apart_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_PASTE == 1 << 20
    monkeypatch.setattr(terminal_input, "MAX_PASTE", 1_000)
    reader = Reader()
    assert reader.feed(b"\x1b[200~" + b"y" * 1_010) == []
    assert reader.partial
    (item,) = reader.flush()
    assert isinstance(item.message, events.Paste)
    assert len(item.message.text) == 1_000
    assert not reader.partial


def test_a_control_string_that_never_ends_is_bounded() -> None:
    reader = Reader()
    parsed = reader.feed(b"\x1bP" + b"y" * MAX_STRING)
    assert names(parsed)[0] == "Stray"


def test_a_sequence_may_come_in_pieces() -> None:
    reader = Reader()
    assert reader.feed(b"\x1b[49") == []
    assert reader.partial
    assert names(reader.feed(b";;49u")) == ["1"]
    assert reader.feed("ф".encode()[:1]) == []
    assert reader.partial
    assert names(reader.feed("ф".encode()[1:])) == ["ф"]


def test_mouse_focus_and_resize_still_reach_the_app() -> None:
    assert names(read(b"\x1b[<0;5;5M\x1b[<0;5;5m\x1b[I\x1b[O")) == ["MouseDown", "MouseUp", "AppFocus", "AppBlur"]
    assert names(read(b"\x1b[48;24;80;480;800t")) == ["Resize"]
    assert names(read(b"\x1b[?2026;2$y")) == ["TerminalSupportsSynchronizedOutput"]
    assert names(read(b"\x1b[?2048;0$y")) in ([], ["InBandWindowResize"])


PIECES = tuple(bytes([byte]) for byte in b"\x1b[OP]1y;:uR~M<?t\x07\x00\x9b\xff") + tuple(
    piece.encode() for piece in ("\x1b[200~", "\x1b[201~", "\x1b\\", "99999999999", "$y", "48;", "世")
)


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.binary(max_size=6)), max_size=60))
def test_no_bytes_raise(pieces: list[bytes]) -> None:
    reader = Reader()
    for piece in pieces:
        reader.feed(piece)
    reader.flush()
    assert not reader._splitter.partial
    reader.feed(b"\x18")
    assert names(reader.feed(b"j"))[-1:] == ["j"]


@pytest.mark.slow
def test_two_hundred_thousand_odd_sequences_end_nothing() -> None:
    reader = Reader()
    chance = random.Random(9)
    for _ in range(200_000):
        reader.feed(b"".join(chance.choices(PIECES, k=chance.randrange(1, 8))))
    reader.flush()
    assert reader.dropped > 1000
    assert not reader._splitter.partial
