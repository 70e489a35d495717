"""An event loop on virtual time, and processes in it that can be stopped, killed and awaited.

Job: run callbacks in one fixed order; jump to the next timer when nothing is ready; keep back every callback of a
process that is stopped (SIGSTOP). Must not know: stores, providers, rules. No threads, no file descriptors, no clock.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from asyncio import base_events, events
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any, Final

MAX_STEPS: Final = 15_000
"""Callbacks of one seed: a loop that spins without time moving is stopped here."""


class NothingScheduled(RuntimeError):
    """Everybody waits and nobody will ever wake: a deadlock of the code under test."""


class TooManySteps(RuntimeError):
    """Callbacks without end."""


class Killed(BaseException):
    """Raised by every port of a process that was killed: it can do nothing any more."""


class Process:
    """One operating system process: what runs in it, and whether it is stopped or dead."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.stopped = False
        self.dead = False
        self.tasks: list[asyncio.Task[Any]] = []
        self._kept: list[events.Handle] = []
        self.stops = 0
        """How often it was stopped: tells whether an answer could be recorded at once."""

    def keep(self, handle: events.Handle) -> None:
        self._kept.append(handle)

    def stop(self) -> None:
        """SIGSTOP: nothing of it runs any more."""
        self.stopped = True
        self.stops += 1

    def resume(self, loop: SimLoop) -> None:
        """SIGCONT: everything that came due meanwhile runs now, in order."""
        self.stopped = False
        kept, self._kept = self._kept, []
        loop.add_ready(kept)

    def kill(self, loop: SimLoop) -> None:
        """SIGKILL: the ports raise from here on; what is left is unwound without an effect."""
        if self.dead:
            return
        self.dead = True
        self.resume(loop)
        for task in self.tasks:
            task.cancel()


current: ContextVar[Process | None] = ContextVar("current", default=None)


class SimHandle(events.Handle):
    """A callback that a stopped process keeps for later."""

    __slots__ = ("_process",)

    def __init__(self, callback: Any, args: Any, loop: Any, context: Context) -> None:
        super().__init__(callback, args, loop, context)
        self._process = context.get(current)

    def _run(self) -> None:
        process = self._process
        if process is not None and process.stopped:
            process.keep(self)
            return
        super()._run()


class SimTimer(events.TimerHandle):
    """The same for a callback at a time."""

    __slots__ = ("_process",)

    def __init__(self, when: float, callback: Any, args: Any, loop: Any, context: Context) -> None:
        super().__init__(when, callback, args, loop, context)
        self._process = context.get(current)

    def _run(self) -> None:
        process = self._process
        if process is not None and process.stopped:
            process.keep(self)
            return
        super()._run()


class SimTask(asyncio.Task[Any]):
    """A task whose place in a set does not depend on its address in memory."""

    numbers = itertools.count()

    def __init__(self, *args: Any, **named: Any) -> None:
        self.number = next(SimTask.numbers)
        super().__init__(*args, **named)

    def __hash__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        return self is other


class SimLoop(base_events.BaseEventLoop):
    """Time jumps to the next timer as soon as nothing is ready."""

    def __init__(self) -> None:
        super().__init__()
        self.virtual = 0.0
        self.steps = 0
        self.failures: list[dict[str, Any]] = []
        self._ready: Any
        self._scheduled: list[Any]
        SimTask.numbers = itertools.count()
        self.set_task_factory(lambda loop, coro, **named: SimTask(coro, loop=loop, **named))
        self.set_exception_handler(lambda _, told: self.failures.append(told))

    def time(self) -> float:
        return self.virtual

    @property
    def ms(self) -> int:
        """Virtual milliseconds."""
        return round(self.virtual * 1000)

    def add_ready(self, handles: list[events.Handle]) -> None:
        self._ready.extend(handles)

    def _call_soon(self, callback: Any, args: Any, context: Context | None) -> SimHandle:
        handle = SimHandle(callback, args, self, copy_context() if context is None else context)
        self._ready.append(handle)
        return handle

    def call_soon(  # type: ignore[override]
        self, callback: Any, *args: Any, context: Context | None = None
    ) -> SimHandle:
        return self._call_soon(callback, args, context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: Context | None = None
    ) -> SimTimer:
        timer = SimTimer(when, callback, args, self, copy_context() if context is None else context)
        heapq.heappush(self._scheduled, timer)
        timer._scheduled = True  # type: ignore[attr-defined]
        return timer

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Any, *args: Any, context: Context | None = None
    ) -> SimTimer:
        return self.call_at(self.virtual + delay, callback, *args, context=context)

    def _run_once(self) -> None:
        ready, scheduled = self._ready, self._scheduled
        while scheduled and scheduled[0]._cancelled:
            heapq.heappop(scheduled)._scheduled = False
        if not ready:
            if not scheduled:
                raise NothingScheduled("everybody waits and nothing is scheduled")
            self.virtual = max(self.virtual, scheduled[0]._when)
        while scheduled and scheduled[0]._when <= self.virtual:
            timer = heapq.heappop(scheduled)
            timer._scheduled = False
            ready.append(timer)
        self.steps += len(ready)
        if self.steps > MAX_STEPS:
            raise TooManySteps(f"{self.steps} callbacks at {self.virtual:.3f} s")
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()

    def _write_to_self(self) -> None:
        """No other thread is there to wake this one."""

    def _process_events(self, event_list: Any) -> None:
        """No file descriptors."""

    def spawn(self, process: Process, make: Callable[[], Coroutine[Any, Any, Any]]) -> asyncio.Task[Any]:
        """A task of *process*, with everything that it starts."""
        context = copy_context()
        context.run(current.set, process)
        task = context.run(lambda: self.create_task(make()))
        process.tasks = [t for t in process.tasks if not t.done()]
        process.tasks.append(task)
        return task
