"""How the screens look, as text, at 80x24 and 140x40. `POLLCONSOLE_SNAPSHOTS=write` writes the pictures anew."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from tests.console.screens.approval_seeds import CALL, FIRST_USE, MODE, OWNER, asking
from tests.console.screens.fakes import FakeCore
from tests.console.screens.harness import LIMIT_S, choose, console, open_card, read_to_the_end, screen_text, until
from tests.console.seed import NOW, seeded
from textual.pilot import Pilot

from pollconsole import bridge
from pollconsole.console import ConsoleApp
from pollconsole.screens.card import CardScreen
from pollconsole.screens.story import StoryView
from pollcore.facts import DAY, MINUTE, SECOND, Instant

PICTURES = Path(__file__).parent / "pictures"
MARKER = re.compile(r"card \d{4}\.\d+")
SETTLED_S = 1.0
"""How long a screen may fill before its picture is written anew."""
LETTER = re.compile(r"press [a-z] to confirm")


async def check(app: ConsoleApp, pilot: Pilot[Any], name: str) -> None:
    """The screen becomes the stored picture within the limit; the guard's chance is taken out.

    A screen fills in parts (rows, then what is read of each): what counts is where it comes to, not how soon.
    """

    def now() -> str:
        return LETTER.sub("press L to confirm", MARKER.sub("card 0000.0", screen_text(app)))

    path = PICTURES / f"{name}.txt"
    if os.environ.get("POLLCONSOLE_SNAPSHOTS") == "write":
        await pilot.pause(SETTLED_S)
        PICTURES.mkdir(exist_ok=True)
        path.write_text(now(), "utf-8")
    drawn = path.read_text("utf-8")
    end = time.monotonic() + LIMIT_S
    while now() != drawn and time.monotonic() < end:
        await pilot.pause(0.05)
    assert now() == drawn


@pytest.mark.rule("V1", "V4")
@pytest.mark.parametrize("size", [(80, 24), (140, 40), (60, 20)])
async def test_the_table_looks_as_drawn(fake: FakeCore, size: tuple[int, int]) -> None:
    async with console(fake.runner, size=size) as (app, pilot):
        await until(pilot, lambda: "core 0s" in screen_text(app), "the core beats")
        side = app.screen.query_one(StoryView)
        await until(pilot, lambda: not side.display or len(side.lines) > 3, "the story is there")
        await check(app, pilot, f"table-{size[0]}x{size[1]}")


@pytest.mark.rule("V1", "V2")
@pytest.mark.parametrize("size", [(80, 24), (140, 40)])
async def test_the_detail_looks_as_drawn(fake: FakeCore, size: tuple[int, int]) -> None:
    async with console(fake.runner, size=size) as (app, pilot):
        app.opens("detail", "op-0000000a")
        await until(pilot, lambda: "request budget exhausted" in screen_text(app), "the story is there")
        await until(pilot, lambda: " waits " in screen_text(app), "the chart is there")
        await check(app, pilot, f"detail-{size[0]}x{size[1]}")


@pytest.mark.rule("E3", "G3")
@pytest.mark.parametrize("size", [(80, 24), (140, 40)])
async def test_the_card_looks_as_drawn_before_and_between_the_keys(fake: FakeCore, size: tuple[int, int]) -> None:
    async with console(fake.runner, size=size) as (app, pilot):
        card = await open_card(app, pilot, "op-0000000a")
        card.action_ends(0)
        assert isinstance(app.screen, CardScreen)
        await check(app, pilot, f"card-{size[0]}x{size[1]}")
        await choose(app, pilot, card, "extend", "extend 15")
        await check(app, pilot, f"confirm-{size[0]}x{size[1]}")


@pytest.mark.rule("G7", "E10", "X7")
@pytest.mark.parametrize("size", [(80, 24), (140, 40)])
@pytest.mark.parametrize(
    ("name", "what", "opened"),
    [
        ("call-card", "card", CALL),
        ("session-card", "group", f"session_approval:acme-prod:{OWNER}"),
        ("first-use-card", "card", FIRST_USE),
        ("mode-card", "asked", MODE),
    ],
)
async def test_approvals_look_as_drawn(size: tuple[int, int], name: str, what: str, opened: str) -> None:
    core = asking(FakeCore(seeded()[:3]))
    async with console(core.runner, size=size) as (app, pilot):
        app.opens(what, opened)
        await until(pilot, lambda: getattr(app.screen, "shown", None) is not None, "the card is there")
        card: Any = app.screen
        await read_to_the_end(app, pilot, card)
        card.action_ends(0)
        await check(app, pilot, f"{name}-{size[0]}x{size[1]}")


@pytest.mark.rule("V4", "G7", "E10")
@pytest.mark.parametrize("size", [(80, 24), (140, 40)])
async def test_the_queue_of_approvals_looks_as_drawn(size: tuple[int, int]) -> None:
    core = asking(FakeCore(seeded()[:3]))
    async with console(core.runner, size=size) as (app, pilot):
        await pilot.press("A")
        await until(pilot, lambda: "GET https://" in screen_text(app), "the requests are read")
        await check(app, pilot, f"approvals-{size[0]}x{size[1]}")


CHAIN = bridge.ChainState(
    begun=True, key="pollconsole/00112233445566778899aabbccddeeff+0011aabb+AVvY4cQm2xU1dO0sZ0s5vT0mWc7wzq4b1x2y3z4A5B6",
    log_id="00112233445566778899aabbccddeeff", keys_in="keyring", anchor_in="keyring", epoch=1,
    epoch_since=Instant(NOW - 3 * DAY), epoch_from=5_121, links=12_345, head="5f1d" * 16, events=12_300,
    events_before=4, checkpoints=48, signed_to=12_288,
    signed_at=Instant(NOW - 4 * MINUTE), note="pollconsole/0011", anchored_to=12_340,
    anchored_at=Instant(NOW - 9 * SECOND),
)  # fmt: skip
CREDENTIAL = bridge.CredentialView(
    info={
        "name": "acme-prod", "kind": "bearer", "mode": "per_session", "origins": ["https://api.acme.example:443"],
        "created_at": "2025-12-01T10:00:00Z", "last_used_at": "2026-01-01T10:57:00Z",
    },
    sessions=(
        bridge.LiveSession(
            owner="console-4711-1f2e3d4c", started_at=NOW, until=Instant(NOW + 90 * MINUTE), calls=200, calls_left=188,
            granted_by="ana@ops1 (/dev/pts/4)",
        ),
    ),
)  # fmt: skip
CONTRACTS = [
    bridge.ContractView(name="acme", contract="acme", source="/h/providers/acme.toml", title="Acme exports",
                        digest="5f1d" * 16, observation="read_only", evidence="docs.acme.example, 2026-01-01"),
    bridge.ContractView(name="bolt", contract="acme", source="config.toml", title="Acme exports", digest="0a" * 32,
                        base_url="https://bolt.example", seen_at=Instant(NOW - DAY), seen_by="ana@ops1"),
    bridge.ContractView(name="broken", contract="broken", source="/h/providers/broken.toml",
                        error="broken.toml:7: states.waiting: \"Running\" is also in states.failed"),
    bridge.ContractView(name="example-jobs", contract="example-jobs", source="shipped", title="Example Jobs",
                        digest="0b" * 32, observation="read_only", evidence="our own", tested_live="2026-01-01"),
]  # fmt: skip
SETTINGS = bridge.Settings(
    (
        bridge.Setting("home", "home", "/home/ana/.local/share/pollconsole", "POLLCONSOLE_HOME"),
        bridge.Setting("store", "SQLite", "3.53.4, pysqlite3", "installed"),
        bridge.Setting("ceilings", "max status requests", "200", "config.toml [ceilings]"),
    ),
    ("config.toml: changed since this console began; it takes effect at the next start",),
)


@pytest.mark.parametrize("size", [(80, 24), (140, 40)])
@pytest.mark.parametrize(
    ("name", "key", "reads", "found", "said"),
    [
        ("audit", "V", "chain_state", CHAIN, "12,345"),
        ("credentials", "K", "credential_views", [CREDENTIAL], "188 of 200"),
        ("providers", "P", "contract_views", CONTRACTS, "not seen by an operator"),
        ("settings", "comma", "settings", SETTINGS, "installed"),
    ],
)
async def test_the_screens_beside_the_table_look_as_drawn(
    fake: FakeCore, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int], name: str, key: str, reads: str, found: Any,
    said: str,
) -> None:  # fmt: skip
    async def given(*_: Any, **__: Any) -> Any:
        return found

    monkeypatch.setattr(bridge, reads, given)
    async with console(fake.runner, size=size) as (app, pilot):
        await pilot.press(key)
        await until(pilot, lambda: said in screen_text(app), "it is read")
        await check(app, pilot, f"{name}-{size[0]}x{size[1]}")


@pytest.mark.parametrize("size", [(80, 24), (140, 40)])
async def test_help_and_messages_look_as_drawn(fake: FakeCore, size: tuple[int, int]) -> None:
    async with console(fake.runner, size=size) as (app, pilot):
        app.state.say("op-0000000a: granted, the wait goes on", "good")
        for key, name in (("question_mark", "help"), ("M", "messages")):
            await pilot.press(key)
            # said just now, however long this machine took to open the screen
            app.state.messages[-1] = structs.replace(app.state.messages[-1], said_s=time.monotonic(), left=False)
            await check(app, pilot, f"{name}-{size[0]}x{size[1]}")
            await pilot.press("escape")
