"""The example app with the guarded card, whose terminal is asked questions behind its back: run inside a real xterm.

`python xterm_app.py OUTCOME VIEWS QUESTIONS`: what is decided goes to OUTCOME, each view of the guard to VIEWS; a file
`up` beside it says that keys are taken. While the file QUESTIONS exists, its bytes are written to the terminal again,
raw, as a provider's text would be that nothing had made harmless; the terminal's answers then arrive as keys. The bytes
of a file `walled` beside it go through the driver.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    from pollconsole.environment import scrub_environment

    scrub_environment()

import json
import os
from pathlib import Path

from pollconsole.guard_facts import GuardView
from tests.console.guard_example import CardScreen, ExampleApp

AGAIN_S = 0.07


class Asked(ExampleApp):
    """*questions*: the file of bytes to write; *views*: where each view is told."""

    def __init__(self, outcome: Path, views: Path, questions: Path) -> None:
        super().__init__(outcome)
        self._told = views
        self._questions = questions
        self._walled = questions.with_name("walled")

    def on_mount(self) -> None:
        self.set_interval(AGAIN_S, self._ask)
        self.call_after_refresh(self._told.with_name("up").touch)

    def _ask(self) -> None:
        if self._questions.exists():
            # past every wall of ours, as if all of them had failed
            os.write(1, self._questions.read_bytes())
        elif self._walled.exists() and self._driver is not None:
            self._driver.write(self._walled.read_bytes().decode("latin-1"))
            self._driver.flush()

    def tell(self, view: GuardView) -> None:
        """One line for each view that was drawn."""
        seen = {"state": view.state.value, "step": view.step, "letter": view.letter}
        with self._told.open("a") as file:
            file.write(json.dumps(seen) + "\n")


def _drawn(self: CardScreen, view: GuardView) -> None:
    app = self.app
    assert isinstance(app, Asked)
    app.tell(view)
    _draw(self, view)


if __name__ == "__main__":
    _draw = CardScreen.draw_guard
    CardScreen.draw_guard = _drawn  # type: ignore[method-assign]
    Asked(*(Path(each) for each in sys.argv[1:4])).run()
