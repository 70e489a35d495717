"""The console as lines, for screen readers and logs: what there is, then one line an event, each card whole.

Job: run or watch the core as the console does, print what happens; nothing is ever moved, overwritten or coloured.
Must not know: keys. Nothing is decided here, and no input is read.

Source: spec V1, V2, V3, E3, G4, G5.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from pollconsole import bridge
from pollconsole.beats import other_core
from pollconsole.cli import out, present
from pollconsole.cli.plain_cards import Cards, Look, Opened, head, others_line
from pollconsole.core_thread import CoreRunner, CoreThread
from pollconsole.mailbox import Beat, CoreRole, Delta
from pollconsole.safe import safe
from pollcore.facts import DAY, Instant, Operation, PollconsoleError, Status, clock_time, iso

LOOK_S: Final = 0.5
"""Between two looks for news."""
OPEN_LIMIT_S: Final = 60.0
"""How long opening a store may take."""
MAX_EVENTS: Final = 1_000
"""Lines of one look; what is more comes with the next."""
ASK_LIMIT_S: Final = 60.0
ENDING: Final = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
DECIDE_AT: Final = "Nothing is decided here: 'pollconsole' in a terminal, keys E and A, is where an operator decides."
FAILED: Final = 1
MAX_ROWS: Final = 10_000
"""Live operations of one table."""
_LIVE: Final = tuple(status for status in Status if not status.is_end)
_MORE: Final = "{:,} more cards wait: 'pollconsole escalations' prints each"
_ROLES: Final = {
    CoreRole.OWN: "this process polls",
    CoreRole.ATTACHED: "another process polls; this one tells what happens",
    CoreRole.READ_ONLY: "started to look: nothing is polled from here",
}


def run_plain(core_runner: CoreRunner, *, title: str, read_only: bool = False) -> int:
    """Tell what happens until a signal ends it; the exit code. The core runs, or is watched, as under the console."""
    link = CoreThread(core_runner, read_only=read_only)
    link.start()
    try:
        return asyncio.run(_Teller(link, title).tell())
    finally:
        if not link.stop():
            out.note("requests in flight were not answered in time; they stay counted")


class _Teller:
    """What was told so far."""

    def __init__(self, link: CoreThread, title: str) -> None:
        self._link = link
        self._title = title
        self._stop = asyncio.Event()
        self._operations: dict[str, Operation] = {}
        self._cards = Cards()
        self._role: CoreRole | None = None
        self._beats: tuple[Beat, ...] = ()
        self._health: str | None = None
        self._audit: str | None = None
        self._noticed = 0
        self._after: int | None = None
        self._day: int | None = None

    async def tell(self) -> int:
        """From the first line to the last."""
        loop = asyncio.get_running_loop()
        for number in ENDING:
            loop.add_signal_handler(number, self._stop.set)
        out.text(f"{self._title}, told in lines. Times are UTC. Ctrl+C ends it.")
        out.text(DECIDE_AT)
        first = await self._opened()
        if first is None:
            return 0
        if first.role is CoreRole.FAILED:
            raise PollconsoleError(first.health or "the core ended")
        self._take(first)
        self._after, _ = await self._ask(lambda core: bridge.latest(core, None, 0))
        await self._table()
        await self._tell_cards(self._cards.look(first.questions, self._operations, self._wall()))
        self._link.first_rows_painted()
        self._tell_role(first)
        while not await self._wait():
            delta = self._link.take()
            self._take(delta)
            await self._look(delta)
            if self._role is CoreRole.FAILED:
                return FAILED
        out.text(f"ending: {self._goes_on()}")
        return 0

    async def _opened(self) -> Delta | None:
        """The first rows; None: it was told to end before."""
        for _ in range(int(OPEN_LIMIT_S / LOOK_S)):
            delta = self._link.take()
            if delta.loaded:
                return delta
            if await self._wait():
                return None
        raise PollconsoleError(f"the store was not open within {OPEN_LIMIT_S:g} s")

    async def _wait(self) -> bool:
        """Rest between two looks; whether it is to end."""
        try:
            await asyncio.wait_for(self._stop.wait(), LOOK_S)
        except TimeoutError:
            return False
        return True

    async def _ask(self, what: Any) -> Any:
        return await self._link.ask(what, limit_s=ASK_LIMIT_S)

    # --- news ---------------------------------------------------------------------------------------------------------

    def _take(self, delta: Delta) -> None:
        """Live rows alone are kept: this runs for months."""
        for operation in delta.operations:
            if operation.status.is_end and all(q.operation_id != operation.operation_id for q in delta.questions):
                self._operations.pop(operation.operation_id, None)
            else:
                self._operations[operation.operation_id] = operation

    async def _look(self, delta: Delta) -> None:
        self._tell_role(delta)
        try:
            self._after, lines = await self._ask(lambda core: bridge.latest(core, self._after, MAX_EVENTS))
            for at, line in lines:
                self._event(at, line)
            for notice in await self._ask(self._notices):
                out.text(f"core: {notice}")
            await self._tell_cards(self._cards.look(delta.questions, self._operations, self._wall()))
        except PollconsoleError as error:
            if not self._stop.is_set():
                out.text(f"what happened could not be read: {error}")

    async def _notices(self, core: bridge.Core) -> tuple[str, ...]:
        """What the core noticed since the last look: a new home's public key, a contract of the user's own."""
        fresh = tuple(core.notices[self._noticed :])
        self._noticed += len(fresh)
        return fresh

    def _event(self, at: Instant, line: str) -> None:
        if at // DAY != self._day:
            self._day = at // DAY
            out.text(iso(at)[:10])
        out.text(f"{clock_time(at)} {line}")

    def _tell_role(self, delta: Delta) -> None:
        self._beats = delta.beats
        if delta.role is not self._role:
            self._role = delta.role
            if delta.role in _ROLES:
                out.text(f"core: {_ROLES[delta.role]}")
        if delta.health != self._health:
            self._health = delta.health
            out.text(f"core: nothing is sent: {delta.health}" if delta.health else "core: it is well again")
        audit = None if delta.audit is None else delta.audit.why
        if audit != self._audit:
            self._audit = audit
            out.text(f"core: the audit is not anchored: {audit}" if audit else "core: the audit is anchored again")

    def _goes_on(self) -> str:
        """What stops and what goes on (V3)."""
        live = sum(not operation.status.is_end for operation in self._operations.values())
        count = f"{live:,} live wait{'s' * (live != 1)}"
        if self._role is CoreRole.OWN:
            now = self._link.now()
            other = None if now is None else other_core(self._beats, now)
            if other is not None:
                kind = safe(other.kind, 8)
                return f"the core of this process stops; another core ({kind} {other.pid}) polls on with {count}"
            return f"the core of this process stops, {count} stand still; jobs go on at their providers"
        if self._role is CoreRole.ATTACHED:
            return f"another process goes on with {count}"
        return "nothing of the core ran here"

    # --- what there is ------------------------------------------------------------------------------------------------

    def _wall(self) -> Instant:
        """This moment by the core's clock; 0 before it has told one: then nothing has passed yet."""
        now = self._link.now()
        return Instant(0) if now is None else now.wall

    async def _table(self) -> None:
        now = self._link.now()
        live = [each for each in self._operations.values() if not each.status.is_end]
        if now is None:
            _rows(len(live), "")
            return
        polled = self._role not in (CoreRole.READ_ONLY, CoreRole.FAILED) or other_core(self._beats, now) is not None
        _rows(len(live), present.rows(live, now, polled=polled))

    async def _tell_cards(self, look: Look) -> None:
        for number, operation_id in look.gone:
            out.text(f"Card {number}, {operation_id or 'a credential'}: no question any more")
        for card in look.opened:
            tell(card, await self._ask(lambda core, card=card: card_lines(core, card)))
        if look.counted:
            out.text(_MORE.format(look.counted))


async def card_lines(core: bridge.Core, card: Opened) -> list[str]:
    """The card in E3's words, its choices with what they lead to."""
    question = card.question
    try:
        if not question.operation_id:  # it belongs to a credential
            return list((await core.actions.card_of(question.escalation_id)).card.text())
        return (await bridge.whole_with_card(core, question.operation_id))[1]
    except PollconsoleError as error:
        return [f"{question.reason}; the card cannot be shown: {error}"]


def tell(card: Opened, lines: Sequence[str]) -> None:
    """Print one card, set apart by empty lines."""
    out.text()
    out.text(head(card, clock_time(card.question.asked_at)))
    for line in lines or ["it was decided meanwhile"]:
        out.text(line)
    if others := others_line(card):
        out.text(others)
    out.text(DECIDE_AT)
    out.text()


class Once(msgspec.Struct, frozen=True):
    """What there is: rows, cards, and what is wrong with the core. *live*: how many; *shown*: how many have a row."""

    live: int
    shown: int
    rows: str
    cards: tuple[tuple[Opened, list[str]], ...]
    counted: int
    warning: str | None

    def tell(self) -> None:
        """Print it."""
        _rows(self.live, self.rows)
        if self.live > self.shown:
            out.text(f"and {self.live - self.shown:,} more that changed earlier: 'pollconsole list --limit N'")
        for card, lines in self.cards:
            tell(card, lines)
        if self.counted:
            out.text(_MORE.format(self.counted))
        if not self.cards:
            out.text("No open question.")
        if self.warning:
            out.note(self.warning)


def _rows(live: int, rows: str) -> None:
    out.text(f"{live:,} live operation{'s' * (live != 1)}{':' if live else '.'}")
    if live:
        out.text(rows)


async def read_once(core: bridge.Core) -> Once:
    """The live operations and the open cards of this moment."""
    now = core.clock.now()
    found = await bridge.operations(core, statuses=_LIVE, limit=MAX_ROWS)
    asked = await bridge.questions_in_order(core)
    known = {operation.operation_id: operation for _, operation in asked if operation is not None}
    look = Cards().look([question for question, _ in asked], known, now.wall)
    cards = tuple([(card, await card_lines(core, card)) for card in look.opened])
    counts = await core.store.counts()
    live = max(len(found), sum(counts.get(status.value, 0) for status in _LIVE))
    silence = await present.core_warning(core)
    return Once(live, len(found), present.rows(found, now, polled=silence is None), cards, look.counted, silence)
