"""Notices: looks at what others committed, keeps what is to be told, has it sent, one sender a store.

Job: the order of the steps: claim, look, keep, compose, send, keep. Must not know: what makes an item or a message
(pollcore.notices), how anything is sent, where addresses lie. Never on the way of a poll: it reads the store and writes
one document of its own; sending runs beside it. A message whose sender dies between sending and keeping is sent again.
Source: spec G5, E10, K1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol

import msgspec

from pollcore.controller.live import Live, rest_s
from pollcore.facts import MINUTE, Escalation, Instant, Moment, Operation, PollconsoleError
from pollcore.notices import (
    LIMIT_TRIES,
    Delivery,
    Ledger,
    Rules,
    Seen,
    begin,
    composed,
    due_deliveries,
    is_due,
    looked,
    message,
    settled,
    tried,
)
from pollcore.ports import Clock, Store

KIND: Final = "notice"
LEDGER: Final = "ledger"
LOOK_S: Final = 2.0
"""The longest pause between two looks."""
REST_S: Final = 1.0
"""Between two looks, however fast the store changes."""
MAX_REST_S: Final = 20.0
"""The same where a look is long, because much is live: shorter than an approval's lead of a minute."""
CLAIM_S: Final = 10.0
"""Between two tries to be the sender of the store."""
DEADLINES_MS: Final = 30_000
"""How often the deadlines of all live operations are looked at; changed ones are looked at when they change."""
KEEP_MS: Final = 10 * MINUTE
"""How far the kept change number may lag behind while there is nothing to tell."""
TROUBLE_S: Final = 5.0


class NoticeStore(Store, Protocol):
    """The store with its small documents."""

    async def document(self, kind: str, name: str) -> bytes | None: ...

    async def put_document(self, now: Moment, kind: str, name: str, value: bytes | None) -> None: ...


class Addresses(Protocol):
    """Where messages go. Names are public, addresses are secrets."""

    async def names(self) -> tuple[str, ...]:
        """Of stored addresses, sorted. Raises StoreUnusable."""
        ...

    async def send(self, name: str, title: str, body: str) -> str | None:
        """None: the service took it; else why not, in words of ours. Ends within a limit; raises LookupError: there is
        no address of that name.
        """
        ...


class Notifier:
    """The sender of one process. `run` until cancelled."""

    def __init__(
        self,
        store: NoticeStore,
        addresses: Addresses,
        clock: Clock,
        rules: Rules,
        host: str,
        *,
        claim: Callable[[], Awaitable[bool]],
        minute: Callable[[Instant], int],
        say: Callable[[str], None],
    ) -> None:
        """*claim*: be the only sender of this store from now on; False: another process is. *minute*: of the local day.
        *say*: one line for the log of this process.
        """
        self._store = store
        self._addresses = addresses
        self._clock = clock
        self._rules = rules
        self._host = host
        self._claim = claim
        self._minute = minute
        self._say = say
        self._live = Live(store)
        self._ledger: Ledger | None = None
        self._kept: Ledger | None = None
        self._kept_at = 0
        self._deadlines_at = 0
        self._questions: tuple[Escalation, ...] = ()
        self._asking: Mapping[str, Operation] = {}
        self._sending: asyncio.Task[None] | None = None
        self._told_quiet: str | None = None

    async def run(self) -> None:
        """Until cancelled. A store that cannot be read is tried again; the loop itself tells of it."""
        try:
            while not await self._claimed():  # noqa: ASYNC110 - a lock of the system has no event
                await asyncio.sleep(CLAIM_S)
            change = -1
            while True:
                try:
                    change = await self._store.wait_for_change(change, LOOK_S)
                    began = self._clock.now().boot
                    await self.turn()
                    await asyncio.sleep(rest_s(self._clock.now().boot - began, REST_S, MAX_REST_S))
                except PollconsoleError:
                    await asyncio.sleep(TROUBLE_S)
                except Exception as error:  # a fault of ours in here must not end what polls
                    self._once(f"notices: a fault of ours ({type(error).__name__}); tried again")
                    await asyncio.sleep(TROUBLE_S)
        finally:
            if self._sending is not None:
                self._sending.cancel()

    async def _claimed(self) -> bool:
        try:
            return await self._claim()
        except PollconsoleError:
            return False

    def _once(self, text: str) -> None:
        if text != self._told_quiet:
            self._told_quiet = text
            self._say(text)

    # --- one turn -----------------------------------------------------------------------------------------------------

    async def turn(self) -> None:
        """Look, keep what is new, compose what is due, have it sent. Raises StoreUnusable."""
        now = self._clock.now()
        if self._ledger is None:
            await self._load(now)
        await self._look(now)
        await self._compose(now)
        await self._keep(now)
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send_due())

    async def _load(self, now: Moment) -> None:
        raw = await self._store.document(KIND, LEDGER)
        if raw is not None:
            try:
                self._ledger = msgspec.json.decode(raw, type=Ledger)
            except msgspec.DecodeError:
                self._say("notices: what was told before cannot be read; it begins anew")
        since = None if self._ledger is None else self._ledger.change
        found = await self._live.look(since)
        await self._read_questions()
        if self._ledger is None:
            self._ledger = begin(now, self._seen(found.change))
            return
        self._ledger = looked(self._ledger, self._rules, now, self._seen(found.change, ended=found.ended))

    async def _read_questions(self) -> None:
        pairs = await self._store.asked()
        self._asking = {operation.operation_id: operation for operation, _ in pairs}
        self._questions = (*(question for _, question in pairs), *await self._store.credential_questions())

    def _seen(
        self,
        change: int,
        *,
        ended: tuple[Operation, ...] = (),
        was_live: frozenset[str] = frozenset(),
        deadlines: tuple[Operation, ...] = (),
    ) -> Seen:
        live = {**self._asking, **self._live.operations}
        return Seen(
            change=change,
            questions=self._questions,
            live=live,
            ended=ended,
            was_live=was_live,
            deadlines=deadlines,
        )

    async def _look(self, now: Moment) -> None:
        found = await self._live.look()
        await self._read_questions()
        deadlines = found.running
        if not 0 <= now.boot - self._deadlines_at < DEADLINES_MS:
            self._deadlines_at = now.boot
            deadlines = tuple(self._live.operations.values())
        seen = self._seen(found.change, ended=found.ended, was_live=found.was_live, deadlines=deadlines)
        assert self._ledger is not None
        self._ledger = looked(self._ledger, self._rules, now, seen)

    async def _compose(self, now: Moment) -> None:
        ledger = self._ledger
        assert ledger is not None
        if not is_due(ledger, self._rules, now.wall, self._minute(now.wall)):
            return
        names = await self._names()
        ledger = settled(self._ledger or ledger, self._questions, self._live.operations)
        if not ledger.items and not ledger.more:
            self._ledger = ledger
            return
        if not names:
            self._once("notices: nothing is sent: no address is stored; 'pollconsole notice set NAME' stores one")
        title, body = message(ledger.items, ledger.more, self._host)
        self._ledger = composed(ledger, now.wall, title, body, names)

    async def _names(self) -> tuple[str, ...]:
        stored = await self._addresses.names()
        if not self._rules.to:
            return stored
        missing = [name for name in self._rules.to if name not in stored]
        if missing:
            self._once(f"notices: no address {', '.join(missing)}; 'pollconsole notice set NAME' stores one")
        return tuple(name for name in self._rules.to if name in stored)

    async def _keep(self, now: Moment) -> None:
        """Before anything is sent: what is told is told once, also by whoever takes over."""
        ledger = self._ledger
        if ledger is None:
            return
        same = self._kept is not None and msgspec.structs.replace(self._kept, change=ledger.change) == ledger
        if same and 0 <= now.boot - self._kept_at < KEEP_MS:
            return
        await self._store.put_document(now, KIND, LEDGER, msgspec.json.encode(ledger))
        self._kept, self._kept_at = ledger, now.boot

    # --- sending ------------------------------------------------------------------------------------------------------

    async def _send_due(self) -> None:
        """Beside the looks: a service that hangs holds up neither them nor a poll."""
        now = self._clock.now()
        assert self._ledger is not None
        for delivery in due_deliveries(self._ledger, self._rules, now.wall, self._minute(now.wall)):
            failed = await self._try(delivery)
            now = self._clock.now()
            self._ledger = tried(self._ledger, delivery, now.wall, failed)
            try:
                await self._keep(now)
            except PollconsoleError:
                return  # the next turn keeps it

    async def _try(self, delivery: Delivery) -> dict[str, str | None]:
        failed: dict[str, str | None] = {}
        for name, tries in delivery.to.items():
            try:
                why = await self._addresses.send(name, delivery.title, delivery.body)
            except LookupError:
                continue
            except PollconsoleError as error:
                why = str(error)
            failed[name] = why
            if why is not None:
                last = tries + 1 >= LIMIT_TRIES
                self._say(f"notice to {name} was not sent: {why}; {'it is given up' if last else 'it is tried again'}")
        return failed


async def forget(store: NoticeStore, now: Moment) -> None:
    """Notices are off: whoever turns them on later is told nothing of what happened before that."""
    if await store.document(KIND, LEDGER) is not None:
        await store.put_document(now, KIND, LEDGER, None)
