"""The callers of the demo: whoever hands the waits over, and the agent that asks for more time.

Job: a thread with a core of its own on the same home, as a command of an agent would have: it stores credentials,
submits, and asks; it polls nothing and grants nothing. Must not know: screens, answers.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from pollconsole import bridge
from pollconsole.demo.approvals import CALL_KEY, MODE_AT_S, MODE_BECAUSE
from pollconsole.demo.cases import AGENT, ASKS_AT_S, Case
from pollconsole.demo.clock import DemoClock
from pollconsole.demo.jobs import Job, Jobs
from pollconsole.demo.ordinary import Arrival
from pollcore.facts import CredentialMode, Instant, PollconsoleError, Secret

SEED_LIMIT_S: Final = 60.0
"""Real time for handing over what is there from the start."""
STOP_LIMIT_S: Final = 10.0
LOOK_S: Final = 0.1
"""Real time between two looks at the demo's clock."""
EXTENSION: Final = (15, 4)
"""Minutes and checks that the agent asks for: a size that the contract lists."""
BECAUSE: Final = "the bake is at 80 percent, and the farm is slower than planned"


class DemoCredential(msgspec.Struct, frozen=True):
    """A credential that is stored at the start, pinned to one provider."""

    name: str
    provider: str
    secret: Secret
    mode: CredentialMode = CredentialMode.STANDING


class Agents:
    """The thread. `start` returns when the first waits are handed over; `stop` ends it."""

    def __init__(
        self,
        home: Path,
        clock: DemoClock,
        jobs: Jobs,
        urls: Mapping[str, str],
        credentials: tuple[DemoCredential, ...],
        overrides: Mapping[str, Any],
    ) -> None:
        self.problem: str | None = None
        """What a later hand-over failed of; the demo goes on without it."""
        self._home = home
        self._clock = clock
        self._jobs = jobs
        self._urls = urls
        self._credentials = credentials
        self._overrides = dict(overrides)
        self._seeded = threading.Event()
        self._stop = threading.Event()
        self._failed: BaseException | None = None
        self._thread: threading.Thread | None = None

    def start(self, first: Iterable[Case], later: Iterator[Arrival]) -> None:
        """Hand over *first*, then *later* as time passes.

        Raises what the hand-over raises; TimeoutError: not within SEED_LIMIT_S.
        """
        self._thread = threading.Thread(target=self._run, args=(tuple(first), later), name="demo-agents", daemon=True)
        self._thread.start()
        if not self._seeded.wait(SEED_LIMIT_S):
            raise TimeoutError("the demo's first waits could not be handed over in time")
        if self._failed is not None:
            raise self._failed

    def stop(self) -> None:
        """End the thread, within STOP_LIMIT_S."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(STOP_LIMIT_S)

    def _run(self, first: tuple[Case, ...], later: Iterator[Arrival]) -> None:
        async def work(core: bridge.Core) -> None:
            await self._begin(core, first)
            self._seeded.set()
            await self._go_on(core, first, later)

        try:
            bridge.with_core(self._home, work, **self._overrides)
        except BaseException as error:
            self._failed = error
            self.problem = f"{type(error).__name__}: {error}"
        finally:
            self._seeded.set()

    async def _begin(self, core: bridge.Core, first: tuple[Case, ...]) -> None:
        await core.prepare()  # the audit's chain begins first, so that it holds the storing of credentials, too
        for one in self._credentials:
            await bridge.set_credential(
                core, one.name, kind="bearer", names=(), origins=(self._urls[one.provider],), secret=one.secret
            )
            await bridge.credential_mode(core, one.name, one.mode, AGENT)
        for case in first:
            await self._hand_over(core, case)

    async def _go_on(self, core: bridge.Core, first: tuple[Case, ...], later: Iterator[Arrival]) -> None:
        asking = [case.operation_id for case in first if case.asks_extension]
        following, mode_asked = next(later, None), False
        while not self._stop.is_set() and (following is not None or asking):
            passed = self._clock.passed_s()
            try:
                if asking and passed >= ASKS_AT_S:
                    await core.actions.request_extension(asking.pop(), *EXTENSION, BECAUSE, AGENT)
                if not mode_asked and passed >= MODE_AT_S:
                    mode_asked = True
                    await bridge.credential_mode(core, CALL_KEY, CredentialMode.STANDING, AGENT, MODE_BECAUSE)
                if following is not None and passed >= following.at_s:
                    arrived, following = following, next(later, None)
                    await self._hand_over(core, arrived.case)
            except PollconsoleError as error:
                self.problem = str(error)
            await asyncio.sleep(LOOK_S)

    async def _hand_over(self, core: bridge.Core, case: Case) -> None:
        """Begin the job at the provider, and hand its wait over."""
        now = self._clock.now().wall
        born = Instant(now - int(case.started_ago_s * 1_000))
        provider = case.dialect.provider
        job = Job(provider=provider, job_id=case.job_id, life=case.life, born=born, keeps_going=case.keeps_going)
        self._jobs.add(job)
        spec = bridge.submit_spec(
            provider=provider,
            job_id=case.job_id,
            operation_id=case.operation_id,
            label=case.label,
            caller=case.caller,
            account=case.account,
            credential=case.credential,
            params=case.params,
            idempotency_key=f"key-{case.job_id}" if case.params else None,
            started_at=born,
            deadline_at=_ahead(now, case.deadline_s),
            useful_until=_ahead(now, case.useful_s),
            max_status_requests=case.max_status_requests,
            max_transport_failures=case.max_transport_failures,
            max_rate_limited=case.max_rate_limited,
        )
        await core.actions.submit(spec)


def _ahead(now: Instant, seconds: float | None) -> Instant | None:
    return None if seconds is None else Instant(now + int(seconds * 1_000))
