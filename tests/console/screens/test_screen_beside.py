"""The screens beside the table: settings, log, messages, providers, credentials, exact times, the status line."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from datetime import UTC, timedelta, timezone
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.console.screens.conftest import RealCore
from tests.console.screens.fakes import FakeCore
from tests.console.screens.harness import (
    choose,
    confirm,
    console,
    lives_on,
    read_to_the_end,
    screen_text,
    until,
    written,
)
from tests.console.seed import HOSTILE, MOMENT, NOW, operation
from textual.widget import Widget

from pollconsole import bridge, times
from pollconsole.board import Board
from pollconsole.core_log import MAX_LINES, CoreLog
from pollconsole.draw import plain, width_of
from pollconsole.mailbox import Beat, CoreRole, Delta, Trouble
from pollconsole.screens.audit import AuditScreen
from pollconsole.screens.credentials import CredentialsScreen, credential_lines
from pollconsole.screens.listing import ListingScreen
from pollconsole.screens.live import LiveScreen
from pollconsole.screens.log import LogScreen
from pollconsole.screens.providers import ContractScreen, ProvidersScreen, contract_lines, provider_lines, standing
from pollconsole.screens.settings import SettingsScreen, setting_lines
from pollconsole.screens.status_line import FORMS, head_lines
from pollconsole.screens.text import LinesScreen, MessagesScreen
from pollcore.facts import (
    MINUTE,
    SECOND,
    BootMs,
    Escalation,
    Instant,
    Secret,
    StopReason,
    StoreUnusable,
)

CANARY = "tok-canary-90210"
KEYS = {"V": AuditScreen, "L": LogScreen, "comma": SettingsScreen, "P": ProvidersScreen, "K": CredentialsScreen,
        "M": MessagesScreen}  # fmt: skip


async def opened(app: Any, pilot: Any, key: str) -> Any:
    await pilot.press(key)
    await until(pilot, lambda: isinstance(app.screen, KEYS[key]) and app.screen.ready, f"{key} opens")
    return app.screen


def content(screen: Any) -> str:
    """What a screen of lines holds, or a list with its lower part, wherever it is scrolled to."""
    if isinstance(screen, ListingScreen):
        rows = screen.table.rows.values()
        return "\n".join(plain(each) for row in rows for each in (row.cells, *row.whole))
    assert isinstance(screen, LinesScreen)
    return "\n".join(plain(line) for line in screen.content())


async def holds(app: Any, pilot: Any, *said: str) -> None:
    await until(pilot, lambda: all(each in content(app.screen) for each in said), f"the screen says {said}")


# --- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.rule("K1", "B1", "K2")
async def test_settings_are_shown_with_where_each_comes_from_and_problems_first(real: RealCore) -> None:
    config = real.home / "config.toml"
    config.write_text(
        f"{config.read_text()}\n[ceilings]\nmax_status_requests = 77\n[policy]\nopen_operations = 5\n"
        '[network]\nproxy = "http://proxy.example:3128"\n[operator]\nname = "ana"\n'
    )
    (real.home / "themes").mkdir()
    (real.home / "themes" / "ugly.toml").write_text("colours = 7\n")
    (real.home / "keys.toml").write_text('[keys]\nnowhere = "x"\n')
    async with console(real.runner, home=real.home, size=(140, 60)) as (app, pilot):
        app.home_named_by = "--home"
        await opened(app, pilot, "comma")
        await holds(app, pilot, "77", "config.toml [ceilings]", "5  config.toml [policy]", "no cap  default")
        text = content(app.screen)
        for said in (
            f"{real.home}  --home", "http://proxy.example:3128  config.toml [network]", "ana, not verified",
            "journal mode", "SQLite", "pysqlite3" if "pysqlite3" in text else "sqlite3", "mouse", "theme", "colours",
        ):  # fmt: skip
            assert said in text, said
        problems = text.split("home")[0]
        assert "ugly.toml" in problems
        assert "keys.nowhere" in problems
        config.write_text(f"{config.read_text()}\n[ceilings]\n")
        await pilot.press("r")
        await holds(app, pilot, "what was read at the start is in force")


def test_settings_of_others_making_are_drawn_harmless() -> None:
    lines = setting_lines((bridge.Setting("home", "home", HOSTILE, HOSTILE),), (HOSTILE,))
    assert all(piece.isprintable() for line in lines for piece, _ in line)


def test_the_home_is_named_by_the_flag_else_the_variable_else_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POLLCONSOLE_HOME", raising=False)
    assert bridge.home_source(None) == "default"
    monkeypatch.setenv("POLLCONSOLE_HOME", "/somewhere")
    assert bridge.home_source(None) == "POLLCONSOLE_HOME"
    assert bridge.home_source(Path("/there")) == "--home"


# --- messages and log -------------------------------------------------------------------------------------------------


async def test_messages_have_their_time_are_bounded_searched_and_copied(fake: FakeCore) -> None:
    async with console(fake.runner, size=(100, 30)) as (app, pilot):
        for number in range(300):
            app.state.say(f"said {number} {HOSTILE}")
        screen = await opened(app, pilot, "M")
        lines = [plain(line) for line in screen.content()]
        assert len(lines) == 200
        assert lines[0].startswith("11:00:00 UTC  said 299")
        await pilot.press("slash", *"said", "space", *"120", "enter")
        assert "1 of 1" in screen_text(app)
        await pilot.press("C")
        assert "\x1b]52;c;" in written(app)
        assert all(line.isprintable() for line in lines)
        await pilot.press("i")
        await until(pilot, lambda: "2026-01-01 11:00:00.000 UTC" in content(screen), "exact times")


@pytest.mark.rule("A2", "V3")
async def test_the_log_has_what_the_core_did_over_all_operations_and_what_its_thread_says(real: RealCore) -> None:
    await asyncio.to_thread(real.fill)
    async with console(real.runner, home=real.home, size=(140, 50)) as (app, pilot):
        screen = await opened(app, pilot, "L")
        await holds(app, pilot, "op-00000001 submitted job", "core the store is open", "this process polls")
        assert isinstance(screen, LogScreen)
        before = len(screen._events)
        real.transport.status = 503
        await until(pilot, lambda: len(screen._events) > before, "what happens meanwhile comes in")
        times_of = [line[0][0] for line in screen.content()]
        assert times_of == sorted(times_of)
        await pilot.press("slash", *"submitted", "enter")
        assert re.search(r"\d+ of \d+", screen_text(app))


def test_the_core_log_keeps_the_newest_and_says_nothing_twice() -> None:
    log = CoreLog()
    for number in range(MAX_LINES + 50):
        log.add(Instant(number), f"line {number}")
    assert len(log.lines()) == MAX_LINES
    assert log.lines()[-1].text == f"line {MAX_LINES + 49}"
    log = CoreLog()
    for text in ("full", "full", "well", "full"):
        log.changed("disk", None, text)
    assert [line.text for line in log.lines()] == ["full", "well", "full"]


# --- providers --------------------------------------------------------------------------------------------------------

VIEW = bridge.ContractView(
    name="acme", contract="acme", source="/h/providers/acme.toml", title="Acme", digest="d" * 64,
    observation="read_only", evidence="their documentation", tested_live=None,
)  # fmt: skip


@pytest.mark.rule("S8", "G5")
@pytest.mark.parametrize(
    ("changes", "other", "word"),
    [
        ({}, 0, "new"),
        ({"seen_at": NOW, "seen_by": "ana"}, 0, "usable"),
        ({"seen_at": NOW, "seen_by": "ana"}, 3, "changed"),
        ({"source": "shipped"}, 0, "usable"),
        ({"source": "config.toml"}, 0, "new"),
        ({"error": "acme.toml:3: states"}, 3, "unusable"),
    ],
)
def test_a_provider_says_first_what_must_be_known_first(changes: dict[str, Any], other: int, word: str) -> None:
    assert standing(msgspec.structs.replace(VIEW, **changes), other)[0] == word


@pytest.mark.rule("S8", "X7")
def test_a_provider_whole_says_how_many_run_under_another_text_and_who_decided_its_first_use() -> None:
    under = Counter({"d" * 64: 2, "e" * 64: 3})
    told = "\n".join(plain(line) for line in provider_lines(VIEW, under, NOW, exact=False))
    assert "3 open operations run under another text" in told
    assert "the contract says read-only: their documentation" in told
    assert "not that anybody wrote down" in told
    decided = msgspec.structs.replace(VIEW, use="action", decided_at=Instant(NOW - MINUTE), decided_by="ana on ops1")
    told = "\n".join(plain(line) for line in provider_lines(decided, Counter(), NOW, exact=False))
    assert "an action: each request asks, decided a minute ago by ana on ops1" in told


@pytest.mark.rule("G4")
def test_what_a_contract_or_a_credential_says_is_drawn_harmless() -> None:
    view = bridge.ContractView(
        name=HOSTILE, contract=f"{HOSTILE}2", source=HOSTILE, title=HOSTILE, error=HOSTILE, shadows=True,
        base_url=HOSTILE, allow_http=True, evidence=HOSTILE, observation=HOSTILE, tested_live=HOSTILE,
        seen_by=HOSTILE, decided_by=HOSTILE,
    )  # fmt: skip
    found = bridge.ContractText(view, f"{HOSTILE}\n{HOSTILE}\tx", (("e" * 64, (f"+{HOSTILE}", f"-{HOSTILE}")),))
    info = {"name": HOSTILE, "kind": HOSTILE, "mode": HOSTILE, "origins": [HOSTILE], "last_used_at": HOSTILE}
    question = Escalation(
        escalation_id="esc-1", operation_id="", reason=StopReason.MODE_CHANGE, detail=None, cause=HOSTILE,
        asked_at=NOW, version=1, asked_by=HOSTILE,
    )  # fmt: skip
    live = bridge.LiveSession(
        owner=HOSTILE, started_at=NOW, until=Instant(NOW + MINUTE), calls=3, calls_left=2, granted_by=HOSTILE
    )
    credential = bridge.CredentialView(info=info, sessions=(live,), question=question)
    lines = [
        *contract_lines(found, Counter({"e" * 64: 2}), NOW, exact=True),
        *credential_lines(credential, NOW, exact=True, end="D", ask="o"),
    ]
    assert all(piece.isprintable() for line in lines for piece, _ in line)


def own_file(real: RealCore) -> None:
    """The shipped contract as a file of the home, changed: nobody has seen that text."""
    text = (resources.files("pollcore") / "contracts" / "example-jobs.toml").read_text("utf-8")
    (real.home / "providers").mkdir(mode=0o700)
    (real.home / "providers" / "example-jobs.toml").write_text(f"{text}# ours\n")


@pytest.mark.rule("G5", "S8")
async def test_a_contracts_text_and_difference_are_shown_and_read_to_its_end_it_counts_as_seen(real: RealCore) -> None:
    own_file(real)
    await asyncio.to_thread(real.fill)
    config = real.home / "config.toml"
    config.write_text(config.read_text().replace('"team-a"', '"another"', 1))
    async with console(real.runner, home=real.home, size=(140, 60)) as (app, pilot):
        screen = await opened(app, pilot, "P")
        await until(pilot, lambda: "acme" in screen.table.ids, "it is listed")
        acme = screen.table.rows["acme"]
        assert acme.cells[1][0] == "new"
        await pilot.press("slash", *"acme", "enter")
        assert screen.table.cursor_id == "acme"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ContractScreen) and "the text" in content(app.screen), "text")
        text = content(app.screen)
        assert 'name = "example-jobs"' in text
        assert "open operations run under another text" in text
        assert "what was (-) and what the file says now (+)" in text
        assert "+instance: account = another" in text
        await until(pilot, lambda: "read it to its end" in screen_text(app), "it says what counts")
        assert not any("you have seen" in each.text for each in app.state.messages)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen, "back")
        assert screen.table.rows["acme"].cells[1][0] == "new"
        await pilot.press("enter")
        await until(pilot, lambda: "read it to its end" in screen_text(app), "its beginning once more")
        await pilot.press("G")
        await until(pilot, lambda: any("you have seen" in each.text for each in app.state.messages), "it is on record")
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen, "back")
        await until(pilot, lambda: screen.table.rows["acme"].cells[1][0] == "changed", "it is new no more")


@pytest.mark.rule("G5")
async def test_a_console_that_only_looks_marks_no_contract_as_seen(real: RealCore) -> None:
    own_file(real)
    await asyncio.to_thread(real.fill)
    async with console(real.runner, home=real.home, size=(100, 40), read_only=True) as (app, pilot):
        screen = await opened(app, pilot, "P")
        await until(pilot, lambda: "acme" in screen.table.ids, "it is listed")
        await pilot.press("slash", *"acme", "enter", "enter")
        await until(pilot, lambda: isinstance(app.screen, ContractScreen) and "the text" in content(app.screen), "text")
        await pilot.press("escape", "r")
        await until(pilot, lambda: app.screen is screen, "back")
        assert screen.table.rows["acme"].cells[1][0] == "new"


@pytest.mark.rule("G5")
async def test_an_instance_of_a_shipped_contract_is_not_new_as_on_its_cards(real: RealCore) -> None:
    await asyncio.to_thread(real.fill)
    async with console(real.runner, home=real.home, size=(100, 40)) as (app, pilot):
        screen = await opened(app, pilot, "P")
        await until(pilot, lambda: "acme" in screen.table.ids, "it is listed")
        assert screen.table.rows["acme"].cells[1][0] == "usable"


# --- credentials ------------------------------------------------------------------------------------------------------


async def stored(core: Any) -> None:
    await bridge.set_credential(
        core, "acme-prod", kind="bearer", names=(), origins=("https://api.acme.example",), secret=Secret(CANARY)
    )


@pytest.mark.rule("K1", "K3")
async def test_credentials_are_shown_with_modes_origins_last_use_and_never_a_value(real: RealCore) -> None:
    await asyncio.to_thread(real.read, stored)
    async with console(real.runner, home=real.home) as (app, pilot):
        await opened(app, pilot, "K")
        await holds(app, pilot, "acme-prod", "https://api.acme.example", "standing: never", "last used  never")
        assert CANARY not in written(app)
        await pilot.press("P")
        await until(pilot, lambda: isinstance(app.screen, ProvidersScreen), "providers in its place")
        assert len(app.screen_stack) == 2
        await pilot.press("escape")
        assert isinstance(app.screen, LiveScreen)


LIVE = bridge.LiveSession(
    owner="console-1", started_at=NOW, until=Instant(NOW + 30 * MINUTE), calls=200, calls_left=188, granted_by="ana"
)
QUESTION = Escalation(
    escalation_id="esc-9", operation_id="", reason=StopReason.MODE_CHANGE, detail=None, cause="mode_change:acme-prod",
    asked_at=NOW, version=1, asked_by="agent-7",
)  # fmt: skip
INFO = {"name": "acme-prod", "kind": "bearer", "mode": "per_session", "origins": ["https://api.acme.example"]}


@pytest.mark.rule("G2", "G6")
async def test_sessions_are_shown_with_what_is_left_and_one_key_ends_them(
    fake: FakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []
    views = [bridge.CredentialView(info=INFO, sessions=(LIVE,), question=QUESTION)]

    async def all_views(core: Any) -> list[Any]:
        return views if not ended else [msgspec.structs.replace(views[0], sessions=())]

    async def end(core: Any, name: str) -> int:
        ended.append(name)
        return 1

    monkeypatch.setattr(bridge, "credential_views", all_views)
    monkeypatch.setattr(bridge, "end_sessions", end)
    async with console(fake.runner) as (app, pilot):
        await opened(app, pilot, "K")
        await holds(app, pilot, "188 of 200 calls and 30 min left", "a change of its mode waits", "agent-7")
        pane = screen_text(app)
        assert "ends them at once" in pane
        assert "stop and ask again" in pane
        await pilot.press(app.state.keymap.shown("end_session"))
        await until(pilot, lambda: ended == ["acme-prod"], "they are ended")
        await until(pilot, lambda: "188 of 200" not in content(app.screen), "and gone")
        await pilot.press(app.state.keymap.shown("end_session"))
        await until(pilot, lambda: "no live session" in screen_text(app), "there is nothing more to end")
    assert ended == ["acme-prod"]


@pytest.mark.rule("G2")
async def test_a_console_that_only_looks_ends_no_session(fake: FakeCore, monkeypatch: pytest.MonkeyPatch) -> None:
    async def all_views(core: Any) -> list[Any]:
        return [bridge.CredentialView(info=INFO, sessions=(LIVE,))]

    async def end(core: Any, name: str) -> int:
        raise AssertionError

    monkeypatch.setattr(bridge, "credential_views", all_views)
    monkeypatch.setattr(bridge, "end_sessions", end)
    async with console(fake.runner, read_only=True) as (app, pilot):
        await opened(app, pilot, "K")
        await holds(app, pilot, "188 of 200 calls")
        await pilot.press(app.state.keymap.shown("end_session"))
        await until(pilot, lambda: "it ends no session" in screen_text(app), "it says so")


# --- times ------------------------------------------------------------------------------------------------------------


def test_times_are_about_or_exact_and_tell_utc_from_local() -> None:
    at, now = Instant(1_772_442_930_250), Instant(1_772_442_930_250 + 3 * MINUTE)
    east = timezone(timedelta(hours=5, minutes=30))
    assert times.when(at, now, exact=False) == "3 minutes ago"
    assert times.when(now, at, exact=False) == "in 3 minutes"
    assert times.when(at, Instant(at + SECOND), exact=False) == "now"
    assert times.when(None, now, exact=True) == "never"
    assert times.when(at, now, exact=True, zone=UTC) == "2026-03-02 09:15:30.250 UTC"
    assert times.exactly(at, east) == "2026-03-02 09:15:30.250 UTC (14:45:30 +0530 local)"
    far_west = timezone(timedelta(hours=-11))
    assert times.exactly(at, far_west) == "2026-03-02 09:15:30.250 UTC (2026-03-01 22:15:30 -1100 local)"
    assert times.both(at, east) == "09:15:30 UTC 14:45:30 +0530"
    assert times.both(at, UTC) == "09:15:30 UTC"
    assert times.clock(at, now) == "09:15:30 UTC"
    assert times.clock(at, Instant(at + 20 * 60 * MINUTE)).endswith("Z")
    assert times.short(at, now) == "09:15:30Z"


async def test_one_key_shows_exact_times_on_every_screen_and_hides_them_again(
    fake: FakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "UTC-03:00")
    time.tzset()
    try:
        async with console(fake.runner, size=(120, 40)) as (app, pilot):
            assert "11:00:00Z" in screen_text(app)
            await pilot.press("i")
            assert "11:00:00 UTC 14:00:00 +0300" in screen_text(app)
            await pilot.press("enter")
            await until(pilot, lambda: "UTC (14:" in screen_text(app), "the record's times in full")
            await pilot.press("i")
            await until(pilot, lambda: "local)" not in screen_text(app), "they are hidden again")
    finally:
        monkeypatch.undo()
        time.tzset()


# --- the status line --------------------------------------------------------------------------------------------------


class Shown:
    """What `head_lines` reads of the shared state."""

    def __init__(self, **delta: Any) -> None:
        self.board = Board()
        self.board.apply(Delta(operations=(operation(1, os_user="ana"),), loaded=True, **delta))
        self.title, self.paused, self.exact = "prod", False, False
        self.clock_name = ""
        self.gate_is_advisory = True


def told(state: Shown, width: int) -> str:
    left, right = head_lines(state, MOMENT, width)  # type: ignore[arg-type]
    return f"{plain(left)}|{plain(right)}"


def beat(kind: str, pid: int, age_ms: int, host: str = "ops2") -> Beat:
    return Beat(f"{kind}-{pid}", pid, kind, Instant(NOW - age_ms), BootMs(MOMENT.boot - age_ms), MOMENT.boot_id, host)


@pytest.mark.rule("O8", "G5", "A4")
@pytest.mark.parametrize("role", [CoreRole.OWN, CoreRole.ATTACHED, CoreRole.READ_ONLY])
@pytest.mark.parametrize("trouble", [None, Trouble("locked", False), Trouble("cut", True)])
def test_at_80_cells_the_status_line_holds_core_audit_gate_and_clock(role: CoreRole, trouble: Trouble | None) -> None:
    beats = (beat("run", 4_194_304, 3_000),) if role is not CoreRole.OWN else (beat("console", 12, 3_000),)
    state = Shown(role=role, beats=beats, audit=trouble, read_s=time.monotonic())
    left, right = head_lines(state, MOMENT, 80)  # type: ignore[arg-type]
    assert width_of(left) + 1 + width_of(right) <= 80
    said = told(state, 80)
    assert role.value in said
    assert "core 3s" in said if role is CoreRole.OWN else "run" in said and "4194304" in said
    assert ("UNANCHORED" in said) is (trouble is not None and not trouble.alarm)
    assert ("AUDIT DAMAGED" in said) is (trouble is not None and trouble.alarm)
    assert "advisory" in said
    assert "11:00:00Z" in said


@pytest.mark.rule("O8")
def test_a_wide_status_line_names_process_and_host_of_the_core_that_polls() -> None:
    beats = (beat("console", 12, 1_000), beat("run", 4711, 9_000))
    said = told(Shown(role=CoreRole.ATTACHED, beats=beats, read_s=time.monotonic()), 140)
    assert "run pid 4711@ops2 9s" in said


@pytest.mark.rule("O8", "V1")
def test_old_data_is_told_by_its_age_and_fresh_data_is_not() -> None:
    assert "old" not in told(Shown(read_s=time.monotonic()), 80)
    assert "data 61s old" in told(Shown(read_s=time.monotonic() - 61), 80)


@pytest.mark.rule("G4")
def test_a_hostile_host_or_kind_is_drawn_harmless_in_every_form() -> None:
    bad = Beat("o", 5, HOSTILE, NOW, MOMENT.boot, MOMENT.boot_id, HOSTILE)
    state = Shown(role=CoreRole.ATTACHED, beats=(bad,), health=HOSTILE)
    for width in range(1, 200, 7):
        assert all(piece.isprintable() for line in head_lines(state, MOMENT, width) for piece, _ in line)  # type: ignore[arg-type]
    assert FORMS > 1


# --- whatever the terminal and the store do ---------------------------------------------------------------------------


@pytest.mark.rule("V3")
@pytest.mark.parametrize("key", list(KEYS))
async def test_a_screen_survives_every_size_no_colour_and_read_only(
    real: RealCore, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    await asyncio.to_thread(real.fill)
    async with console(real.runner, home=real.home, read_only=True, colours=None) as (app, pilot):
        screen = await opened(app, pilot, key)
        for size in ((1, 1), (2, 200), (80, 24), (5, 3), (300, 2), (80, 24)):
            await pilot.resize_terminal(*size)
            await pilot.press("down", "pagedown", "G", "g")
            await until(pilot, lambda size=size: app.size == size, "it has that size")  # type: ignore[misc]
        assert app.screen is screen
        await until(
            pilot, lambda: screen_text(app).splitlines()[-1].rstrip().endswith("back"), "its last line is whole"
        )
        await pilot.press("escape")
        assert isinstance(app.screen, LiveScreen)


@pytest.mark.rule("O6")
@pytest.mark.parametrize("key", ["V", "comma", "P", "K", "L"])
async def test_a_screen_says_what_is_wrong_with_a_store_that_cannot_be_read(
    fake: FakeCore, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def locked(*_: Any, **__: Any) -> Any:
        raise StoreUnusable("store locked by another process: see who writes to it")

    for name in ("chain_state", "settings", "contract_views", "credential_views", "latest"):
        monkeypatch.setattr(bridge, name, locked)
    async with console(fake.runner, size=(100, 30)) as (app, pilot):
        await opened(app, pilot, key)
        await until(pilot, lambda: "locked by another process" in screen_text(app), "it says so")
        await pilot.press("r", "escape")
        assert isinstance(app.screen, LiveScreen)


@pytest.mark.rule("V3")
async def test_ten_thousand_rows_of_a_list_are_moved_through_and_searched(
    fake: FakeCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def views(core: Any) -> list[Any]:
        return [bridge.CredentialView(info={**INFO, "name": f"key-{n:05d}"}) for n in range(10_000)]

    monkeypatch.setattr(bridge, "credential_views", views)
    async with console(fake.runner) as (app, pilot):
        screen = await opened(app, pilot, "K")
        await until(pilot, lambda: len(screen.table.ids) == 10_000, "all are there")
        await pilot.press("G")
        await until(pilot, lambda: screen.table.cursor_id == "key-09999", "the last")
        await until(pilot, lambda: "key-09999" in screen_text(app), "it is drawn")
        await pilot.press("slash", *"key-05000", "enter")
        await until(pilot, lambda: screen.table.cursor_id == "key-05000", "it is found")
        assert len(app.screen.query(Widget)) < 20


async def test_a_screen_beside_takes_the_place_of_another_and_none_opens_over_a_card(fake: FakeCore) -> None:
    async with console(fake.runner) as (app, pilot):
        for key in ("M", "M", "M"):
            await pilot.press(key)
        assert len(app.screen_stack) == 2
        await pilot.press("escape")
        app.opens("card", "op-0000000a")
        await until(pilot, lambda: getattr(app.screen, "shown", None) is not None, "the card")
        card = app.screen
        await pilot.press(*KEYS)
        await lives_on(app, pilot)
        assert app.screen is card
        app.action_beside("messages")
        assert app.screen is card


@pytest.mark.rule("G2", "G3")
async def test_the_question_of_a_looser_mode_is_opened_from_its_credential_and_decided_by_two_keys(
    real: RealCore,
) -> None:
    from pollcore.facts import CredentialMode

    async def asked(core: Any) -> None:
        await stored(core)
        await bridge.credential_mode(core, "acme-prod", CredentialMode.PER_CALL, "ana")
        await core.actions.ask_mode("acme-prod", CredentialMode.STANDING, "agent-7", "too many cards")

    await asyncio.to_thread(real.read, asked)
    async with console(real.runner, home=real.home, size=(100, 40)) as (app, pilot):
        screen = await opened(app, pilot, "K")
        await holds(app, pilot, "a change of its mode waits", "agent-7")
        assert "per_call?" in screen_text(app)
        await pilot.press("o")
        await until(pilot, lambda: getattr(app.screen, "shown", None) is not None, "the card")
        card = app.screen
        await read_to_the_end(app, pilot, card)
        await choose(app, pilot, card, "approve")
        await confirm(app, pilot, card)
        assert app.screen is screen
        await until(pilot, lambda: screen.table.rows["acme-prod"].cells[1][0] == "standing", "the mode is looser")


@pytest.mark.rule("G4")
async def test_rows_of_hostile_names_are_drawn_harmless(fake: FakeCore, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = {"name": HOSTILE, "kind": HOSTILE, "mode": HOSTILE, "origins": [HOSTILE], "last_used_at": HOSTILE}

    async def credentials(core: Any) -> list[Any]:
        return [bridge.CredentialView(info=hostile)]

    async def contracts(core: Any) -> list[Any]:
        return [bridge.ContractView(name=HOSTILE, contract=HOSTILE, source=HOSTILE, title=HOSTILE)]

    monkeypatch.setattr(bridge, "credential_views", credentials)
    monkeypatch.setattr(bridge, "contract_views", contracts)
    async with console(fake.runner) as (app, pilot):
        for key in ("K", "P"):
            screen = await opened(app, pilot, key)
            await until(pilot, lambda screen=screen: screen.table.ids, "it is listed")
            assert all(piece.isprintable() for piece, _ in screen.table.line_of(HOSTILE))
            assert all(line.isprintable() for line in screen_text(app).split("\n"))
