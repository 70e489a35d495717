"""One home with its provider, its clock and its cores: what the tests of the loop and of the actions run in."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from pollcore.actions import Shown, SubmitSpec
from pollcore.adapters.credential_ops import set_credential
from pollcore.assembly import Core, open_core
from pollcore.controller import Controller
from pollcore.facts import (
    MINUTE,
    AuditEvent,
    Choice,
    ChoiceKind,
    Escalation,
    EventName,
    Operation,
    Operator,
    Secret,
    parse_instant,
)
from tests.controller.bank import Bank
from tests.controller.parts import Breaking, Clock, Counting, Draws, Keyring

START = parse_instant("2026-03-02T10:00:00Z")
OPERATOR = Operator("ops", "here", "pty")
KEYS: dict[str, str | int | float] = {"kind": "test"}
SECRET = "canary-secret-of-the-house"
__all__ = ["Breaking", "House", "house", "kinds", "pick", "until"]
LIMIT_S = 120
"""Real seconds after which a run that does not end has failed."""


CONTRACT = """
schema = 1
name = "acme"
tested_live = "the bank of these tests"
origins = ["{url}"]
[credential]
kind = "bearer"
optional = true
[status]
url = "{url}/v1/jobs/{{job_id}}"
observation = "read_only"
evidence = "the tests of this project"
total = "2s"
[state]
value = "body.status"
[states]
waiting = ["queued", "running"]
succeeded = ["done"]
failed = ["failed"]
cancelled = ["cancelled"]
expired = ["expired"]
needs_human = ["paused"]
[[success.requires]]
path = "body.result.url"
format = "url"
[success]
permits = "fetch_result"
[error]
code = "body.error.code"
[cancel]
method = "POST"
url = "{url}/v1/jobs/{{job_id}}/cancel"
consequences = "the job stops"
confirm = {{ minutes = 5, checks = 2 }}
[cancel.force]
method = "POST"
url = "{url}/v1/jobs/{{job_id}}/force-cancel"
consequences = "the job is killed without clean-up"
confirm = {{ minutes = 7, checks = 3 }}
[result]
url = "{url}/files/{{job_id}}"
[params.input]
about = "what the job works on"
[submission]
method = "POST"
url = "{url}/v1/jobs"
body = {{ input = "{{params.input}}" }}
idempotency = {{ header = "Idempotency-Key", max_length = 64, lifetime = "24h" }}
[submission.answer]
job_id = "body.id"
[schedule]
base_delay = "10s"
max_delay = "10s"
[limits]
deadline_basis = "decide-by: the hour"
extend = [{{ minutes = 15, checks = 4 }}, {{ minutes = 60, checks = 8 }}]
[limits.default]
deadline = "40m"
max_status_requests = 12
max_transport_failures = 3
max_rate_limited = 3
[limits.max]
deadline = "8h"
max_status_requests = 200
max_transport_failures = 50
max_rate_limited = 20
"""


class House:
    """A home whose provider `acme` (contract file) answers at `bank`. Use through `house()`."""

    def __init__(self, home: Path, seed: int = 1) -> None:
        self.home = home
        self.clock = Clock(START)
        self.keyring = Keyring()
        self.bank = Bank(self.clock)
        self.seed = seed
        self.core: Core
        self._used = 0

    # --- files --------------------------------------------------------------------------------------------------------

    def write_contract(self, *changes: tuple[str, str], name: str = "acme") -> None:
        """The contract file, with the texts of *changes* replaced (each must be there)."""
        text = CONTRACT.format(url=self.bank.url)
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        folder = self.home / "providers"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.toml").write_text(text.replace('"acme"', f'"{name}"'))

    def write_config(self, text: str) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        (self.home / "config.toml").write_text(text)

    # --- cores --------------------------------------------------------------------------------------------------------

    def open(self, **more: Any) -> Core:
        """One more core on the same home, with a transport of its own."""
        self._used += 1
        return open_core(
            self.home,
            kind="run",
            clock=self.clock,
            chance=Draws(self.seed * 1_000 + self._used),
            transport=Counting(self.clock),
            backend=self.keyring,
            **more,
        )

    @contextlib.contextmanager
    def worker(self, core: Core | None = None) -> Any:
        """A controller of *core*, its lock given up at the end."""
        core = core or self.core
        controller = core.controller()
        lock = core._lock
        assert lock is not None
        try:
            yield controller
        finally:
            lock.release()

    async def run(self, ms: int = 24 * 60 * MINUTE, core: Core | None = None) -> Controller:
        """Run the loop until nothing waits, or *ms* have passed on the jumping clock."""
        with self.worker(core) as controller:
            async with asyncio.timeout(LIMIT_S):
                await controller.run(asyncio.Event(), until_idle=True, for_ms=ms, watch=False)
        return controller

    async def run_together(self, other: Core, ms: int = 24 * 60 * MINUTE) -> None:
        """Two cores at once, until nothing waits."""
        self.clock.workers = 2

        async def one(core: Core) -> None:
            try:
                await self.run(ms, core)
            finally:
                self.clock.workers -= 1

        await asyncio.gather(one(self.core), one(other))
        self.clock.workers = 1

    # --- what people do -----------------------------------------------------------------------------------------------

    async def credential(
        self, name: str = "key", secret: str = SECRET, origins: Sequence[str] = (), core: Core | None = None
    ) -> None:
        """`credential set`."""
        core = core or self.core
        await set_credential(
            core.vault,
            core.credential_admin.meta,
            name=name,
            kind="bearer",
            origins=origins or [self.bank.url],
            secret=Secret(secret),
            now=self.clock.now().wall,
        )

    async def submit(self, job: str = "job-1", *answers: dict[str, Any], **spec: Any) -> Operation:
        """Hand a wait over as `op-JOB`; the job answers *answers*."""
        if answers:
            self.bank.scripts[job] = list(answers)
        fields = {"provider": "acme", "job_id": job, "operation_id": f"op-{job}", "account": "acct", **spec}
        return (await self.core.actions.submit(SubmitSpec(**fields))).operation

    async def op(self, operation_id: str = "op-job-1") -> Operation:
        found = await self.core.store.operation(operation_id)
        assert found is not None
        return found

    async def question(self, operation_id: str = "op-job-1") -> Escalation | None:
        return next(iter(await self.core.store.questions(operation_id)), None)

    async def card(self, operation_id: str = "op-job-1") -> Shown:
        return await self.core.actions.card(operation_id)

    async def press(self, shown: Shown, choice: Choice, because: str | None = None) -> Operation:
        """Decide what was *shown*."""
        question = shown.question
        return await self.core.actions.decide(
            shown.operation.operation_id, question.escalation_id, choice.key, shown.digest, KEYS, OPERATOR, because
        )

    async def choose(self, kind: ChoiceKind, operation_id: str = "op-job-1", label: str = "") -> Operation:
        """Draw the card and decide at once."""
        shown = await self.card(operation_id)
        return await self.press(shown, pick(shown, kind, label))

    async def events(self, name: EventName | None = None, operation_id: str | None = None) -> list[AuditEvent]:
        told = [event for _, event in await self.core.store.events(operation_id)]
        return [event for event in told if name is None or event.event is name]


def pick(shown: Shown, kind: ChoiceKind, label: str = "") -> Choice:
    """The first choice of *kind* whose label holds *label*."""
    found = [choice for choice in shown.choices if choice.kind is kind and label in choice.label]
    assert found, [choice.label for choice in shown.choices]
    return found[0]


def kinds(shown: Shown) -> list[str]:
    """What the card offers beside inspect and close, in order."""
    return [c.kind.value for c in shown.choices if c.kind not in (ChoiceKind.INSPECT, ChoiceKind.CLOSE)]


LIMITS = {
    "deadline": "deadline_at",
    "status_requests": "max_status_requests",
    "transport_failures": "max_transport_failures",
    "rate_limited": "max_rate_limited",
    "useful_until": "useful_until",
    "contract": "contract_digest",
    "credential": "credential",
}


def changed_as_shown(before: Operation, choice: Choice, after: Operation) -> None:
    """I3: each limit is what the card said, before and after; what the card did not name is as it was."""
    shown = {effect.what: (effect.before, effect.after) for effect in choice.effects}
    for what, field in LIMITS.items():
        was, now_is = getattr(before, field), getattr(after, field)
        assert (was, now_is) == shown.get(what, (was, was)), what
    used = ("status_requests_used", "transport_failures_used", "rate_limited_used")
    assert [getattr(before, name) for name in used] == [getattr(after, name) for name in used]


@contextlib.asynccontextmanager
async def house(tmp_path: Path, *changes: tuple[str, str], config: str = "", seed: int = 1) -> AsyncIterator[House]:
    """A house with the contract (changed by *changes*), one core, and the credential `key`."""
    made = House(tmp_path / "home", seed)
    async with made.bank:
        made.write_contract(*changes)
        if config:
            made.write_config(config.replace("{url}", made.bank.url))
        async with made.open() as made.core:
            await made.credential()
            yield made


async def until(true: Any, what: str) -> None:
    """Wait for a condition, with a limit."""
    async with asyncio.timeout(LIMIT_S):
        while True:
            found = true()
            if asyncio.iscoroutine(found):
                found = await found
            if found:
                return
            await asyncio.sleep(0.002)
    raise AssertionError(what)
