"""Themes of the user's own: read, refused by file, line and key, remembered; no file harms anything."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.color import Color

from pollconsole import theme_choice, theme_files, themes
from pollconsole.theme_choice import Colours
from pollcore.facts import Refused

DARK = themes.folder().joinpath("dark.toml").read_text("utf-8")
BASES = {each.name: each for each in themes.shipped()}
SMALL = 'extends = "dark"\nabout = "mine"\n\n[roles]\nattention = "#ff88ff"\n'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "themes").mkdir()
    return tmp_path


def put(home: Path, name: str, text: str | bytes) -> Path:
    path = home / "themes" / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def names(home: Path) -> list[str]:
    return [each.name for each in theme_files.available(home)[0]]


def only_complaint(home: Path) -> str:
    loaded, said = theme_files.available(home)
    assert [each.name for each in loaded] == list(themes.SHIPPED)
    (one,) = said
    return one


def test_without_a_folder_there_are_the_shipped_themes_and_no_complaint(tmp_path: Path) -> None:
    for home in (None, tmp_path, tmp_path / "nothing"):
        loaded, said = theme_files.available(home)
        assert ([each.name for each in loaded], said) == (list(themes.SHIPPED), [])
    assert len(themes.SHIPPED) >= 6


def test_a_theme_of_the_users_own_takes_what_it_does_not_say_from_the_one_that_it_extends(home: Path) -> None:
    put(home, "mine.toml", SMALL)
    loaded, said = theme_files.available(home)
    mine = loaded[-1]
    assert said == []
    assert (mine.name, mine.about) == ("mine", "mine")
    assert mine.roles["attention"].colour == Color.parse("#ff88ff")
    assert mine.roles["text"].colour == BASES["dark"].roles["text"].colour
    assert mine.theme.name != BASES["dark"].theme.name


def test_a_whole_file_of_ones_own_wins_over_the_shipped_theme_of_that_name(home: Path) -> None:
    put(home, "light.toml", DARK)
    loaded, said = theme_files.available(home)
    assert [each.name for each in loaded] == list(themes.SHIPPED)
    light = next(each for each in loaded if each.name == "light")
    assert light.dark
    assert said == []


def test_a_file_that_was_edited_gets_another_name_for_textual_which_never_reads_one_twice(home: Path) -> None:
    put(home, "mine.toml", SMALL)
    first = theme_files.available(home)[0][-1].theme.name
    put(home, "mine.toml", SMALL.replace("#ff88ff", "#ff99ff"))
    assert theme_files.available(home)[0][-1].theme.name != first


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        (SMALL.replace("#ff88ff", "#nope"), 5, "roles.attention"),
        (SMALL.replace('"#ff88ff"', "7"), 5, "roles.attention"),
        (SMALL.replace("#ff88ff", "auto"), 5, "roles.attention"),
        (SMALL.replace("#ff88ff", "#ff88ff80"), 5, "roles.attention"),
        (SMALL.replace("#ff88ff", "transparent"), 5, "roles.attention"),
        (SMALL.replace("#ff88ff", ""), 5, "roles.attention"),
        (SMALL.replace("#ff88ff", "#ff88ff on"), 5, "roles.attention"),
        (SMALL.replace("#ff88ff", "#ff88ff on #000 on #111"), 5, "roles.attention"),
        (SMALL.replace("#ff88ff", "#ff88ff blink"), 5, "roles.attention"),
        (SMALL.replace("#ff88ff", "ansi_red"), 5, "roles.attention"),
        (SMALL.replace("#ff88ff", "#ff88ff dim"), 5, "roles.attention"),
        (SMALL.replace("#ff88ff", "$primary"), 5, "roles.attention"),
        (SMALL.replace("attention", "atention"), 5, "roles.atention"),
        (SMALL + "[colours]\nprimary = '#123456 bold'\n", 7, "colours.primary"),
        (SMALL + "[colours]\nprimary = 'rgb(1,2,3)'\n", 7, "colours.primary"),
        (SMALL + "[grounds]\nhalo = '#000'\n", 7, "grounds.halo"),
        (SMALL.replace('about = "mine"', "about = 7"), 2, "about"),
        (SMALL.replace('"dark"', '"darkness"'), 1, "extends"),
        (SMALL.replace('"dark"', "[1]"), 1, "extends"),
        (SMALL.replace('about = "mine"', 'dark = "yes"'), 2, "dark"),
        (SMALL.replace('about = "mine"', "terminal = 1"), 2, "terminal"),
        (SMALL.replace('about = "mine"', "script = 1"), 2, "script"),
        (SMALL.replace('[roles]\nattention = "#ff88ff"', "roles = 3"), 4, "roles"),
    ],
)
def test_a_bad_field_is_named_by_file_line_and_key_with_a_way_out_and_the_theme_left_out(
    home: Path, text: str, line: int, key: str
) -> None:
    put(home, "mine.toml", text)
    said = only_complaint(home)
    assert said.startswith(f"themes/mine.toml:{line}: {key}: ") or (key == "roles" and f"{key}: missing" in said)
    assert re.search(r"write|known are|must be|needs terminal = true", said)
    assert said.endswith("the theme is left out")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"[roles", "themes/mine.toml: Expected"),
        (b"x = " + b"[" * 20_000, "themes/mine.toml: nested too deep"),
        (b"x = " + b"1" * 6_000, "themes/mine.toml: "),
        (b"dark = true\n# \xff\xfe", "themes/mine.toml:2: not UTF-8"),
        (b"#" * (theme_files.MAX_BYTES + 1), "more than 65,536 bytes"),
        (b"", "dark: must be true or false"),
        (b'about = "\x1b]52;c;eA==\x07"', "themes/mine.toml: "),
    ],
    ids=["half", "deep", "long number", "not UTF-8", "large", "empty", "escape"],
)
def test_a_file_that_is_no_theme_at_all_is_named_and_left_out(home: Path, data: bytes, said: str) -> None:
    put(home, "mine.toml", data)
    put(home, "good.toml", SMALL)
    loaded, complaints = theme_files.available(home)
    assert [each.name for each in loaded] == [*themes.SHIPPED, "good"]
    assert len(complaints) == 1
    assert said in complaints[0]
    assert complaints[0].isprintable()


def test_what_is_no_file_is_left_out_and_never_waited_for(home: Path) -> None:
    os.mkfifo(home / "themes" / "pipe.toml")
    (home / "themes" / "folder.toml").mkdir()
    (home / "themes" / "lost.toml").symlink_to(home / "nowhere")
    put(home, "Bad Name\x1b.toml", SMALL)
    put(home, "notes.txt", "not a theme")
    loaded, said = theme_files.available(home)
    assert [each.name for each in loaded] == list(themes.SHIPPED)
    assert len(said) == 4
    assert all(each.isprintable() for each in said)
    assert [each for each in said if "rename the file" in each]


def test_more_files_than_the_limit_are_not_read_and_that_is_said(home: Path) -> None:
    for number in range(theme_files.MAX_FILES + 3):
        put(home, f"t{number:03}.toml", SMALL)
    loaded, said = theme_files.available(home)
    assert len(loaded) == len(themes.SHIPPED) + theme_files.MAX_FILES
    assert "53 files" in said[0]


def test_a_theme_that_is_hard_to_read_is_taken_and_its_worst_pair_named(home: Path) -> None:
    put(home, "mine.toml", SMALL.replace("#ff88ff", "#5a4a20"))
    loaded, said = theme_files.available(home)
    assert loaded[-1].name == "mine"
    assert "attention on attention has a contrast of 1.5" in said[0]


@given(st.text(max_size=30))
def test_whatever_stands_for_a_colour_is_taken_or_refused_and_never_anything_else(value: str) -> None:
    source = f'extends = "dark"\n[roles]\ntext = {json.dumps(value)}\n'
    try:
        loaded = themes.read("mine", source, bases=BASES)
    except Refused as refused:
        said = str(refused)
    else:
        said = f"mine.toml {loaded.palette.roles['text'].color!r}"
        assert loaded.palette.roles["text"].color is not None
    assert said.startswith("mine.toml")
    assert said.isprintable()


@given(st.binary(max_size=200))
def test_any_bytes_leave_the_shipped_themes_alone(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    home = tmp_path_factory.mktemp("home")
    (home / "themes").mkdir()
    put(home, "mine.toml", data)
    assert [name for name in names(home) if name != "mine"] == list(themes.SHIPPED)


# --- what is worn and remembered --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, Colours.FULL),
        ({"TERM": "xterm", "COLORTERM": "24bit"}, Colours.FULL),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor", "NO_COLOR": "1"}, Colours.NONE),
        ({"COLORTERM": "truecolor", "NO_COLOR": ""}, Colours.FULL),
        ({}, Colours.FULL),
    ],
)
def test_colours_are_what_the_terminal_has_and_its_operator_wants(environ: dict[str, str], wanted: Colours) -> None:
    assert theme_choice.colours_of(environ) is wanted


@pytest.mark.parametrize(
    ("term", "wanted"),
    [
        ("xterm-256color", Colours.FULL),
        ("linux", Colours.SIXTEEN),
        ("xterm", Colours.SIXTEEN),
        ("vt100", Colours.NONE),
        ("no-such-terminal-256color", Colours.FULL),
        ("no-such-terminal", Colours.SIXTEEN),
    ],
)
def test_terminfo_says_how_many_colours_a_terminal_has(term: str, wanted: Colours) -> None:
    """A process each: curses keeps the first terminal that it is told of."""
    code = f"from pollconsole.theme_choice import colours_of; print(colours_of({{'TERM': {term!r}}}).value)"
    path = os.pathsep.join(sys.path)
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env={**os.environ, "PYTHONPATH": path}
    )
    assert ran.stdout.strip() == wanted.value, ran.stderr


def test_every_kind_of_terminal_has_a_shipped_theme() -> None:
    assert {theme_choice.fallback(each) for each in Colours} <= set(themes.SHIPPED)
    assert theme_choice.fallback(Colours.SIXTEEN) == "terminal"
    assert theme_choice.fallback(Colours.NONE) == "monochrome"


def test_a_choice_is_remembered_beside_what_the_file_holds_already_and_for_its_owner_alone(tmp_path: Path) -> None:
    (tmp_path / "ui.json").write_text('{"view": "low"}')
    assert theme_choice.remember(tmp_path, "light")
    assert theme_choice.remembered(tmp_path) == "light"
    assert json.loads((tmp_path / "ui.json").read_text()) == {"view": "low", "theme": "light"}
    assert stat.S_IMODE((tmp_path / "ui.json").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["ui.json"]


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{", b'{"theme": 7}', b"\xff", b"[" * 60_000, b" " * 70_000, b'{"x": 1}']
)
def test_a_file_that_says_nothing_is_as_good_as_none(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "ui.json").write_bytes(data)
    assert theme_choice.remembered(tmp_path) is None
    assert theme_choice.remember(tmp_path, "light")
    assert theme_choice.remembered(tmp_path) == "light"


def test_where_nothing_can_be_written_nothing_is_remembered_and_nothing_raised(tmp_path: Path) -> None:
    assert not theme_choice.remember(tmp_path / "nowhere", "light")
    assert not theme_choice.remember(None, "light")
    assert theme_choice.remembered(None) is None
    (tmp_path / "ui.json").mkdir()
    assert not theme_choice.remember(tmp_path, "light")
    assert [path.name for path in tmp_path.iterdir()] == ["ui.json"]
