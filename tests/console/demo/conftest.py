"""One demo, polled without a screen, and everything that was seen of it: shared by the tests that only look."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pollconsole import bridge, demo
from pollconsole.bridge import reports
from pollconsole.demo.cases import Expect
from pollcore.facts import AuditEvent, Escalation, Operation
from pollcore.ports import Filter

ROOT = Path(__file__).resolve().parents[3]
LIMIT_S = 90.0
"""Real time; some 25 s are needed on two cores that have other things to do."""
PROCESS_LIMIT_S = 60
EXPECTED = {case.operation_id: case.expect for case in demo.setup.MISBEHAVING if case.expect is not None}
ARRIVED = 10
"""So many of the jobs that come later are waited for."""


class Seen(NamedTuple):
    """A demo after its misbehaviours have come to what they come to."""

    home: Path
    modes: dict[str, int]
    operations: dict[str, Operation]
    questions: list[Escalation]
    aside: list[Escalation]
    """Those that belong to a credential."""
    marks: dict[str, bool]
    """By provider: whether its contract is marked as new."""
    unseen: set[str]
    """Operations whose card says that."""
    events: list[AuditEvent]
    asked: dict[str, int]
    """By operation: status requests that reached the provider."""
    strangers: int
    wrong: list[str]
    """What does not add up in the store."""
    problem: str | None
    printed: dict[str, str]
    """By command line: what the command printed."""
    report: dict[str, Any]
    keyring: str


def outcome(operation: Operation) -> Expect:
    return Expect(operation.status, operation.stop_reason, operation.stop_detail)


async def rows(core: bridge.Core) -> dict[str, Operation]:
    return {op.operation_id: op for op in await core.store.operations(Filter(limit=10_000))}


def printed(home: Path, *arguments: str) -> str:
    """What a command of another process prints of this home, byte for byte."""
    path = os.pathsep.join((str(ROOT / "core"), str(ROOT / "console")))
    ran = subprocess.run(
        [sys.executable, "-m", "pollconsole", *arguments, "--home", str(home)],
        capture_output=True,
        timeout=PROCESS_LIMIT_S,
        env={**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"},
        check=True,
    )
    return ran.stdout.decode("utf-8")


async def enough(setup: demo.DemoSetup, core: bridge.Core) -> bool:
    """Every case is where it belongs, the agent has asked, the outage is over, and some jobs have come later."""
    found = await rows(core)
    settled = all(one in found and outcome(found[one]) == wanted for one, wanted in EXPECTED.items())
    came = sum(one.startswith("op-10") and len(one) == 7 for one in found) >= ARRIVED
    return settled and came and setup.clock.passed_s() > 260 and bool(await core.store.credential_questions())


async def says_new(core: bridge.Core, operation_id: str) -> bool:
    return any(line.label == "Contract file:" for line in (await core.actions.card(operation_id)).card.lines)


async def look(setup: demo.DemoSetup, core: bridge.Core) -> Seen:
    found = await rows(core)
    asked = setup.provider.jobs.asked()
    now = core.clock.now()
    files = (setup.home, setup.home / "config.toml", setup.home / "providers/demo-batch.toml")
    commands = ("list", "escalations", "show op-254", "audit show op-320", "audit show op-253")
    return Seen(
        home=setup.home,
        modes={path.name: stat.S_IMODE(path.stat().st_mode) for path in files},
        operations=found,
        questions=list(await core.store.questions()),
        aside=list(await core.store.credential_questions()),
        unseen={q.operation_id for q in await core.store.questions() if await says_new(core, q.operation_id)},
        marks={view.name: view.unseen for view in await bridge.contract_views(core)},
        events=[event for _, event in await core.store.events(limit=100_000)],
        asked={one: asked[op.submitted.provider, op.submitted.job_id] for one, op in found.items()},
        strangers=setup.provider.jobs.strangers,
        wrong=list(await core.store.check()),
        problem=setup.agents.problem,
        printed={line: await asyncio.to_thread(printed, setup.home, *line.split()) for line in commands},
        report=await reports.report(core, setup.clock.begin, now.wall),
        keyring=core.vault.describe(),
    )


@pytest.fixture(scope="session")
def seen() -> Iterator[Seen]:
    def none(*_: object) -> None:
        raise AssertionError("the demo looked for a real keyring")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pollcore.adapters.keyring_store.choose_backend", none)
        yield asyncio.run(demo.run_headless(LIMIT_S, look, enough))
