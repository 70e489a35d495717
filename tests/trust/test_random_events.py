"""Two thousand random events on a real pty: whatever a keyboard, a mouse, a paste or a line brings, nothing grants."""

from __future__ import annotations

import json
import random
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from pollconsole.guard_facts import GuardTimes
from tests.console import guard_example
from tests.console.ptylib import Terminal

EVENTS: Final = 2_000
MAX_EVENTS: Final = 3 * EVENTS
"""On a machine so slow that an operator among them is seldom in time."""
TIMES: Final = GuardTimes()
SLACK_S: Final = 0.05
"""The pty's ends do not see a key at the same moment."""
LETTERS: Final = "abdefhmuvwz"
OPEN: Final = "\x1b[201~A"
OPENING_S: Final = 1.0
"""Between the key that opens a card and the card's guard (the example binds keys that a real console does not have)."""
OPERATOR, SHOWN = "an operator waits until the card is armed", "the letter that is shown"
#: What an operator's fingers do once the card is armed: approve, deny, change their mind.
FINGERS: Final[tuple[list[tuple[str, float]], ...]] = (
    [("1", 1.1), (SHOWN, 0.5)],
    [("1", 1.1), (SHOWN, 0.5)],
    [("1", 1.1), ("\x1b", 0.3)],
    [("2", 0.5)],
    [("1", 0.1)],
    [],
)
PIECES: Final = (
    *("1", "2", "1", "3", "y", "n", "\r", " ", "\x1b", "\t", "j", "A", "\x1b[A", "\x1b[97;1:2u", "\x1b[49;1:3u"),
    *(
        "\x1b[200~1\x1b[201~",
        "\x1b[200~2\x1b[201~1",
        "\x1b[I",
        "\x1b[O",
        "\x1b[<0;5;5M",
        "\x1b[<0;5;5m",
        "\x1b[<64;5;5M",
    ),
    *(
        "\x1b[5;5R",
        "\x1bP1$r0;1m\x1b\\",
        "\x1b]11;rgb:ffff/ffff/ffff\x1b\\",
        "\x1b[?64;1c",
        "\x1b]lb\x1b\\",
        "1\r",
        "11",
    ),
    *("\x1b[<64;5;5M", "1\r", "yes please 1\r", "\x1b1", "\xc2\x9b1", "\x00", "\x7f", "\x1b[", "1" * 30),
)


@dataclass(frozen=True)
class Sent:
    """One write to the keyboard's side, from the moment before it to the one after, and what the card showed then."""

    at: float
    done: float
    text: str
    letter: str | None


def test_two_thousand_random_events_grant_nothing_without_two_lone_genuine_keys(tmp_path: Path) -> None:
    chance = random.Random(20_261_130)
    outcome = tmp_path / "outcome"
    log: list[Sent] = []
    operator: list[tuple[str, float]] = []
    judged = approvals = denials = 0
    with Terminal([sys.executable, guard_example.__file__, str(outcome)]) as terminal:
        terminal.until_text("A opens")
        while len(log) < EVENTS or (not (approvals >= 3 and denials >= 1) and len(log) < MAX_EVENTS):
            if "Operation: op-004377" not in terminal.text:
                log.append(sent(terminal, OPEN, None))  # a paste that was begun is over
                terminal.run_for(0.05)
                continue
            letter = _letter(terminal)
            text, gap = operator.pop(0) if operator else _event(chance, letter)
            if text == OPERATOR:
                operator = chance.choice(FINGERS).copy()
                text = ""
            elif text == SHOWN:
                text = letter or "1"
            log.append(sent(terminal, text, letter))
            terminal.run_for(gap)
            for record in _decided(outcome)[judged:]:
                judged += 1
                if "naive" in record:
                    assert any(one.text in (OPEN, "A") and log[-1].at - one.done < OPENING_S for one in log), log[-9:]
                    continue
                keys = [step["key"] for step in record["steps"]]
                if record["choice"] == "1":
                    approvals += 1
                    assert len(keys) == 2, record
                    _two_lone_keys(log, keys)
                else:
                    denials += 1
                    assert record["choice"] == "2", record
        assert terminal.exit_code is None
    # the judge had work: an operator who is there now and then is among the events
    assert approvals >= 3
    assert denials >= 1


def sent(terminal: Terminal, text: str, letter: str | None) -> Sent:
    """Send it."""
    began = time.monotonic()
    terminal.send(text.encode("latin-1"))
    return Sent(began, time.monotonic(), text, letter)


def _event(chance: random.Random, letter: str | None) -> tuple[str, float]:
    """A piece and the time after it: mostly noise in bursts; now and then somebody who waits and presses keys."""
    drawn = chance.random()
    if drawn < 0.01:
        return OPERATOR, 1.3
    if letter is not None and drawn < 0.12:
        return letter, chance.choice((0.3, 0.01, 0.01))
    if letter is not None and drawn < 0.2:
        return chance.choice(LETTERS), 0.05
    return chance.choice(PIECES), chance.choice((0.0, 0.0, 0.005, 0.02, 0.1))


def _two_lone_keys(log: list[Sent], keys: list[str]) -> None:
    """The last write is the shown letter, the one before it the digit, and each stood alone in time."""
    written = [one for one in log if one.text]
    before, digit, letter = written[-3:]
    assert (digit.text, letter.text) == (keys[0], keys[1]), written[-6:]
    assert letter.text == letter.letter
    assert digit.done - before.at >= TIMES.quiet - SLACK_S, written[-6:]
    assert letter.done - digit.at >= TIMES.alone + TIMES.quiet_again - SLACK_S, written[-6:]


def _letter(terminal: Terminal) -> str | None:
    found = re.search(r"press (\w) to confirm", terminal.text)
    return found[1] if found else None


def _decided(outcome: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in outcome.read_text().splitlines()] if outcome.exists() else []


pytestmark = [pytest.mark.rule("G3"), pytest.mark.slow]
