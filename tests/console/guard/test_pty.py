"""The guard on a real pty: what was measured against it, as the acceptance suite. Every script ends without an approval
but the honest ones. The waits are part of the scripts: they are the fingers. Fingers that stood still (a loaded machine
gave them no time) typed another script: what was decided then was a key alone on a quiet keyboard, and says nothing."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.console.operator_keys import Operator
from tests.console.ptylib import DEFAULT_WAIT, Terminal

from pollconsole.guard_facts import LETTER_POOL

pytestmark = pytest.mark.rule("G3")

EXAMPLE = Path(__file__).parent.parent / "guard_example.py"
AFTER = 0.6
"""Seconds after a script, in which a wrongly accepted key would decide."""
LATE_S = 0.03
"""A pause of a script that was longer than meant by more than this may have made an honest key of an accident."""
TRIES = 6
"""Of one script on a machine that stands still."""


class Desk:
    """The example app on a terminal, and what it decided."""

    def __init__(
        self, outcome: Path, *, env: Mapping[str, str] | None = None, code: str | None = None, **terminal: Any
    ) -> None:
        self.outcome = outcome
        program = [str(EXAMPLE)] if code is None else ["-c", code]
        self.terminal = Terminal([sys.executable, *program, str(outcome)], env=env, **terminal)
        self.terminal.until_text("A opens")

    def open(self) -> None:
        """Press A and wait for the first bytes of the card."""
        self.terminal.send("A")
        self.terminal.until_text("Operation: op-004377")

    def armed(self, step: int = 1) -> None:
        prompt = "press one of" if step == 1 else "to confirm"
        self.terminal.until(lambda: "ARMED" in self.terminal.text and prompt in self.terminal.text, what="armed")

    def shown_letter(self) -> str:
        """The letter that stands there; empty: none does."""
        found = re.search(r"press (\w) to confirm", self.terminal.text)
        return "" if found is None else found[1]

    def decided(self) -> list[dict[str, Any]]:
        if not self.outcome.exists():
            return []
        return [json.loads(line) for line in self.outcome.read_text().splitlines()]

    def decide(self) -> dict[str, Any]:
        """What an honest operator does from an open card on."""
        operator = Operator(lambda: self.terminal.text, self.terminal.send)
        self.terminal.until(lambda: operator.look() or bool(self.decided()), what="a decision")
        return self.decided()[0]

    def choose(self) -> None:
        """The first of an operator's two keys, until the second is asked for."""
        operator = Operator(lambda: self.terminal.text, self.terminal.send, confirms=False)
        self.terminal.until(
            lambda: operator.look() or ("ARMED" in self.terminal.text and bool(self.shown_letter())), what="step 2"
        )


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Callable[..., Desk]]:
    desks: list[Desk] = []

    def build(**options: Any) -> Desk:
        desks.append(Desk(tmp_path / f"outcome{len(desks)}", **options))
        return desks[-1]

    yield build
    for one in desks:
        one.terminal.close()


def test_an_honest_operator_decides(desk: Callable[..., Desk]) -> None:
    for _ in range(TRIES):
        one = desk()
        one.open()
        record = one.decide()
        if not record["rejected_keys"] and one.terminal.asked == 2:
            break  # else this machine stood still, and the card locked itself
    assert (record["choice"], record["rejected_keys"], len(record["steps"])) == ("1", 0, 2)
    assert all(step["fence_ms"] is not None for step in record["steps"])
    assert record["steps"][0]["quiet_ms"] >= 750
    assert one.terminal.asked == 2


def early(desk: Desk) -> None:
    desk.terminal.send("A2")
    desk.terminal.run_for(0.01)
    desk.terminal.send("2")


def before_the_frame(desk: Desk) -> None:
    desk.terminal.send("A")
    for _ in range(8):
        desk.terminal.send("2")
        desk.terminal.run_for(0.01)


def two_keys_in_one_write(desk: Desk) -> None:
    desk.open()
    desk.armed()
    desk.terminal.send("2\r")


def words_in_one_write(desk: Desk) -> None:
    desk.open()
    desk.armed()
    desk.terminal.send("yes please 2\r")


def bracketed(desk: Desk) -> None:
    desk.open()
    desk.armed()
    desk.terminal.send("\x1b[200~2\x1b[201~")
    desk.armed()
    desk.terminal.send("\x1b[200~2\x1b[201~2\x1b[201~")


def typing_fast(desk: Desk) -> None:
    desk.open()
    desk.terminal.type_every("2" * 12, 0.2)


def typing_slowly(desk: Desk) -> None:
    desk.open()
    desk.terminal.type_every("2" * 8, 0.45)


def mixed_keys(desk: Desk) -> None:
    desk.open()
    desk.terminal.type_every("the 2nd 1 y 2 n 2 1 abdefhmuvwz 2 1", 0.1)


def held(desk: Desk, first_delay: float, rate: float, key: str = "2") -> None:
    desk.open()
    desk.armed()
    desk.terminal.send(key)
    desk.terminal.run_for(min(first_delay, 0.14))
    desk.terminal.type_every(key * int(2 * rate), 1 / rate)


def held_before(first_delay: float, rate: float) -> Callable[[Desk], None]:
    def script(desk: Desk) -> None:
        desk.terminal.send("A")
        desk.terminal.run_for(0.05)
        desk.terminal.send("1")
        desk.terminal.run_for(first_delay)
        desk.terminal.type_every("1" * int(2 * rate), 1 / rate)

    return script


def held_slow_digit(desk: Desk) -> None:
    desk.open()
    desk.armed()
    desk.terminal.send("1")
    desk.terminal.run_for(1.0)
    desk.terminal.type_every("1" * 8, 0.4)


def hunt_and_peck(desk: Desk) -> None:
    """Each key alone on a quiet keyboard, with letters that confirm among them, and none that was read: where the one
    to be typed is the one that stands there, another is. Blind, one in ten is it, which no guard can tell. A key typed
    before this terminal has drawn the letter was sent before it answered the fence."""
    desk.open()
    for key in "1y1e1a1 1n":
        shown = desk.shown_letter()
        other = next(each for each in LETTER_POOL if each != shown)
        desk.terminal.type_every(other if key == shown else key, 0.9)


def lone_paste_of_the_digit(desk: Desk) -> None:
    desk.open()
    desk.choose()
    desk.terminal.send("1")


def other_keys(desk: Desk) -> None:
    desk.open()
    for keys in ("\x1b2", "\x1b[50;3u", "\x1b[50;3;50u", "\r", " ", "y", "\t"):
        desk.armed()
        desk.terminal.send(keys)
        desk.terminal.run_for(0.2)


def click_then_key(desk: Desk) -> None:
    desk.open()
    desk.armed()
    desk.terminal.send("\x1b[<0;5;38M\x1b[<0;5;38m")
    desk.terminal.run_for(0.05)
    desk.terminal.send("2")


def focus_then_key(desk: Desk) -> None:
    desk.open()
    desk.armed()
    desk.terminal.send("\x1b[O")
    desk.terminal.run_for(0.3)
    desk.terminal.send("\x1b[I")
    desk.terminal.run_for(0.1)
    desk.terminal.send("2")


def answers_of_a_terminal(desk: Desk) -> None:
    desk.open()
    desk.armed()
    for answer in ("\x1bP1$r2\x1b\\", "\x1b[?62;2c", "\x1bP>|XTerm(2)\x1b\\", "\x1b]11;rgb:22/22/22\x07", "\x1b[1;2R"):
        desk.terminal.send(answer)
        desk.terminal.run_for(0.01)


SCRIPTS: dict[str, Callable[[Desk], None]] = {
    "key with and 10 ms after the push": early,
    "keys before the first bytes of the card": before_the_frame,
    "two keys in one write": two_keys_in_one_write,
    "words in one write": words_in_one_write,
    "bracketed paste, and one with an embedded end": bracketed,
    "click, then a key after 50 ms": click_then_key,
    "focus, then a key after 100 ms": focus_then_key,
    "answers of a terminal": answers_of_a_terminal,
}
LONG_SCRIPTS: dict[str, Callable[[Desk], None]] = {
    "typing at 5 a second": typing_fast,
    "typing with gaps of 450 ms": typing_slowly,
    "mixed keys at 10 a second": mixed_keys,
    "held: 25 a second": lambda desk: held(desk, 0.1, 25),
    "held from before: 0.66 s, then 30 a second": held_before(0.66, 30),
    "held from before: 0.9 s, then 25 a second": held_before(0.9, 25),
    "held from before: 1.0 s, then 25 a second": held_before(1.0, 25),
    "held: 2.5 a second after 1 s": held_slow_digit,
    "hunt and peck at 900 ms": hunt_and_peck,
    "one pasted character, twice": lone_paste_of_the_digit,
    "alt, kitty alt, Enter, Space, y, Tab": other_keys,
}


def attempt(desk: Callable[..., Desk], script: Callable[[Desk], None], **options: Any) -> Desk:
    """Run *script* on a desk where it decides nothing, typed as it is meant to be; that desk."""
    for _ in range(TRIES):
        one = desk(**options)
        script(one)
        one.terminal.run_for(AFTER)
        assert one.terminal.exit_code is None, one.terminal.text
        if one.decided() and one.terminal.late > LATE_S:
            one.terminal.close()
            continue
        assert one.decided() == []
        return one
    pytest.fail(f"in each of {TRIES} tries this machine stood still in the middle of the script: nothing is proved")


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_accident_decides(desk: Callable[..., Desk], name: str) -> None:
    attempt(desk, SCRIPTS[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG_SCRIPTS)
def test_no_long_accident_decides(desk: Callable[..., Desk], name: str) -> None:
    attempt(desk, LONG_SCRIPTS[name])


def test_a_pause_that_is_longer_than_meant_is_known(desk: Callable[..., Desk]) -> None:
    one = desk()
    stock = one.terminal.pump
    one.terminal.pump = lambda wait: time.sleep(0.2) or stock(0.0)  # type: ignore[func-returns-value, method-assign]
    one.terminal.run_for(0.01)
    assert one.terminal.late > LATE_S


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SCRIPTS, *LONG_SCRIPTS])
def test_after_any_accident_an_honest_operator_still_decides(desk: Callable[..., Desk], name: str) -> None:
    one = attempt(desk, {**SCRIPTS, **LONG_SCRIPTS}[name])
    if "to confirm" in one.terminal.text:
        one.terminal.send("\x1b")
    one.terminal.until_text("press one of")
    assert one.decide()["choice"] == "1"


def test_a_key_while_the_loop_is_blocked_decides_nothing(desk: Callable[..., Desk]) -> None:
    def script(one: Desk) -> None:
        one.terminal.send("A")
        one.terminal.run_for(0.1)
        one.terminal.send("2")
        one.terminal.run_for(1.0)

    attempt(desk, script, env={"GUARD_EXAMPLE_BLOCK_MS": "300"})


def test_on_a_slow_line_a_key_before_the_answer_decides_nothing(desk: Callable[..., Desk]) -> None:
    def script(one: Desk) -> None:
        one.open()
        one.terminal.run_for(0.4)
        one.terminal.send("2")
        one.terminal.until(lambda: "ARMED" in one.terminal.text or bool(one.decided()), what="armed, or decided")

    one = attempt(desk, script, reply_delay=0.6)
    assert one.decide()["steps"][0]["fence_ms"] >= 500


@pytest.mark.slow
def test_a_terminal_without_a_cursor_report_is_armed_after_the_long_quiet(desk: Callable[..., Desk]) -> None:
    def script(one: Desk) -> None:
        one.open()
        one.terminal.run_for(1.3)
        one.terminal.send("2")
        one.terminal.run_for(1.0)

    one = attempt(desk, script, reply_delay=None)
    record = one.decide()
    assert [step["fence_ms"] for step in record["steps"]] == [None, None]
    assert all(step["quiet_ms"] >= 2000 for step in record["steps"])


@pytest.mark.parametrize("variable", [{"TEXTUAL_PRESS": "A,2,wait:1500,2"}, {"TEXTUAL_DRIVER": "nowhere:Driver"}])
def test_no_variable_presses_a_key_or_swaps_the_driver(desk: Callable[..., Desk], variable: dict[str, str]) -> None:
    one = desk(env=variable)
    one.terminal.run_for(0.5)
    assert "A opens" in one.terminal.text
    one.open()
    one.armed()
    one.terminal.run_for(AFTER)
    assert one.decided() == []


def test_keys_that_textual_itself_presses_from_a_variable_decide_nothing(desk: Callable[..., Desk]) -> None:
    code = f"import textual.constants, runpy; runpy.run_path({str(EXAMPLE)!r}, run_name='__main__')"
    one = desk(code=code, env={"TEXTUAL_PRESS": "wait:100,A,wait:1500,2,wait:400,2"})
    one.terminal.until_text("2 keys ignored")
    one.terminal.run_for(AFTER)
    assert one.decided() == []


@pytest.mark.rule("G4")
def test_a_small_terminal_says_so_and_a_larger_one_arms(desk: Callable[..., Desk]) -> None:
    one = desk(columns=79, rows=23)
    one.open()
    one.terminal.until_text("enlarge to 80x24")
    one.terminal.send("2")
    one.terminal.run_for(AFTER)
    assert one.decided() == []
    one.terminal.resize(80, 24)
    one.armed()


@pytest.mark.rule("G4")
def test_no_variable_makes_a_small_terminal_large(desk: Callable[..., Desk]) -> None:
    one = desk(columns=79, rows=23, env={"COLUMNS": "120", "LINES": "40"})
    one.open()
    one.terminal.until_text("enlarge to 80x24")
    one.terminal.send("2")
    one.terminal.run_for(AFTER)
    assert one.decided() == []


@pytest.mark.rule("G4")
def test_provider_text_presses_no_key_and_asks_nothing(desk: Callable[..., Desk]) -> None:
    one = desk()
    one.open()
    one.armed()
    assert "hostile <1B>]52;c;aGk=<07> text with [brackets[/] and <1B>[6n" in one.terminal.text
    assert b"\x1b]52" not in one.terminal.raw
    assert one.terminal.asked == 1


@pytest.mark.slow
def test_odd_bytes_neither_decide_nor_end_the_app(desk: Callable[..., Desk]) -> None:
    chance = random.Random(11)
    pieces = ["\x1b[97;1:2u", "\x1b[97:65;2;65u", "\x1b[99999999999u", "\x1bP", "\x1b\\", "\x1b[200~", "\x1b[201~"]
    pieces += ["\x1b[5;5R", "\x1b[<0;1;1M", "\x1b[I", "\x1b]11;", "\x07", "\xff", "\x1b[M", *"21;:u", "\x1b["]
    one = desk()
    one.open()
    for _ in range(400):
        one.terminal.send("".join(chance.choices(pieces, k=chance.randrange(2, 9))))
        one.terminal.run_for(0.005)
    one.terminal.send("\x1b[201~")
    one.terminal.run_for(0.5)
    assert one.decided() == []
    assert one.terminal.exit_code is None
    assert one.decide()["rejected_keys"] > 0


def threads(desk: Desk) -> int:
    return len(list(Path(f"/proc/{desk.terminal.pid}/task").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted in /proc")
@pytest.mark.parametrize("stopped", [True, False], ids=["stopped", "only continued"])
def test_a_program_that_was_continued_reads_its_keyboard_once_and_is_locked(
    desk: Callable[..., Desk], stopped: bool
) -> None:
    one = desk()
    one.open()
    one.armed()
    before, asked = threads(one), one.terminal.asked
    if stopped:
        os.kill(one.terminal.pid, signal.SIGSTOP)
        one.terminal.send("2")
        one.terminal.run_for(0.3)
    os.kill(one.terminal.pid, signal.SIGCONT)
    one.terminal.until(lambda: one.terminal.asked > asked, what="another fence")
    assert one.decided() == []
    assert one.decide()["choice"] == "1"
    assert threads(one) == before


def test_a_line_that_is_cut_ends_the_app_instead_of_spinning(desk: Callable[..., Desk]) -> None:
    one = desk(env={"GUARD_EXAMPLE_IGNORE_HANGUP": "1"})
    one.terminal.hang_up()
    pid, end = 0, time.monotonic() + DEFAULT_WAIT
    while not pid and time.monotonic() < end:
        pid, _status = os.waitpid(one.terminal.pid, os.WNOHANG)
        time.sleep(0.01)
    one.terminal.exit_code = 0 if pid else None
    assert pid == one.terminal.pid
