"""Operators at consoles and agents at command lines, as the seed moves them.

Job: submit jobs, draw cards and decide them (fresh, stale, twice), lower authority, ask for more. Must not know: what
is right; whatever the actions refuse is fine, whatever else they raise is not.
"""

from __future__ import annotations

import asyncio
import functools
import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from pollcore.actions import Actions, Shown, SubmitSpec
from pollcore.facts import (
    ChoiceKind,
    ContractError,
    CredentialUnavailable,
    Instant,
    Operator,
    Refused,
    Stale,
    Status,
    StoreUnusable,
)
from pollcore.ports import Filter
from tests.sim.loop import Killed, Process

if TYPE_CHECKING:
    from tests.sim.world import World

EXPECTED: Final = (Refused, Stale, StoreUnusable, ContractError, CredentialUnavailable)
TRIES: Final = 12


class Crowd:
    """Everybody outside of the workers."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._tasks: list[asyncio.Task[Any]] = []
        self._stopped = False
        self._numbers = 0
        self._processes: list[Process] = []

    def start(self) -> None:
        self._spawn("submitter", self._submit_all)
        for number in range(self._world.plan.operators):
            self._spawn(f"operator-{number}", functools.partial(self._operate, number))
        if self._world.plan.operators:
            self._spawn("agent", self._ask)

    def stop(self) -> None:
        """Nobody begins anything new; who stood still goes on."""
        self._stopped = True
        for process in self._processes:
            if process.stopped:
                process.resume(self._world.loop)

    def _spawn(self, name: str, life: Callable[[Process], Awaitable[None]]) -> None:
        world = self._world

        def begin() -> None:
            if self._stopped or world.violation is not None:
                return
            self._numbers += 1
            process = Process(f"{name}-{self._numbers}")
            self._processes.append(process)
            task = world.loop.spawn(process, lambda: _as_coroutine(life(process)))
            task.add_done_callback(lambda done: ended(process, done))

        def ended(process: Process, task: asyncio.Task[Any]) -> None:
            if process.dead and not self._stopped:
                world.later(3_000, begin)
            elif not task.cancelled() and not process.dead and task.exception() is not None:
                error = task.exception()
                world.broken("total", f"{process.name}: {type(error).__name__}: {error}")

        begin()

    @property
    def _over(self) -> bool:
        return self._stopped or self._world.violation is not None

    async def _submit_all(self, process: Process) -> None:
        world = self._world
        chance = random.Random(f"submitter {world.seed} {process.name}")
        actions = world.actions(process, "submitter")
        for number in range(world.plan.jobs):
            if self._over:
                return
            spec = self._spec(chance, number)
            for _ in range(TRIES):
                try:
                    made = await actions.submit(spec)
                except StoreUnusable:
                    await asyncio.sleep(2)
                    continue
                except EXPECTED as error:
                    world.note("refused", process.name, type(error).__name__, str(error)[:90])
                    break
                world.note("submitted", made.operation.operation_id, made.operation.status.value, made.existed)
                break
            await asyncio.sleep(chance.choice((0, 0, 0.5, 10, 40)))

    def _spec(self, chance: random.Random, number: int) -> SubmitSpec:
        now = self._world.now()
        provider = chance.choice(self._world.plan.providers)
        useful = Instant(now.wall + chance.choice((15_000, 30_000, 60_000, 90_000))) if chance.random() < 0.25 else None
        return SubmitSpec(
            provider=provider,
            # of one instance alone: the transport tells operations apart by their address
            job_id=f"{provider}.{number if chance.random() < 0.9 else 0}",
            operation_id=f"op-{number}",
            params={"input": "x"},
            deadline_ms=chance.choice((None, None, 25_000, 60_000, 150_000)),
            max_status_requests=chance.choice((None, None, 1, 3)),
            useful_until=useful,
            idempotency_key=f"key-{number}" if chance.random() < 0.5 else None,
            caller="sim",
        )

    # --- operators ----------------------------------------------------------------------------------------------------

    async def _operate(self, number: int, process: Process) -> None:
        world = self._world
        chance = random.Random(f"operator {world.seed} {process.name}")
        actions = world.actions(process, f"operator-{number}")
        old: list[Shown] = []
        while not self._over:
            await asyncio.sleep(chance.choice((1, 4, 10, 30)))
            if self._over:
                return
            try:
                await self._look(process, actions, chance, old)
            except EXPECTED as error:
                world.note("refused", process.name, type(error).__name__, str(error)[:90])

    async def _look(self, process: Process, actions: Actions, chance: random.Random, old: list[Shown]) -> None:
        world = self._world
        operator = actions.operator()
        if chance.random() < 0.1:
            await actions.cards()
        store = world.store
        asked = [q for q in await store.questions() if chance.random() < 0.8]
        if not asked or chance.random() < 0.1:
            running = await store.operations(Filter(statuses=(Status.WAITING, Status.HELD)))
            if running:
                await actions.open_question(chance.choice(running).operation_id, operator)
            return
        shown = await actions.card(chance.choice(asked).operation_id)
        world.watch.painted(shown)
        if world.plan.gated and chance.random() < 0.5:
            await actions.seen(shown.operation.operation_id, shown.question.escalation_id)
            if chance.random() < 0.4:
                return  # looked at, and left
        if old and chance.random() < 0.15:
            world.cover("stale card decided")
            shown = chance.choice(old)
        old.append(shown)
        await asyncio.sleep(chance.choice((0.5, 3, 15)))
        if self._over:
            return
        choices = [c for c in shown.choices if c.decides]
        # closing everything would leave nothing to look at
        choices = [c for c in choices if c.kind is not ChoiceKind.CLOSE or chance.random() < 0.3] or choices
        choice = chance.choice(choices)
        twice = chance.random() < 0.25
        for _ in range(2 if twice else 1):
            world.note("decides", process.name, shown.operation.operation_id, choice.kind.value, choice.label)
            await self._decide(actions, shown, choice.key, operator)
        if twice:
            world.cover("the same card decided twice")

    async def _decide(self, actions: Actions, shown: Shown, key: str, operator: Operator) -> None:
        question = shown.question
        try:
            await actions.decide(
                question.operation_id, question.escalation_id, key, shown.digest, {"guard": "sim"}, operator, None
            )
        except EXPECTED as error:
            self._world.note("refused", str(operator), type(error).__name__, str(error)[:120])

    # --- agents -------------------------------------------------------------------------------------------------------

    async def _ask(self, process: Process) -> None:
        """An agent at a command line: asks for more, lowers, pauses, submits again."""
        world = self._world
        chance = random.Random(f"agent {world.seed} {process.name}")
        actions = world.actions(process, "agent")
        while not self._over:
            await asyncio.sleep(chance.choice((5, 15, 30)))
            if self._over:
                return
            known = await world.store.operations(Filter(limit=50))
            if not known:
                continue
            one = chance.choice(known)
            try:
                await self._one(actions, chance, one.operation_id)
            except EXPECTED as error:
                world.note("refused", process.name, type(error).__name__, str(error)[:90])

    async def _one(self, actions: Actions, chance: random.Random, operation_id: str) -> None:
        world = self._world
        if world.plan.gated and chance.random() < 0.3:
            await self._lower_leave(actions, chance, operation_id)
            return
        what = chance.choice(("extend", "extend", "hold", "end_hold", "close", "reject", "pause", "again", "again"))
        world.note("agent", what, operation_id)
        match what:
            case "extend":
                size = chance.choice(((1, 2), (3, 4), (7, 7)))
                await actions.request_extension(operation_id, *size, "because", "agent")
            case "pause":
                provider = chance.choice(world.plan.providers)
                until = Instant(world.now().wall + chance.choice((5_000, 40_000)))
                await actions.pause(provider, None, until, "agent")
            case "again":
                # the same job once more: a duplicate, a second submission, or what has ended
                one = await world.store.operation(operation_id)
                assert one is not None
                again = SubmitSpec(
                    provider=one.submitted.provider, job_id=one.submitted.job_id, params={"input": "x"}, caller="agent"
                )
                await actions.submit(again)
            case _:
                await actions.lower(operation_id, ChoiceKind(what), "because", "agent")

    async def _lower_leave(self, actions: Actions, chance: random.Random, operation_id: str) -> None:
        """What anyone may do about the use of credentials: deny it, end a session."""
        world = self._world
        if chance.random() < 0.3:
            world.note("agent", "deny", operation_id)
            await actions.lower(operation_id, ChoiceKind.DENY, "because", "agent")
            return
        known = [one.credential for one in await world.store.sessions()]
        name = chance.choice(known or list(world.plan.credentials))
        world.note("agent", "end session", name)
        if await actions.end_session(name, "because", "agent"):
            world.cover("session ended by hand")


async def _as_coroutine(life: Awaitable[None]) -> None:
    try:
        await life
    except Killed:
        raise
