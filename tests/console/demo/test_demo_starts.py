"""The README's first command, as a newcomer types it: a real process on a real terminal, from start to quit."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.console.ptylib import Terminal

ROOT = Path(__file__).parents[3]
START_S = 60
END_S = 30


@pytest.mark.rule("V1", "V4")
@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (140, 40)])
def test_the_demo_shows_live_waits_and_a_wanted_decision_and_quits_by_two_keys(columns: int, rows: int) -> None:
    checkout = {"PYTHONPATH": f"{ROOT / 'core'}:{ROOT / 'console'}"}
    argv = [sys.executable, "-m", "pollconsole", "demo"]
    with Terminal(argv, env=checkout, columns=columns, rows=rows) as terminal:
        terminal.until_text("op-1", START_S)
        terminal.until(lambda: "E open" in terminal.text, START_S, "a wanted decision")
        terminal.send(b"q")
        terminal.run_for(0.5)
        terminal.send(b"Q")
        terminal.until(lambda: terminal.exit_code is not None, END_S, "the end of the demo")
        assert terminal.exit_code == 0
