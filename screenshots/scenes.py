"""Every picture: what is done before it is taken, at which size, at which moment, in which theme.

Job: press keys until the screen stands there. Must not know: how a picture is drawn, where the demo comes from.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from drawing import ON_DARK, ON_LIGHT
from rich.terminal_theme import TerminalTheme
from textual.pilot import Pilot

from pollconsole.causes import by_cause
from pollconsole.console import ConsoleApp
from pollconsole.guard_facts import State
from pollconsole.screens.approvals import ApprovalsTable
from pollconsole.screens.card import CardScreen
from pollconsole.screens.deciding import DecidingScreen
from pollconsole.theme_choice import Colours
from pollconsole.themes import SHIPPED
from pollconsole.widgets import LinesView
from pollcore.facts import StopReason

EARLY_S: Final = 46.0
LATE_S: Final = 170.0
LAST_S: Final = 420.0
"""Demo times at which pictures are taken: when some things have gone wrong, when most have, when stories are long."""
APPROVALS_S: Final = 480.0
"""When every kind of approval has come."""
LIMIT_S: Final = 120.0
"""Real time that any one thing may take."""
SMALL: Final = (80, 24)
LARGE: Final = (140, 40)
CARD_OF: Final = (StopReason.REQUEST_BUDGET_EXHAUSTED, StopReason.DEADLINE_EXCEEDED, StopReason.UNKNOWN_STATE)
"""The card that is drawn answers a question of the first of these reasons that is open."""


class Studio(NamedTuple):
    """What a scene works with."""

    app: ConsoleApp
    pilot: Pilot[Any]
    size: tuple[int, int]


Scene = Callable[[Studio], Awaitable[None]]


class Picture(NamedTuple):
    """One file: what is done before it is taken, at which size, in which theme."""

    name: str
    scene: Scene
    size: tuple[int, int] = SMALL
    theme: str = "dark"
    at_s: float = EARLY_S
    terminal: TerminalTheme = ON_DARK
    colours: Colours = Colours.FULL


async def until(pilot: Pilot[Any], condition: Callable[[], Any], what: str) -> None:
    """Let the app run until *condition* holds. Raises TimeoutError."""
    end = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"did not happen within {LIMIT_S:.0f} s: {what}")
        await pilot.pause(0.05)


async def live(studio: Studio) -> None:
    await studio.pilot.press("g", "down", "down")


async def filtered(studio: Studio) -> None:
    await studio.pilot.press("slash", *"status:waiting")


async def needs_you(studio: Studio) -> None:
    await studio.pilot.press("2")


async def decisions(studio: Studio) -> None:
    await studio.pilot.press("E")


async def approvals(studio: Studio) -> None:
    await studio.pilot.press("A")
    app = studio.app
    await until(studio.pilot, lambda: type(app.screen).__name__ == "QueueScreen", "the queue opens")
    table = app.screen.query_one(ApprovalsTable)
    await until(studio.pilot, lambda: table.ids and not table.unread(), "the requests are read")


def approval_of(reason: StopReason) -> Scene:
    """The card of an approval of this kind, read to its end."""

    async def scene(studio: Studio) -> None:
        wanted = studio.app.state.board.wanted()
        asked = [each for each in wanted if each.reason is reason]
        if not asked:
            raise LookupError(f"the demo asks for no {reason.value}")
        alone = len([each for each in asked if each.cause == asked[0].cause]) == 1
        if not asked[0].operation_id:
            studio.app.opens("asked", asked[0].escalation_id)
        elif alone:
            studio.app.opens("card", asked[0].operation_id)
        else:
            studio.app.opens("group", asked[0].cause)
        await read_to_its_end(studio)

    return scene


async def help_(studio: Studio) -> None:
    await studio.pilot.press("question_mark")


async def messages(studio: Studio) -> None:
    await studio.pilot.press("p", "p", "q", "M")


async def beside(studio: Studio, key: str, kind: str) -> Any:
    """A screen beside the table, with what it reads."""
    app, pilot = studio.app, studio.pilot
    await pilot.press(key)
    await until(pilot, lambda: type(app.screen).__name__ == kind and app.screen.ready, f"{kind} opens")
    return app.screen


async def audit(studio: Studio) -> None:
    screen = await beside(studio, "V", "AuditScreen")
    await until(studio.pilot, lambda: screen.chain is not None, "the chain's state is read")
    await studio.pilot.press(studio.app.state.keymap.shown("verify"))
    await until(studio.pilot, lambda: screen.verification and not screen.verification.running, "the chain is proved")


async def log(studio: Studio) -> None:
    screen = await beside(studio, "L", "LogScreen")
    await until(studio.pilot, lambda: len(screen.content()) > 50, "the log is read")


async def settings(studio: Studio) -> None:
    screen = await beside(studio, "comma", "SettingsScreen")
    await until(studio.pilot, lambda: len(screen.content()) > 10, "the settings are read")


async def providers(studio: Studio) -> None:
    screen = await beside(studio, "P", "ProvidersScreen")
    await until(studio.pilot, lambda: screen.table.ids, "the contracts are read")
    await studio.pilot.press("slash", *"render-farm", "enter")


async def contract(studio: Studio) -> None:
    await providers(studio)
    await studio.pilot.press("enter")
    app = studio.app
    await until(studio.pilot, lambda: type(app.screen).__name__ == "ContractScreen", "the contract opens")
    await until(studio.pilot, lambda: len(app.screen.content()) > 10, "its text is read")  # type: ignore[attr-defined]


async def credentials(studio: Studio) -> None:
    screen = await beside(studio, "K", "CredentialsScreen")
    await until(studio.pilot, lambda: screen.table.ids, "the credentials are read")


async def themes(studio: Studio) -> None:
    await studio.pilot.press("T")


async def detail(studio: Studio) -> None:
    """What was asked about most and waits for a person."""
    board = studio.app.state.board
    asked = [each for each in board.operations.values() if board.asked(each)]
    chosen = max(asked, key=lambda each: (each.status_requests_used + each.transport_failures_used, each.operation_id))
    studio.app.opens("detail", chosen.operation_id)


async def card(studio: Studio) -> None:
    """A card that was read to its end, at its beginning again."""
    app = studio.app
    ids = [q.operation_id for q in app.state.board.wanted() if q.operation_id]
    app.opens("card", asked_about(app), ids)
    await read_to_its_end(studio)


async def group(studio: Studio) -> None:
    """The card of the cause that stopped most."""
    board = studio.app.state.board
    causes = by_cause([q for q in board.wanted() if q.operation_id], board.operations)
    studio.app.opens("group", max(causes, key=lambda each: len(each.questions)).cause)
    await read_to_its_end(studio)


async def read_to_its_end(studio: Studio) -> None:
    app, pilot = studio.app, studio.pilot
    await until(pilot, lambda: getattr(app.screen, "shown", None) is not None, "the card is there")
    screen = app.screen
    assert isinstance(screen, DecidingScreen)
    body = screen.query_one("#card", LinesView)
    await until(pilot, lambda: body.size.height > 0, "the card is laid out")
    while not body.at_end:
        await pilot.press("pagedown")
        await pilot.pause(0.1)
    await armed(pilot, screen, 1)
    screen.action_ends(0)


async def members(studio: Studio) -> None:
    await group(studio)
    await studio.pilot.press("l")


async def confirm(studio: Studio) -> None:
    await card(studio)
    screen = studio.app.screen
    assert isinstance(screen, CardScreen)
    assert screen.shown is not None
    digit = next(each.key for each in screen.shown.card.choices if each.grants and each.unavailable is None)
    await studio.pilot.press(digit)
    await armed(studio.pilot, screen, 2)


async def armed(pilot: Pilot[Any], screen: DecidingScreen, step: int) -> None:
    await until(
        pilot,
        lambda: screen._view is not None and screen._view.step == step and screen._view.state is State.ARMED,
        f"step {step} of the card is armed",
    )


def asked_about(app: ConsoleApp) -> str:
    """The operation whose card is drawn."""
    questions = sorted(app.state.board.wanted(), key=lambda question: question.asked_at)
    for reason in CARD_OF:
        for question in questions:
            if question.reason is reason and question.operation_id:
                return question.operation_id
    raise LookupError("the demo asks nothing that is worth a picture")


SCREENS: Final[tuple[tuple[str, Scene, float], ...]] = (
    ("live", live, EARLY_S),
    ("filter", filtered, EARLY_S),
    ("themes", themes, EARLY_S),
    ("help", help_, EARLY_S),
    ("messages", messages, EARLY_S),
    ("settings", settings, EARLY_S),
    ("providers", providers, EARLY_S),
    ("contract", contract, EARLY_S),
    ("credentials", credentials, EARLY_S),
    ("audit", audit, EARLY_S),
    ("log", log, EARLY_S),
    ("needs-you", needs_you, LATE_S),
    ("decisions", decisions, LATE_S),
    ("approvals", approvals, APPROVALS_S),
    ("call-card", approval_of(StopReason.CALL_APPROVAL), APPROVALS_S),
    ("session-card", approval_of(StopReason.SESSION_APPROVAL), APPROVALS_S),
    ("first-use-card", approval_of(StopReason.FIRST_USE), APPROVALS_S),
    ("mode-card", approval_of(StopReason.MODE_CHANGE), APPROVALS_S),
    ("detail", detail, LAST_S),
    ("card", card, LATE_S),
    ("confirm", confirm, LATE_S),
    ("group", group, LATE_S),
    ("members", members, LATE_S),
)
PICTURES: Final[tuple[Picture, ...]] = (
    *(Picture(f"{name}-{w}x{h}", scene, (w, h), at_s=at_s) for w, h in (SMALL, LARGE) for name, scene, at_s in SCREENS),
    *(Picture(f"theme-{name}", live, theme=name) for name in SHIPPED),
    Picture("theme-terminal-on-light", live, theme="terminal", terminal=ON_LIGHT),
    Picture("theme-no-colour", live, theme="monochrome", colours=Colours.NONE),
)
