"""The console over cores in memory, on a real terminal: ``python note_example.py OUTCOME``.

What is decided is appended to the file OUTCOME, one JSON line each, with the note that went with it.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    from pollconsole.environment import scrub_environment

    scrub_environment()

import json
from pathlib import Path
from typing import Any

from tests.console.screens.fakes import FakeActions, FakeCore
from tests.console.seed import seeded

from pollconsole.console import ConsoleApp
from pollconsole.core_thread import CoreThread


class TellingActions(FakeActions):
    """Writes down what is decided."""

    def __init__(self, core: FakeCore, outcome: Path) -> None:
        super().__init__(core)
        self._outcome = outcome

    async def decide(self, operation_id: str, *rest: Any, **more: Any) -> Any:
        with self._outcome.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"operation": operation_id, "choice": rest[1], "because": rest[5]}) + "\n")
        return await super().decide(operation_id, *rest, **more)


if __name__ == "__main__":
    core = FakeCore(seeded())
    core.actions = TellingActions(core, Path(sys.argv[1]))
    link = CoreThread(core.runner)
    link.start()
    ConsoleApp(link, title="prod").run(mouse=False)
    link.stop()
