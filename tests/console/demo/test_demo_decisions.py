"""Decisions in the demo lead somewhere (cancel, resubmission, credential, check, extension); demos keep apart."""

from __future__ import annotations

import asyncio

import pytest
from tests.console.demo.conftest import rows

from pollconsole import bridge, demo
from pollcore.facts import ChoiceKind, EventName, Operation, Status, StopReason

LIMIT_S = 60.0
"""Real time; some 15 s are needed."""
CANCELLED = "op-351"
FAILED = "op-219"
ROTATED = "op-360"
PAUSED = "op-214"
ASKED = "op-355"
DECISIONS = {
    CANCELLED: ChoiceKind.CANCEL_AT_PROVIDER,
    FAILED: ChoiceKind.RESUBMIT,
    ROTATED: ChoiceKind.USE_OTHER_CREDENTIAL,
    PAUSED: ChoiceKind.CHECK_ONCE,
    ASKED: ChoiceKind.EXTEND,
}


async def choose(core: bridge.Core, operation_id: str, kind: ChoiceKind) -> None:
    """What the console does after its keys, on the card as it is now."""
    shown = await core.actions.card(operation_id)
    choice = next(one for one in shown.choices if one.kind is kind and one.unavailable is None)
    await core.actions.decide(
        operation_id,
        shown.question.escalation_id,
        choice.key,
        shown.digest,
        {"keys": "by a test"},
        core.actions.operator(),
    )


async def decide_what_is_asked(core: bridge.Core, done: set[str]) -> None:
    for question in await core.store.questions():
        kind = DECISIONS.get(question.operation_id)
        if kind is not None and question.operation_id not in done:
            done.add(question.operation_id)
            await choose(core, question.operation_id, kind)


def again_of(found: dict[str, Operation], operation_id: str) -> Operation | None:
    return next((op for op in found.values() if op.submitted.resubmit_of == operation_id), None)


@pytest.mark.rule("E4", "E5", "E6", "E7", "V5")
async def test_each_kind_of_decision_is_answered_by_the_provider() -> None:
    done: set[str] = set()

    async def until(setup: demo.DemoSetup, core: bridge.Core) -> bool:
        if not done and setup.clock.passed_s() > 20:
            await core.actions.open_question(CANCELLED, core.actions.operator())
        await decide_what_is_asked(core, done)
        found = await rows(core)
        again = again_of(found, FAILED)
        return (
            done == set(DECISIONS)
            and found[CANCELLED].status is Status.CANCELLED
            and again is not None
            and again.completed_polls > 0
            and found[PAUSED].status is Status.SUCCEEDED
            and found[ROTATED].last_known_state == "in_progress"
            and found[ROTATED].status is Status.WAITING
        )

    async def look(setup: demo.DemoSetup, core: bridge.Core) -> None:
        found = await rows(core)
        assert done == set(DECISIONS)
        states = [e.state for _, e in await core.store.events(CANCELLED) if e.event is EventName.POLLED]
        assert states[-2:] == ["cancelling", "cancelled"]
        assert setup.provider.jobs.cancels("render-farm", "vid_351n") == 1
        assert found[CANCELLED].status is Status.CANCELLED
        again = again_of(found, FAILED)
        assert again is not None
        assert again.last_known_state in ("queued", "running", "succeeded")
        assert found[ROTATED].credential == "batch-llm-key"
        assert found[ROTATED].status is Status.WAITING
        assert found[PAUSED].status is Status.SUCCEEDED
        assert (found[ASKED].max_status_requests, found[ASKED].extensions_used) == (29, 1)
        assert await core.store.check() == []

    await demo.run_headless(LIMIT_S, look, until)


async def test_two_demos_at_once_do_not_disturb_each_other() -> None:
    async def until(setup: demo.DemoSetup, core: bridge.Core) -> bool:
        found = await rows(core)
        # the origin of one demo asked by the other would be a stranger, its token refused
        return setup.clock.passed_s() > 60 and any(op.status is Status.SUCCEEDED for op in found.values())

    async def look(setup: demo.DemoSetup, core: bridge.Core) -> tuple[str, set[str], bool]:
        found, asked = await rows(core), setup.provider.jobs.asked()
        denied = {one for one, op in found.items() if op.stop_reason is StopReason.AUTHORIZATION_DENIED}
        counted = all(
            asked[op.submitted.provider, op.submitted.job_id] == op.status_requests_used for op in found.values()
        )
        assert setup.provider.jobs.strangers == 0
        return str(setup.home), denied - {"op-366", *(f"op-36{n}" for n in range(4))}, counted

    one, two = await asyncio.gather(
        demo.run_headless(LIMIT_S, look, until), demo.run_headless(LIMIT_S, look, until, seed=8)
    )
    assert one[0] != two[0]
    assert (one[1:], two[1:]) == ((set(), True), (set(), True))


async def test_the_same_seed_hands_over_the_same_waits() -> None:
    async def none(setup: demo.DemoSetup, core: bridge.Core) -> bool:
        return True

    async def look(setup: demo.DemoSetup, core: bridge.Core) -> list[tuple[str, str, str | None, int]]:
        found = await rows(core)
        begin = setup.clock.begin
        return sorted(
            (one, op.submitted.job_id, op.submitted.label, op.started_at - begin) for one, op in found.items()
        )[:40]

    first = await demo.run_headless(LIMIT_S, look, none)
    assert first == await demo.run_headless(LIMIT_S, look, none)
    assert len(first) == 40
