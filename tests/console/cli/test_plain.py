"""The console told in lines: nothing but lines, every card whole, no key that decides, a clean end."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.console.cli.test_process import PROGRAM, environment, run
from tests.console.ptylib import Terminal
from tests.console.real import STORY_TIME
from tests.console.screens.conftest import RealCore
from tests.console.seed import HOSTILE, NOW, seeded, stopped

from pollconsole.cli import out, plain, plain_cards
from pollconsole.cli.plain_cards import MAX_AT_ONCE, MAX_NAMES, Cards
from pollcore.facts import MINUTE, Escalation, Instant, Operation, PollconsoleError, StopReason

LIMIT_S = 60.0
DECIDE_AT = plain.DECIDE_AT.encode()
E3 = (
    *("External job needs a decision", "Operation:", "Provider job:", "Last state:", "Elapsed time:"),
    *("Status requests:", "Last HTTP result:", "Stopped because:", "Safe options:"),
)
ANY_ESCAPE = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]")


# --- which cards are told ---------------------------------------------------------------------------------------------


def asked(*numbers: int, cause: str | None = None) -> tuple[list[Escalation], dict[str, Operation]]:
    rows = [
        stopped(n, StopReason.UNKNOWN_STATE, **({"cause": cause} if cause else {}), asked_ago=1_000 * (100 - n))
        for n in numbers
    ]
    return [each.question for each in rows if each.question], {
        each.operation.operation_id: each.operation for each in rows
    }


@pytest.mark.rule("E3", "E7")
def test_a_card_is_told_once_again_when_it_changed_and_once_more_when_it_is_gone() -> None:
    cards = Cards()
    questions, operations = asked(1, 2)
    first = cards.look(questions, operations, NOW)
    assert [(card.number, card.again) for card in first.opened] == [(1, False), (2, False)]
    assert cards.look(questions, operations, NOW) == plain_cards.Look()
    moved = operations[questions[1].operation_id]
    operations[moved.operation_id] = msgspec.structs.replace(moved, version=moved.version + 1)
    (again,) = cards.look(questions, operations, NOW).opened
    assert (again.number, again.again) == (2, True)
    assert "it changed" in plain_cards.head(again, "10:00:00")
    gone = cards.look(questions[1:], operations, NOW)
    assert gone.gone == ((1, questions[0].operation_id),)
    (later,) = cards.look(asked(3)[0], asked(3)[1], NOW).opened
    assert later.number == 3


@pytest.mark.rule("E10")
def test_many_operations_of_one_cause_are_one_card_that_names_the_others() -> None:
    questions, operations = asked(*range(1, 51), cause="origin_down:x")
    look = Cards().look(questions, operations, NOW)
    (card,) = look.opened
    assert len(card.others) == 49
    line = plain_cards.others_line(card)
    assert line.startswith("The same cause stopped 49 other operations: ")
    assert line.endswith(f"and {49 - MAX_NAMES} more")


@pytest.mark.rule("E10", "V4")
def test_of_what_is_new_comes_first_what_ends_soonest_whatever_is_oldest() -> None:
    later = stopped(1, StopReason.UNKNOWN_STATE, deadline_at=Instant(NOW + 9 * MINUTE), asked_ago=5 * MINUTE)
    soon = stopped(2, StopReason.UNKNOWN_STATE, deadline_at=Instant(NOW + MINUTE), asked_ago=MINUTE)
    rows = {each.operation.operation_id: each.operation for each in (later, soon)}
    look = Cards().look([each.question for each in (later, soon) if each.question], rows, NOW)
    told = [(card.number, card.question.operation_id) for card in look.opened]
    assert told == [(1, soon.operation.operation_id), (2, later.operation.operation_id)]


def test_a_flood_of_causes_is_told_in_part_and_counted() -> None:
    questions, operations = asked(*range(1, MAX_AT_ONCE + 8))
    look = Cards().look(questions, operations, NOW)
    assert (len(look.opened), look.counted) == (MAX_AT_ONCE, 7)


# --- what is printed --------------------------------------------------------------------------------------------------


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every line that was printed, as a terminal gets it."""
    lines: list[str] = []
    monkeypatch.setattr(out, "_write", lambda line, err=False: lines.append(line))
    return lines


def interrupt_when(condition: Callable[[], bool]) -> threading.Thread:
    """Press ctrl-c once *condition* holds, or the time is over."""

    def watch() -> None:
        end = time.monotonic() + LIMIT_S
        while not condition() and time.monotonic() < end:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


@pytest.mark.rule("V1", "V2", "E3", "G4")
def test_table_events_and_cards_are_told_whole_and_harmless(tmp_path: Path, told: list[str]) -> None:
    real = RealCore(tmp_path / "home")
    real.fill(lambda now: [*seeded(now), stopped(0x30, StopReason.UNKNOWN_STATE, now=now, last_known_state=HOSTILE)])
    interrupt_when(lambda: sum("polled" in line for line in told) > 1 and sum("Card " in line for line in told) > 4)
    assert plain.run_plain(real.runner, title="prod") == 0
    text = "\n".join(told)
    assert told[0] == "prod, told in lines. Times are UTC. Ctrl+C ends it."
    assert "core: this process polls" in told
    assert re.search(rf"^{STORY_TIME} op-\d+ polled, state running, next poll", text, re.MULTILINE)
    assert told[-1].startswith("ending: the core of this process stops, ")
    card = told[next(n for n, line in enumerate(told) if line.startswith("Card ") and "op-0000000a" in line) :]
    card = card[: card.index("")]
    for words in E3:
        assert any(line.startswith(words) for line in card), words
    assert sum(line.startswith("[") for line in card) >= 3
    assert any("status requests 12 -> " in line for line in card)
    assert card[-1] == plain.DECIDE_AT
    assert all(character.isprintable() for line in told for character in line)


@pytest.mark.rule("V3")
def test_what_stops_the_core_is_told_and_ends_it(told: list[str]) -> None:
    def runner(job: Any) -> None:
        raise PollconsoleError("the store is on the moon")

    with pytest.raises(PollconsoleError, match="on the moon"):
        plain.run_plain(runner, title="prod")


@pytest.mark.rule("V3")
def test_a_core_of_another_process_is_watched_and_said_to_go_on(tmp_path: Path, told: list[str]) -> None:
    home = tmp_path / "home"
    with subprocess.Popen([*PROGRAM, "run", "--home", str(home)], stderr=subprocess.PIPE, env=environment()) as other:
        assert other.stderr is not None
        assert b"core running" in b"".join(iter_until(other.stderr.readline, b"core running"))
        end = time.monotonic() + LIMIT_S
        while b"no core" in run("list", "--home", str(home)).stderr:
            assert time.monotonic() < end, "it gives no sign of life"

        def runner(job: Any) -> None:
            from pollconsole import bridge

            bridge.with_core(home, job, kind="console")

        interrupt_when(lambda: any("another process polls" in line for line in told))
        assert plain.run_plain(runner, title="prod") == 0
        other.send_signal(signal.SIGTERM)
        assert other.wait(LIMIT_S) == 0
    assert told[-1] == "ending: another process goes on with 0 live waits"


def iter_until(read: Callable[[], bytes], wanted: bytes) -> Iterator[bytes]:
    while line := read():
        yield line
        if wanted in line:
            return


# --- as a process -----------------------------------------------------------------------------------------------------


def terminal(*argv: str, **env: str) -> Terminal:
    return Terminal([*PROGRAM, *argv], env={**environment(), **env}, columns=100, rows=40)


@pytest.mark.slow
@pytest.mark.rule("G3", "G5", "V3")
def test_on_a_terminal_it_only_ever_appends_and_no_typed_key_decides() -> None:
    with terminal("demo", "--plain") as one:
        one.until(lambda: b"Card 1," in one.raw and one.raw.count(DECIDE_AT) > 1, LIMIT_S, "a card")
        one.type_every("1 w\r2\ry\r", 0.2)
        one.until(lambda: b"Card 3," in one.raw, LIMIT_S, "more cards")
        one.send("\x03")
        one.until(lambda: one.exit_code is not None, LIMIT_S, "it ends")
        assert one.exit_code == 0
        raw = bytes(one.raw)
    assert b"ending: the core of this process stops" in raw
    assert ANY_ESCAPE.search(raw.replace(b"\x1b[?2026", b"")) is None
    assert b" granted " not in raw
    for word in ("Stopped because:", "[1] ", "Safe options:"):
        assert word.encode() in raw


@pytest.mark.slow
@pytest.mark.parametrize("argv", [(), ("demo",)])
def test_into_a_pipe_the_console_is_told_in_lines_by_itself(tmp_path: Path, argv: tuple[str, ...]) -> None:
    home = () if argv else ("--home", str(tmp_path / "home"))
    with subprocess.Popen([*PROGRAM, *argv, *home], stdout=subprocess.PIPE, env=environment()) as process:
        assert process.stdout is not None
        lines = list(iter_until(process.stdout.readline, b"core: this process polls"))
        assert lines[1] == DECIDE_AT + b"\n"
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
        assert process.wait(LIMIT_S) == 0
    assert b"ending: the core of this process stops" in rest
    assert ANY_ESCAPE.search(b"".join(lines) + rest) is None


@pytest.mark.slow
def test_a_dumb_terminal_gets_lines(tmp_path: Path) -> None:
    with terminal("--home", str(tmp_path / "home"), TERM="dumb") as one:
        one.until(lambda: b"core: this process polls" in one.raw, LIMIT_S, "the core")
        one.send("\x03")
        one.until(lambda: one.exit_code == 0, LIMIT_S, "it ends")
        assert b"\x1b" not in one.raw


@pytest.mark.slow
def test_a_reader_that_leaves_ends_it(tmp_path: Path) -> None:
    command = [*PROGRAM, "demo", "--plain"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment()) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(LIMIT_S) == 141


def test_once_prints_what_there_is_and_ends(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    assert run("--plain", "--once", "--home", home).returncode == 2  # a misspelt name is no empty home
    real = RealCore(Path(home))
    real.fill(lambda now: [stopped(0x31, StopReason.UNKNOWN_STATE, now=now), *seeded(now)[:2]])
    done = run("--plain", "--once", "--home", home)
    assert done.returncode == 0, done.stderr
    said = done.stdout.decode()
    assert said.startswith("3 live operations:\nOPERATION ")
    assert "Card 1, op-00000031" in said
    assert "Safe options:" in said
    assert b"no core has run" in done.stderr


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (("--once",), "--once belongs to --plain"),
        (("--plain", "list"), "--plain belongs to the console"),
        (("--plain", "--once", "doctor"), "belongs to the console"),
        (("--plain", "--json"), "has no --json"),
        (("demo", "--json"), "has no --json"),
    ],
)
def test_what_does_not_belong_together_is_refused(argv: Sequence[str], why: str) -> None:
    done = run(*argv)
    assert done.returncode == 2
    assert why in done.stderr.decode()


def test_without_a_keyboard_a_terminal_is_told_of_the_lines() -> None:
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(
            PROGRAM, stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE, env=environment(), check=False,
            timeout=LIMIT_S,
        )  # fmt: skip
    finally:
        os.close(theirs)
        os.close(ours)
    assert done.returncode == 2
    assert b"pollconsole --plain" in done.stderr


def test_the_lines_need_no_screen() -> None:
    code = (
        "import sys, pollconsole.cli.plain; sys.exit(any(name.startswith(('textual', 'rich')) for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], env=environment(), timeout=LIMIT_S, check=False).returncode == 0
