"""A core without disk and network for screen tests: real cards and choices over records held in memory.

What decisions do is proved over a real core elsewhere; here it is enough that a decision arrives, once, with its proof.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import msgspec
from tests.console.seed import MOMENT, Seeded

from pollconsole.safe import safe
from pollcore import escalation
from pollcore.card import Asked, Card, GroupCard, card, digest, join, member
from pollcore.facts import (
    MINUTE,
    AuditEvent,
    BootMs,
    Cancel,
    Choice,
    Confirm,
    CredentialMode,
    Escalation,
    EventName,
    ExtendSize,
    ForceCancel,
    Instant,
    Moment,
    NotFound,
    Operation,
    Operator,
    Policy,
    Refused,
    Stale,
    Status,
    StopReason,
)
from pollcore.ports import Filter, Worker

POLICY = Policy(
    extend=(ExtendSize(15, 4), ExtendSize(60, 10)),
    cancel=Cancel(
        "The provider stops the export and deletes what was written so far.", Confirm(5, 3), best_effort=True
    ),
    force_cancel=ForceCancel("The export is killed; its temporary files stay and are billed.", Confirm(10, 4)),
)
OPERATOR = Operator("ana", "ops1", "/dev/pts/4")


class FakeClock:
    """Stands still until it is moved."""

    def __init__(self, moment: Moment = MOMENT) -> None:
        self.moment = moment

    def now(self) -> Moment:
        return self.moment

    def forward(self, ms: int) -> None:
        self.moment = self.moment.after(ms)


class FakeShown(msgspec.Struct, frozen=True):
    """As `actions.card` gives it."""

    card: Card
    question: Escalation
    operation: Operation | None
    choices: tuple[Choice, ...]
    digest: str


class FakeGroup(msgspec.Struct, frozen=True):
    """As `actions.group` gives it."""

    cause: str
    card: GroupCard
    left_out: tuple[tuple[str, str], ...] = ()

    @property
    def digest(self) -> str:
        return self.card.digest


class FakeOutcome(msgspec.Struct, frozen=True):
    """As `actions.decide_group` gives it."""

    label: str
    done: tuple[str, ...]
    refused: tuple[tuple[str, str], ...]
    untouched: tuple[str, ...]


class FakeStore:
    """Records in dictionaries; every write raises the change number."""

    def __init__(self, seeded: Iterable[Seeded]) -> None:
        self.lock = threading.Lock()
        self.rows: dict[str, Operation] = {}
        self.open: dict[str, Escalation] = {}
        self.told: dict[str, list[AuditEvent]] = {}
        self.beats: list[Worker] = []
        self.aside: list[Escalation] = []
        """Open questions that belong to a credential."""
        self.number = 0
        for each in seeded:
            self.put(each.operation, each.question, each.events)

    def put(
        self,
        row: Operation,
        question: Escalation | None = None,
        events: Sequence[AuditEvent] = (),
        *,
        ask: bool = False,
    ) -> Operation:
        """Write a row; *question* None closes none unless *ask*."""
        with self.lock:
            self.number += 1
            row = msgspec.structs.replace(row, change=self.number)
            self.rows[row.operation_id] = row
            if question is not None:
                self.open[row.operation_id] = question
            elif ask:
                self.open.pop(row.operation_id, None)
            self.told.setdefault(row.operation_id, []).extend(events)
        return row

    async def operation(self, operation_id: str) -> Operation | None:
        return self.rows.get(operation_id)

    async def operations(self, wanted: Filter) -> Sequence[Operation]:
        with self.lock:
            rows = sorted(self.rows.values(), key=lambda row: -row.change)
        return [
            row
            for row in rows
            if (not wanted.statuses or row.status in wanted.statuses) and row.change > (wanted.changed_since or 0)
        ][: wanted.limit]

    async def questions(self, operation_id: str | None = None, *, open_only: bool = True) -> Sequence[Escalation]:
        with self.lock:
            return [q for key, q in self.open.items() if operation_id in (None, key)]

    async def asked(self, cause: str | None = None) -> Sequence[tuple[Operation, Escalation]]:
        with self.lock:
            return [(self.rows[key], q) for key, q in self.open.items() if cause in (None, q.cause)]

    async def credential_questions(self, *, open_only: bool = True) -> Sequence[Escalation]:
        return list(self.aside)

    async def events(
        self, operation_id: str | None = None, *, after: int = 0, limit: int = 10_000
    ) -> Sequence[tuple[int, AuditEvent]]:
        told = self.told.get(operation_id or "", [])
        return [(n, event) for n, event in enumerate(told, 1) if n > after][:limit]

    async def workers(self) -> Sequence[Worker]:
        return list(self.beats)

    async def change(self) -> int:
        return self.number

    async def wait_for_change(self, after: int, timeout_s: float) -> int:
        for _ in range(int(timeout_s / 0.02)):
            if self.number > after:
                break
            await asyncio.sleep(0.02)
        return self.number


class FakeActions:
    """Real cards; decisions are written down and change a few fields."""

    def __init__(self, core: FakeCore) -> None:
        self.core = core
        self.decided: list[tuple[str, str, dict[str, Any]]] = []
        self.noted: list[str | None] = []
        """What the operator wrote, by decision."""
        self.threads: set[str] = set()
        self.drawn: dict[str, FakeGroup] = {}
        self.live: list[Any] = []
        """Sessions that can still be used."""
        self.looked: list[tuple[str, str]] = []
        """Cards that were painted: operation and question."""
        self.facts: dict[str, escalation.Circumstances] = {}
        """By operation: what its card is drawn from besides the record."""
        self.before_decide: Callable[[], None] = lambda: None

    def operator(self) -> Operator:
        return OPERATOR

    async def present(self) -> None:
        """A console is open."""

    async def sessions(self) -> tuple[Any, ...]:
        return tuple(self.live)

    async def card(self, operation_id: str) -> FakeShown:
        self.threads.add(threading.current_thread().name)
        row = self.core.store.rows.get(operation_id)
        if row is None:
            raise NotFound(f"no operation {operation_id!r}")
        question = self.core.store.open.get(operation_id)
        if question is None:
            raise Refused(f"{operation_id}: no question is open")
        now = self.core.clock.now()
        facts = self.facts.get(operation_id)
        choices = escalation.choices(row, question, policy=POLICY, now=now, circumstances=facts)
        drawn = card(row, question, choices, now=now, harmless=lambda text: safe(text, 2_000), circumstances=facts)
        return FakeShown(drawn, question, row, drawn.choices, digest(drawn))

    async def aged(self, drawn: Any) -> int:
        if isinstance(drawn, FakeGroup):
            fresh = {each.operation_id: each.digest for each in (await self.group(drawn.cause)).card.members}
            return sum(fresh.get(each.operation_id) != each.digest for each in drawn.card.members)
        return int(
            drawn.operation is not None and (await self.card(drawn.operation.operation_id)).digest != drawn.digest
        )

    async def seen(self, operation_id: str, escalation_id: str) -> bool:
        self.looked.append((operation_id, escalation_id))
        return True

    async def card_of(self, escalation_id: str) -> FakeShown:
        """The card of a question that belongs to a credential."""
        question = next((each for each in self.core.store.aside if each.escalation_id == escalation_id), None)
        if question is None:
            raise Refused(f"{escalation_id}: it was decided already", code="no_question")
        now, name = self.core.clock.now(), question.cause.partition(":")[2]
        modes = (CredentialMode.PER_CALL, CredentialMode.STANDING)
        facts = escalation.Circumstances(
            mode=escalation.ModeChange(
                credential=name, before=modes[0], after=modes[1], kind="bearer", origins=("https://api.acme.test:443",)
            )
        )
        choices = escalation.choices(None, question, policy=Policy(), now=now, circumstances=facts)
        drawn = card(None, question, choices, now=now, circumstances=facts)
        return FakeShown(drawn, question, None, drawn.choices, digest(drawn))

    async def decide_question(
        self, escalation_id: str, choice_key: str, card_digest: str, evidence: dict[str, Any], operator: Operator,
        because: str | None,
    ) -> Escalation:  # fmt: skip
        self.before_decide()
        shown = await self.card_of(escalation_id)
        if shown.digest != card_digest:
            raise Stale("the card has moved since it was drawn; nothing was done")
        choice = next(each for each in shown.choices if each.key == choice_key)
        self.decided.append((escalation_id, choice.kind.value, evidence))
        self.noted.append(because)
        self.core.store.aside = [each for each in self.core.store.aside if each.escalation_id != escalation_id]
        self.core.store.number += 1
        return shown.question

    async def open_question(self, operation_id: str, operator: Operator) -> Escalation:
        row = self.core.store.rows[operation_id]
        row = msgspec.structs.replace(row, version=row.version + 1)
        question = Escalation(
            escalation_id=f"esc-{operation_id}",
            operation_id=operation_id,
            reason=StopReason.OPERATOR_REQUEST,
            detail=None,
            cause=f"operator_request:{operation_id}",
            asked_at=self.core.clock.now().wall,
            version=row.version,
            asked_by=str(operator),
        )
        self.core.store.put(row, question)
        return question

    async def decide(
        self,
        operation_id: str,
        escalation_id: str,
        choice_key: str,
        card_digest: str,
        evidence: dict[str, Any],
        operator: Operator,
        because: str | None,
    ) -> Operation:
        self.threads.add(threading.current_thread().name)
        self.before_decide()
        shown = await self.card(operation_id)
        if shown.digest != card_digest or shown.question.escalation_id != escalation_id:
            raise Stale("the card has moved since it was drawn; nothing was done")
        choice = next(each for each in shown.choices if each.key == choice_key)
        self.decided.append((operation_id, choice.kind.value, evidence))
        self.noted.append(because)
        now = self.core.clock.now()
        row = shown.operation
        assert row is not None
        closes = choice.kind.value == "close"
        after = msgspec.structs.replace(
            row,
            status=Status.CLOSED if closes else Status.HELD if choice.kind.value == "hold" else Status.WAITING,
            version=row.version + 1,
            max_status_requests=row.max_status_requests + choice.checks,
            deadline_at=Instant(max(row.deadline_at, now.wall) + choice.minutes * MINUTE)
            if choice.minutes
            else row.deadline_at,
            hold_until=Instant(now.wall + 30 * MINUTE) if choice.kind.value == "hold" else None,
            next_poll_at=None if closes else Instant(now.wall + 3_000),
        )
        told = AuditEvent(
            at=now.wall,
            event=EventName.GRANTED,
            operation_id=operation_id,
            decision=choice.label,
            operator=str(operator),
        )
        return self.core.store.put(after, None, (told,), ask=True)

    async def group(self, cause: str) -> FakeGroup:
        self.threads.add(threading.current_thread().name)
        now = self.core.clock.now()
        pairs = await self.core.store.asked(cause)
        if not pairs:
            raise Refused("nothing is asked any more for this cause")
        members = [
            member(Asked(row, question, POLICY, self.facts.get(row.operation_id)), now) for row, question in pairs
        ]
        drawn = FakeGroup(cause, join(cause, members, now, lambda text: safe(text, 2_000)))
        self.drawn[drawn.digest] = drawn
        return drawn

    async def decide_group(
        self,
        cause: str,
        choice_key: str,
        card_digest: str,
        evidence: dict[str, Any],
        operator: Operator,
        because: str | None,
    ) -> FakeOutcome:
        self.threads.add(threading.current_thread().name)
        self.before_decide()
        drawn = self.drawn[card_digest].card
        choice = next(each for each in drawn.choices if each.key == choice_key)
        done, refused = [], []
        for each in drawn.members:
            if each.operation_id not in choice.operation_ids:
                continue
            row = self.core.store.rows[each.operation_id]
            if row.version != each.version or each.operation_id not in self.core.store.open:
                refused.append((each.operation_id, "it changed since the list was drawn"))
                continue
            self.decided.append((each.operation_id, choice.kind.value, evidence))
            self.noted.append(because)
            after = msgspec.structs.replace(row, status=Status.WAITING, version=row.version + 1)
            self.core.store.put(after, ask=True)
            done.append(each.operation_id)
        rest = tuple(each for each in drawn.operation_ids if each not in choice.operation_ids)
        return FakeOutcome(choice.label, tuple(done), tuple(refused), rest)


class FakeController:
    """Polls nothing; counts turns, so that a test sees whether it lives."""

    def __init__(self, core: FakeCore) -> None:
        self.health: str | None = None
        self.turns = 0
        self.ended = False
        self.core = core

    def wake(self) -> None:
        """Nothing to do."""

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            self.turns += 1
            now = self.core.clock.now()
            self.core.store.beats = [
                Worker(
                    owner="me",
                    pid=os.getpid(),
                    host=socket.gethostname(),
                    kind="console",
                    started_at=now.wall,
                    beat_at=now.wall,
                    beat_boot=BootMs(now.boot),
                    boot_id=now.boot_id,
                )
            ]
            await asyncio.sleep(0.02)
        self.ended = True


class FakeAuditState(msgspec.Struct):
    """As `AuditKeeper.state`, as far as the status line reads it."""

    why: str | None = None
    alarm: bool = False


class FakeAudit:
    """Anchored until a test says otherwise."""

    def __init__(self) -> None:
        self.state = FakeAuditState()

    async def anchor(self, store: FakeStore, now: Moment) -> bool:
        return self.state.why is None


class FakeCore:
    """What the console needs of a core."""

    def __init__(self, seeded: Iterable[Seeded]) -> None:
        self.clock = FakeClock()
        self.store = FakeStore(seeded)
        self.actions = FakeActions(self)
        self.polling = FakeController(self)
        self.audit = FakeAudit()
        self.notices: list[str] = []
        self.config = SimpleNamespace(metrics=None, screen=SimpleNamespace(bell=False, title=False))

    async def send_notices(self, say: Callable[[str], None]) -> None:
        """Nobody is told outside."""
        await asyncio.Event().wait()

    async def ready(self) -> None:
        """As `Core.ready`: before it polls."""

    def is_gone(self, owner: str, host: str) -> bool:
        return False

    def controller(self) -> FakeController:
        return self.polling

    def runner(self, job: Callable[[Any], Awaitable[None]]) -> None:
        """As `bridge.with_core`."""

        async def body() -> None:
            await job(self)

        asyncio.run(body())
