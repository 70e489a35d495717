"""Keys of the operator's own: what the file may ask for, what is refused and named, what the screens then do."""

from __future__ import annotations

import importlib
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.console.screens.fakes import FakeCore
from tests.console.screens.harness import console, open_card, screen_text, until
from textual.keys import _character_to_key

from pollconsole import help_keys, key_names, keys_file
from pollconsole.beside_app import SCREENS as BESIDE
from pollconsole.console import ConsoleApp
from pollconsole.guard_facts import LETTER_POOL, NAVIGATION, State
from pollconsole.key_names import ACTIONS, CARD_KEYS, EVERYWHERE
from pollconsole.screens.card import CardScreen
from pollconsole.screens.deciding import DecidingScreen
from pollconsole.screens.detail import DetailScreen
from pollconsole.screens.group import GroupScreen
from pollconsole.screens.listing import ListingScreen
from pollconsole.screens.live import LiveScreen
from pollconsole.screens.members import MembersScreen
from pollconsole.screens.queue import QueueScreen
from pollconsole.screens.text import HelpScreen, LinesScreen
from pollconsole.theme_screen import ThemeScreen

REFERENCE = Path(__file__).resolve().parents[3] / "docs" / "reference.md"


def screen_class(name: str) -> type[Any]:
    module, kind = BESIDE[name]
    found: type[Any] = getattr(importlib.import_module(f"pollconsole.screens.{module}"), kind)
    return found


SCREENS: dict[str, list[type[Any]]] = {
    "table": [LiveScreen],
    "detail": [DetailScreen],
    "queue": [QueueScreen],
    "lines": [LinesScreen, HelpScreen, *(screen_class(each) for each in ("settings", "log", "messages"))],
    "listing": [ListingScreen, screen_class("providers"), screen_class("credentials")],
    "audit": [screen_class("audit")],
    "themes": [ThemeScreen],
}


def complaints(text: str) -> str:
    return "\n".join(keys_file.parse(text).complaints)


def test_every_key_and_name_of_the_tables_is_a_real_binding_and_every_binding_is_in_them() -> None:
    """`key_names` is what the documents and the checks are made from: it must say what the screens have."""
    for where, kinds in {**SCREENS, EVERYWHERE: [ConsoleApp]}.items():
        for kind in kinds:
            for binding in help_keys.bindings(kind):
                if binding.id is None:
                    assert binding.key in key_names.FIXED, (kind, binding.key)
                    continue
                action = ACTIONS[binding.id]
                assert binding.key in action.keys
                assert where in action.where or EVERYWHERE in action.where, (kind, binding.id)
    bound = {b.id for kinds in [*SCREENS.values(), [ConsoleApp]] for kind in kinds for b in help_keys.bindings(kind)}
    assert set(ACTIONS) <= bound


def test_the_default_keys_do_not_conflict() -> None:
    assert keys_file._clash({}) is None


@pytest.mark.rule("G3")
def test_the_keys_that_decide_do_nothing_anywhere_else_and_a_card_has_no_name_that_a_file_could_use() -> None:
    assert set(LETTER_POOL) | set("123456789w") == CARD_KEYS
    for action in ACTIONS.values():
        taken = set(action.keys) & CARD_KEYS
        assert not taken or action.name.startswith("view_"), (action.name, taken)
    for kind in (CardScreen, GroupScreen, DecidingScreen, MembersScreen):
        assert [b for b in help_keys.bindings(kind) if b.id is not None] == []


@pytest.mark.parametrize("character", list(map(chr, range(33, 127))))
def test_a_key_is_named_by_its_character_or_as_its_event_is(character: str) -> None:
    name = key_names.key_name(character)
    assert name == _character_to_key(character)
    assert key_names.shown(name) == character
    if len(name) > 1:
        assert key_names.key_name(name) == name


@pytest.mark.parametrize(
    ("written", "name"),
    [("PgDn", "pagedown"), ("Esc", "escape"), ("F5", "f5"), ("ctrl+x", "ctrl+x"), (" ", "space"), ("ж", "ж")],
)
def test_keys_that_type_nothing_are_named_as_people_name_them(written: str, name: str) -> None:
    assert key_names.key_name(written) == name


@pytest.mark.parametrize("written", ["", "ctrl+X", "shift+g", "ctrl+", "hyper+x", "gg", "\x1b", "\u202e"])
def test_what_no_terminal_sends_is_no_key(written: str) -> None:
    assert key_names.key_name(written) is None


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ('filtr = "ctrl+f"', "keys.toml line 3: keys.filtr: no such action; did you mean filter?"),
        ('filter = "slsh"', "'slsh' is no key; did you mean slash?"),
        ('filter = "n"', "n is the key of next_match on the screen 'table'"),
        ('filter = "h"', "h is a key of cards"),
        ('view_open = "3"', "3 is a key of cards"),
        ('filter = "5"', "5 is a key of cards"),
        ('filter = "w"', "w is a key of cards"),
        ('quit = "ctrl+c"', "ctrl+c always asks to quit"),
        ('filter = "Esc"', "Esc always leads back"),
        ("filter = 7", "is no key and no list of keys"),
        ("filter = []", "names 0 keys"),
        ('filter = ["a", 3]', "is no key and no list of keys"),
        ('choose = "m"', "no such action"),
    ],
)
@pytest.mark.rule("G3")
def test_an_entry_that_cannot_be_had_is_named_with_its_line_and_skipped_alone(entry: str, said: str) -> None:
    found = keys_file.parse(f'[keys]\npin = "ctrl+t"\n{entry}\n')
    assert said in "\n".join(found.complaints)
    assert found.complaints[0].endswith("skipped")
    assert found.chosen == {"pin": ("ctrl+t",)}


@pytest.mark.parametrize("text", ["[keys", "keys = 3", "\x00", '[keys]\nfilter = "a\n', "[" * 2_000])
def test_a_file_that_is_no_table_of_keys_leaves_the_default_keys(text: str) -> None:
    found = keys_file.parse(text)
    assert found.chosen == {}
    assert "the default keys hold" in found.complaints[-1]


def test_two_entries_may_swap_their_keys_and_a_strange_table_is_named() -> None:
    found = keys_file.parse('[colours]\n[keys]\nsort = "S"\nreverse = "s"\n')
    assert found.chosen == {"sort": ("S",), "reverse": ("s",)}
    assert "colours: no such table" in found.complaints[0]


@given(
    st.dictionaries(
        st.sampled_from(sorted(ACTIONS)),
        st.lists(st.sampled_from([*string.printable[:94], "ctrl+f", "f5", "enter", "left", "escape"]), max_size=3),
        max_size=12,
    )
)
@pytest.mark.rule("G3")
def test_whatever_a_file_asks_for_no_key_does_two_things_and_no_card_key_does_any(wanted: dict[str, list[str]]) -> None:
    lines = [f"{name} = [{', '.join(_quoted(key) for key in keys)}]" for name, keys in wanted.items()]
    found = keys_file.parse("\n".join(["[keys]", *lines]))
    assert keys_file._clash(found.chosen) is None
    for name, keys in found.chosen.items():
        assert not set(keys) & set(key_names.FIXED)
        assert not (set(keys) & CARD_KEYS) - set(ACTIONS[name].keys)


def _quoted(key: str) -> str:
    return "'" + key + "'" if key != "'" else '"\'"'


def test_a_file_that_is_a_folder_too_big_or_no_text_is_complained_of(tmp_path: Path) -> None:
    path = tmp_path / keys_file.FILE
    assert keys_file.read(tmp_path) == keys_file.KeyMap()
    path.mkdir()
    assert "Is a directory" in keys_file.read(tmp_path).complaints[0]
    path.rmdir()
    path.write_bytes(b"#" * (keys_file.MAX_BYTES + 1))
    assert "more than 65,536 bytes" in keys_file.read(tmp_path).complaints[0]
    path.write_bytes(b"\xff\xfe")
    assert "UTF-8" in keys_file.read(tmp_path).complaints[0]


async def test_the_keys_of_the_file_work_stand_in_footer_and_help_and_the_old_ones_do_nothing(
    fake: FakeCore, tmp_path: Path
) -> None:
    (tmp_path / "keys.toml").write_text(
        '[keys]\nfilter = "ctrl+f"\nhelp = "f1"\nsort = "S"\nreverse = "s"\nbad = "k"\n', "utf-8"
    )
    async with console(fake.runner, home=tmp_path) as (app, pilot):
        live = app.screen
        assert isinstance(live, LiveScreen)
        assert "keys.bad" in screen_text(app)
        await pilot.press("slash", "question_mark")
        assert (live.mode, app.screen) == ("", live)
        assert "ctrl+f filter" in screen_text(app)
        assert "F1 help" in screen_text(app)
        await pilot.press("s")
        assert app.state.reverse
        await pilot.press("S")
        assert live.mode == "sort"
        await pilot.press("escape", "ctrl+f", "b", "o", "enter")
        assert app.state.needle == "bo"
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen), "the help")
        assert "ctrl+f" in screen_text(app)


@pytest.mark.rule("G3")
async def test_no_file_moves_a_key_of_a_card(fake: FakeCore, tmp_path: Path) -> None:
    every = [key for key in map(chr, range(33, 127)) if key not in "'\"\\"]
    names = sorted(ACTIONS)
    lines = [f"{name} = '{every[number % len(every)]}'" for number, name in enumerate(names)]
    (tmp_path / "keys.toml").write_text("\n".join(["[keys]", *lines]), "utf-8")
    async with console(fake.runner, home=tmp_path) as (app, pilot):
        card = await open_card(app, pilot, "op-0000000a")
        for key in sorted(NAVIGATION - {"escape", "left_square_bracket", "right_square_bracket", "ctrl+c"}):
            await pilot.press(key)
        assert app.screen is card
        for character in sorted({*every} - set("123456789wjkgG[]")):
            await pilot.press(_character_to_key(character))
        assert app.screen is card
        assert fake.actions.decided == []
        assert card._view is not None
        assert card._view.state is not State.DECIDED


def test_the_reference_lists_every_action_with_its_keys() -> None:
    assert keys_table() in REFERENCE.read_text("utf-8")


def keys_table() -> str:
    """The table of docs/reference.md, made from the bindings."""
    rows = ["| action | keys | where | does |", "|---|---|---|---|"]
    for action in ACTIONS.values():
        keys = " ".join(f"`{key_names.shown(key)}`" for key in action.keys)
        rows.append(f"| `{action.name}` | {keys} | {' '.join(action.where)} | {action.does} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(keys_table())
