"""Text of others is drawn, never obeyed, and never cut in silence."""

from __future__ import annotations

import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollconsole.environment import scrub_environment
from pollconsole.safe import is_drawn, safe

pytestmark = pytest.mark.rule("G4")

any_text = st.text(st.characters(codec=None), max_size=300)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain ASCII [brackets[/] stay", "plain ASCII [brackets[/] stay"),
        ("a\x1b[31mb", "a<1B>[31mb"),
        ("\x1b]52;c;aGk=\x07", "<1B>]52;c;aGk=<07>"),
        ("\x9b6n", "<9B>6n"),
        ("one\ntwo\r\n\tthree", "one<0A>two<0D><0A><09>three"),
        ("\u202egnp.exe", "<U+202E>gnp.exe"),
        ("a\u200bb\u2060\ufeff", "a<U+200B>b<U+2060><U+FEFF>"),
        ("line\u2028para\u2029", "line<U+2028>para<U+2029>"),
        ("\ud800", "<U+D800>"),
        ("\ue000\U000e0041", "<U+E000><U+E0041>"),
        ("hangul \u3164 filler", "hangul <U+3164> filler"),
        ("Привет 世界 € ½", "Привет 世界 € ½"),
        ("e\u0301", "é"),
        ("q\u0301\u0302\u0303\u0304", "q\u0301\u0302<U+0303><U+0304>"),
        ("", ""),
        ("\x7f", "<7F>"),
    ],
)
def test_what_a_terminal_would_obey_is_written_out(raw: str, shown: str) -> None:
    assert safe(raw) == shown


def test_a_text_box_keeps_its_lines() -> None:
    assert safe("one\r\ntwo\n\tthree\rfour", multiline=True) == "one\ntwo\n    three<0D>four"


def test_a_cut_shows_and_splits_no_written_out_character() -> None:
    assert safe("abcdef", 6) == "abcdef"
    assert safe("abcdefg", 6) == "abcde…"
    assert safe("abc\x1bdef", 6) == "abc…"
    assert safe("x" * 10_000, 1) == "…"
    with pytest.raises(ValueError, match="at least 1"):
        safe("x", 0)


def test_a_long_run_of_marks_costs_no_more_than_the_limit_allows() -> None:
    shown = safe("a" + "\u0301\u0316" * 1_000_000, 50)
    assert len(shown) <= 50
    assert shown.endswith("…")


@given(any_text, st.integers(1, 400), st.booleans())
def test_whatever_comes_in_only_drawn_characters_come_out(text: str, limit: int, multiline: bool) -> None:
    shown = safe(text, limit, multiline=multiline)
    assert len(shown) <= limit
    assert all(is_drawn(character) or (multiline and character == "\n") for character in shown)
    kept = "".join(" " if unicodedata.category(c) in ("Mn", "Me") else "x" for c in shown)
    assert "   " not in kept


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=200))
def test_printable_ascii_is_left_as_it_is(text: str) -> None:
    assert safe(text) == text


@pytest.mark.rule("G3")
def test_the_environment_loses_every_key_of_textual() -> None:
    environ = {"TEXTUAL_PRESS": "y", "TEXTUAL_DRIVER": "evil:Driver", "textual_debug": "1", "TERM": "xterm"}
    assert scrub_environment(environ) == ("TEXTUAL_DRIVER", "TEXTUAL_PRESS", "textual_debug")
    assert environ == {"TERM": "xterm"}


def test_neither_module_imports_anything_heavy() -> None:
    code = (
        "import sys; before = set(sys.modules); import pollconsole.safe, pollconsole.environment;"
        "new = {name.split('.')[0] for name in set(sys.modules) - before};"
        "print(sorted(new & {'textual', 'rich', 'httpx', 'sqlite3', 'msgspec', 'asyncio'}))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=90, check=True)
    assert result.stdout.strip() == "[]"
