"""`python -m tests.outage.dies HOME N`: gives one answer for the outage and dies at once after N transactions of it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pollcore.facts import ChoiceKind, Moment
from pollcore.ports import Write
from tests.outage.made import CAUSE, opened


async def main(home: Path, after: int) -> None:
    async with opened(home) as core:
        shown = await core.actions.group(CAUSE)
        real, done = core.store.commit_each, [0]

        async def then_die(now: Moment, writes: Sequence[Write]) -> Any:
            found = await real(now, writes)
            done[0] += 1
            if done[0] == after:
                os._exit(9)
            return found

        core.store.commit_each = then_die
        key = next(c.key for c in shown.card.choices if c.kind is ChoiceKind.EXTEND)
        await core.actions.decide_group(CAUSE, key, shown.digest, {}, core.actions.operator())


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
