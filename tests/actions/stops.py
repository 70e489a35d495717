"""A wait that stopped, and a decision on it: what the tests of choices share."""

from __future__ import annotations

from typing import Any

from pollcore.facts import Choice, ChoiceKind, Operation
from tests.controller.house import House, changed_as_shown, pick


async def stop(h: House, *answers: dict[str, Any], **spec: Any) -> Operation:
    """`op-job-1` has stopped after *answers*."""
    await h.submit("job-1", *answers, **spec)
    await h.run()
    return await h.op()


async def grant(h: House, kind: ChoiceKind, label: str = "") -> tuple[Choice, Operation]:
    """Decide; the limits are what the card said."""
    before, shown = await h.op(), await h.card()
    choice = pick(shown, kind, label)
    await h.press(shown, choice)
    after = await h.op()
    changed_as_shown(before, choice, after)
    return choice, after
