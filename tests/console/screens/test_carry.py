"""What leaves the screen: a copy by whatever way is open, rows as files that no spreadsheet obeys; and what stays."""

from __future__ import annotations

import base64
import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.console.screens.fakes import FakeCore
from tests.console.screens.harness import console, last_message, screen_text, until, written
from tests.console.seed import HOSTILE, NOW, operation

from pollconsole import bridge, carry, carry_app, carry_clipboard, home_files, memory, ui_file
from pollconsole.board import View
from pollconsole.carry import Format
from pollconsole.carry_clipboard import MAX_COPIED, Between, Tmux, way
from pollconsole.screens.detail import DetailScreen
from pollconsole.screens.live import LiveScreen
from pollconsole.terminal_output import MAX_CLIPBOARD, SCREEN_CHUNK, wall
from pollcore.facts import Refused, ResultPointer, Status

SECRET_QUERY = "sig=canary-77411"


@pytest.fixture(autouse=True)
def _nothing_between(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TMUX", "TMUX_PANE", "STY"):
        monkeypatch.delenv(name, raising=False)


# --- the clipboard ----------------------------------------------------------------------------------------------------


def decoded(sequence: str) -> str:
    found = re.fullmatch(r"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07", sequence)
    assert found is not None
    return base64.b64decode(found[1]).decode()


def unwrapped(sequence: str, stands: Between) -> str:
    """What a terminal behind tmux or screen receives."""
    if stands is Between.TMUX:
        assert sequence.startswith("\x1bPtmux;")
        assert sequence.endswith("\x1b\\")
        return sequence[len("\x1bPtmux;") : -2].replace("\x1b\x1b", "\x1b")
    return "".join(re.findall(r"\x1bP(.*?)\x1b\\", sequence, re.DOTALL))


@pytest.mark.rule("G4")
@given(st.text(max_size=400) | st.sampled_from(["x" * MAX_COPIED, "é" * 3_000, HOSTILE]))
def test_a_copy_arrives_harmless_and_whole_whatever_stands_between_and_passes_the_wall(text: str) -> None:
    harmless = carry_clipboard.harmless(text, MAX_COPIED)
    on, through = Tmux("on", "0"), Tmux("external", "1")
    for stands, tmux in ((Between.NOTHING, None), (Between.TMUX, on), (Between.TMUX, through), (Between.SCREEN, None)):
        sequence = way(text, stands, tmux).sequence
        assert wall(sequence) == sequence
        if stands is Between.SCREEN or tmux is through:
            sequence = unwrapped(sequence, stands)
        assert decoded(sequence) == harmless
    assert all(each == "\n" or each.isprintable() for each in harmless)


def test_screen_gets_no_string_that_it_would_cut() -> None:
    sequence = way("y" * MAX_COPIED, Between.SCREEN).sequence
    assert max(len(piece) for piece in sequence.split("\x1b\\")) <= SCREEN_CHUNK + len("\x1bP\x1b]52;c;\x07")


@pytest.mark.parametrize(
    ("tmux", "form"),
    [
        (Tmux("on", "0"), "plain"),
        (Tmux("on", "1"), "plain"),
        (Tmux("external", "1"), "wrapped"),
        (Tmux("off", "all"), "wrapped"),
        (Tmux("external", ""), "wrapped"),
        (Tmux("external", "0"), "none"),
        (Tmux("off", "off"), "none"),
    ],
)
def test_the_form_follows_what_tmux_says_of_itself(tmux: Tmux, form: str) -> None:
    found = way("id", Between.TMUX, tmux)
    begins = {"plain": "\x1b]52", "wrapped": "\x1bPtmux;", "none": ""}[form]
    assert found.sequence.startswith(begins)
    assert bool(found.sequence) is (form != "none")
    assert "tmux" in found.said


def test_a_copy_beyond_the_cap_is_told_and_not_cut() -> None:
    assert carry_clipboard.too_long("a" * MAX_COPIED) is None
    assert len(way("a" * MAX_COPIED, Between.NOTHING).sequence) <= MAX_CLIPBOARD + len("\x1b]52;c;\x07")
    assert "more than" in str(carry_clipboard.too_long("a" * (MAX_COPIED + 1)))
    assert carry_clipboard.too_long("я" * MAX_COPIED) is not None


def copies(app: Any) -> list[str]:
    return [base64.b64decode(each).decode() for each in re.findall(r"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07", written(app))]


async def test_switched_to_a_file_nothing_is_sent_to_the_terminal(fake: FakeCore, tmp_path: Path) -> None:
    async with console(fake.runner, home=tmp_path) as (app, pilot):
        app.action_clipboard()
        assert "clipboard.txt" in app.state.messages[-1].text
        await pilot.press("c")
        live = app.screen
        assert isinstance(live, LiveScreen)
        assert copies(app) == []
        file = tmp_path / carry.CLIPBOARD
        assert file.read_text("utf-8") == f"{live.table.cursor_id}\n"
        assert file.stat().st_mode & 0o777 == 0o600
        assert "written to clipboard.txt" in screen_text(app)
        await pilot.press("j", "c")
        assert file.read_text("utf-8") == f"{live.table.cursor_id}\n"
        app.action_clipboard()
        await pilot.press("c")
        assert copies(app) == [live.table.cursor_id]
    assert ui_file.read(tmp_path)[carry_app.KEY] == "terminal"


async def test_what_is_too_long_for_a_terminal_goes_to_the_file(fake: FakeCore, tmp_path: Path) -> None:
    async with console(fake.runner, home=tmp_path) as (app, _):
        app.copy("z" * (MAX_COPIED + 1), "the story")
        assert copies(app) == []
        assert (tmp_path / carry.CLIPBOARD).read_text("utf-8") == "z" * (MAX_COPIED + 1) + "\n"
        assert "more than" in app.state.messages[-1].text
        app.copy("z" * (carry.MAX_FILE_COPY + 1), "the story")
        assert "was not sent" in app.state.messages[-1].text


@pytest.mark.parametrize(
    ("said", "sent", "file"),
    [(Tmux("external", "0"), False, True), (Tmux("external", "1"), True, False), (None, True, True)],
)
async def test_inside_tmux_it_is_asked_first_and_the_file_is_there_where_nothing_or_nobody_knows(
    fake: FakeCore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: Tmux | None, sent: bool, file: bool
) -> None:
    monkeypatch.setenv("TMUX", "/nowhere,1,0")
    monkeypatch.setattr(carry_app, "ask_tmux", lambda: said)
    async with console(fake.runner, home=tmp_path) as (app, pilot):
        before = len(app.state.messages)
        await pilot.press("c")
        await until(pilot, lambda: len(app.state.messages) > before, "it is told")
        assert ("]52;c;" in written(app)) is sent
        assert (tmp_path / carry.CLIPBOARD).exists() is file
        assert "tmux" in app.state.messages[-1].text


@pytest.mark.server("tmux")
@pytest.mark.parametrize(
    ("option", "arrives"), [("set -g set-clipboard on", True), ("set -g set-clipboard off", False)]
)
def test_a_real_tmux_keeps_what_it_is_sent_and_says_what_it_lets_through(
    tmp_path: Path, option: str, arrives: bool
) -> None:
    socket = f"pollconsole-{os.getpid()}-{arrives}"
    tmux = [str(shutil.which("tmux")), "-L", socket, "-f", "/dev/null"]
    root = Path(__file__).resolve().parents[3]
    program = (
        "import sys; from pollconsole import carry_app, carry_clipboard as c;"
        "found = c.way('op-carried', c.Between.TMUX, carry_app.ask_tmux()); write = sys.stdout.write;"
        f"open({str(tmp_path / 'said')!r}, 'w').write(found.said); write(found.sequence); sys.stdout.flush();"
        "import time; time.sleep(60)"
    )
    env = {**os.environ, "PYTHONPATH": f"{root / 'core'}:{root / 'console'}"}
    env.pop("TMUX", None)
    try:
        start = [
            *tmux,
            *option.split(),
            ";",
            "new-session",
            "-d",
            "-x",
            "80",
            "-y",
            "24",
            sys.executable,
            "-c",
            program,
        ]
        subprocess.run([*tmux, "start-server", ";", *start[len(tmux) :]], check=True, env=env, timeout=60)
        end = time.monotonic() + 60
        buffer = ""
        while time.monotonic() < end and not (buffer or (not arrives and (tmp_path / "said").exists())):
            shown = subprocess.run([*tmux, "show-buffer"], capture_output=True, text=True, timeout=60, check=False)
            buffer = shown.stdout
            time.sleep(0.1)
        assert (buffer == "op-carried") is arrives
        assert ("lets no copy through" in (tmp_path / "said").read_text()) is not arrives
    finally:
        subprocess.run([*tmux, "kill-server"], check=False, capture_output=True, timeout=60)


@pytest.mark.rule("K4", "K1")
async def test_neither_copy_nor_export_holds_the_query_of_a_result(fake: FakeCore, tmp_path: Path) -> None:
    link = f"https://files.example/out.csv?{SECRET_QUERY}"
    fake.store.put(operation(0x51, Status.SUCCEEDED, result=ResultPointer({"url": link, "more": {"also": link}})))
    async with console(fake.runner, home=tmp_path) as (app, pilot):
        await pilot.press("6", "slash", *"op:op-00000051", "enter", "C", "x")
        await until(pilot, lambda: list(tmp_path.glob("exports/*.jsonl")), "it is exported")
        await pilot.press("X")
        await until(pilot, lambda: list(tmp_path.glob("exports/*.csv")), "it is exported")
        app.opens("detail", "op-00000051")
        await until(pilot, lambda: isinstance(app.screen, DetailScreen) and app.screen.ready, "the detail")
        await pilot.press("C")
        assert len(copies(app)) == 2
        await until(pilot, lambda: "exported" in str([each.text for each in app.state.messages]), "it is told")
    left = "".join(file.read_text("utf-8") for file in tmp_path.glob("exports/*")) + "".join(copies(app))
    assert "op-00000051" in left
    assert SECRET_QUERY not in left


# --- exports ----------------------------------------------------------------------------------------------------------


async def test_where_the_home_does_not_last_an_export_is_told_with_its_path_and_a_warning(
    fake: FakeCore, tmp_path: Path
) -> None:
    async with console(fake.runner, home=tmp_path) as (app, pilot):
        app.state.home_lasts = False
        await pilot.press("x")
        await until(pilot, lambda: app.state.messages and "exported" in app.state.messages[-1].text, "it is told")
        said = app.state.messages[-1].text
        assert "copy it now, it is deleted when this ends" in said
        assert str(next(tmp_path.glob("exports/*.jsonl"))) in said


async def test_on_a_clock_of_its_own_the_screen_says_once_whose_time_it_shows(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        app.state.clock_name = "demo time"
        await until(pilot, lambda: "demo time 11:00:00Z" in screen_text(app), "beside the clock")
        await pilot.press("M")
        await until(pilot, lambda: "all times are demo time" in screen_text(app), "under the messages")


async def test_the_filtered_view_is_exported_as_csv_beside_the_json_lines(fake: FakeCore, tmp_path: Path) -> None:
    async with console(fake.runner, home=tmp_path) as (app, pilot):
        await pilot.press("slash", *"provider:bolt", "enter", "X")
        await until(pilot, lambda: "exported to" in last_message(app), "it is exported")
        live = app.screen
        assert isinstance(live, LiveScreen)
        ids = list(live.table.ids)
        await pilot.press("X", "x")
        await until(pilot, lambda: len(list((tmp_path / "exports").iterdir())) == 3, "two more files")
        await until(pilot, lambda: "exports/operations-" in screen_text(app), "it says where")
    first = min((tmp_path / "exports").glob("*.csv"))
    assert first.stat().st_mode & 0o777 == 0o600
    rows = list(csv.reader(io.StringIO(first.read_text("utf-8"))))
    assert rows[0] == list(carry.COLUMNS)
    assert [row[0] for row in rows[1:]] == ids
    json_file = next((tmp_path / "exports").glob("*.jsonl"))
    assert [json.loads(line)["operation_id"] for line in json_file.read_text("utf-8").splitlines()] == ids


def test_every_column_of_the_csv_is_a_field_of_the_document() -> None:
    document = bridge.row(operation(1))
    own = {name for name in carry.COLUMNS if not name.startswith(("last_http_", "result_"))}
    assert own <= set(document)


FORMULAS = ["=1+1", "+1", "-2+3", "@SUM(A1)", " =1", "\t=1", "\r\n=1", "＝1+1", "＋1", "＠x", '=HYPERLINK("http://x")']


@pytest.mark.parametrize("text", FORMULAS)
def test_a_cell_that_a_spreadsheet_would_calculate_is_text(text: str) -> None:
    assert carry.cell(text).startswith(("'", "<"))


@given(st.text(max_size=80) | st.sampled_from([*FORMULAS, HOSTILE]))
def test_whatever_a_provider_says_no_cell_begins_a_formula_and_the_line_is_one_line(text: str) -> None:
    line = carry.csv_line([text, 7, None])
    cells = next(csv.reader(io.StringIO(line)))
    assert cells[1:] == ["7", ""]
    assert cells[0].lstrip()[:1] not in {*"=+-@", "＝", "＋", "－", "＠"}
    assert line.count("\n") == 1
    assert all(each.isprintable() for each in cells[0])


def test_a_figure_stays_a_figure() -> None:
    assert carry.csv_line([-3, 12]) == "-3,12\r\n"


def test_nothing_is_overwritten_and_no_link_is_followed(tmp_path: Path) -> None:
    first, _ = carry.export(tmp_path, [{}], NOW, Format.CSV)
    second, _ = carry.export(tmp_path, [{}], NOW, Format.CSV)
    assert first != second
    target = tmp_path / "elsewhere"
    second.unlink()
    second.symlink_to(target)
    third, _ = carry.export(tmp_path, [{}], NOW, Format.CSV)
    assert third not in (first, second)
    assert not target.exists()


def test_a_file_of_the_home_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    home_files.replace(path, "one")
    assert path.stat().st_mode & 0o777 == 0o600
    path.unlink()
    path.mkdir()
    (path / "in the way").write_text("", "utf-8")
    with pytest.raises(OSError):
        home_files.replace(path, "two")
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]
    with pytest.raises(Refused, match="no home"):
        carry.keep_copy(None, "x")


# --- marks and pins ---------------------------------------------------------------------------------------------------


async def test_marks_pins_and_what_was_looked_for_are_found_again_those_of_lost_rows_are_not(
    fake: FakeCore, tmp_path: Path
) -> None:
    ui_file.write(tmp_path, {memory.PART: {"marks": ["op-gone", "op-00000001"], "pins": ["op-lost", "op-00000002"]}})
    async with console(fake.runner, home=tmp_path) as (app, pilot):
        assert "op-00000001" in app.state.board.marked
        await pilot.press("slash", *"bolt", "enter", "escape", "7", "U")
        await until(pilot, lambda: app.state.board.marked == set(), "no mark is left")
        await pilot.press("1", "G", "space", "7")
        await until(pilot, lambda: app.state.view is View.MARKED and app.state.board.marked, "one row is marked")
        marked = set(app.state.board.marked)

        def kept_as_it_is() -> bool:
            part = ui_file.read(tmp_path).get(memory.PART, {})
            return (part.get("view"), set(part.get("marks", ()))) == ("marked", marked)

        await until(pilot, kept_as_it_is, "it is kept")
    kept = ui_file.read(tmp_path)[memory.PART]
    assert kept["pins"] == ["op-00000002"]
    async with console(fake.runner, home=tmp_path) as (app, pilot):
        live = app.screen
        assert isinstance(live, LiveScreen)
        assert app.state.view is View.MARKED
        assert set(live.table.ids) == app.state.board.marked == marked
        await pilot.press("1", "n")
        assert "match bolt" in screen_text(app)


def test_what_is_kept_is_capped_and_can_be_read_back(tmp_path: Path, fake: FakeCore) -> None:
    class AnyState:
        pass

    from tests.console.screens.test_screen_pure import board_of

    state: Any = AnyState()
    state.board = board_of()
    state.view, state.sort, state.reverse, state.needle, state.last_needle = (
        View.OPEN,
        next(iter(memory.Sort)),
        False,
        "",
        "",
    )
    state.board.marked = {f"op-{number:0125}" for number in range(2_000)} | {"x" * 5_000}
    state.board.pinned = dict.fromkeys(f"op-{number:0125}" for number in range(2_000))
    state.board.latest = msgspec.structs.replace(state.board.latest, role=memory.CoreRole.STARTING)
    assert memory.keep(state, tmp_path, None)
    kept = ui_file.read(tmp_path)[memory.PART]
    assert (len(kept["marks"]), len(kept["pins"])) == (memory.MAX_MARKS, memory.MAX_PINS)
