"""The terminal's title and bell: a number of our own words, one ring for what is new, the title given back."""

from __future__ import annotations

import re
import sys

import pytest

from pollconsole import attention
from pollcore.facts import StopReason
from tests.console.cli.conftest import make_question
from tests.console.ptylib import Terminal
from tests.outside.world import World

LIMIT_S = 60


def test_the_title_is_a_number_in_our_words() -> None:
    assert [attention.title(n) for n in (0, 1, 3)] == [
        "pollconsole",
        "pollconsole: 1 needs you",
        "pollconsole: 3 need you",
    ]


@pytest.mark.rule("V4")
def test_it_rings_for_what_came_not_for_what_was_there_nor_for_what_an_operator_opened() -> None:
    said = attention.Attention()
    said.bell = True
    one, two, three = (make_question(f"op-{n}", escalation_id=f"esc-{n}") for n in range(3))
    mine = make_question("op-9", escalation_id="esc-9", reason=StopReason.OPERATOR_REQUEST)
    assert [said.rings(asked, at) for asked, at in (
        ([one], 0.0), ([one], 1.0), ([one, mine], 2.0), ([one, two], 3.0), ([one, two, three], 4.0), ([one], 30.0),
        ([one, two], 40.0),
    )] == [False, False, False, True, False, False, True]  # fmt: skip
    said.bell = False
    assert not said.rings([one, two, three], 99.0)


@pytest.mark.parametrize(("term", "has"), [("xterm-256color", True), ("linux", False), ("dumb", False), ("", False)])
def test_a_terminal_without_a_title_gets_none(term: str, has: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", term)
    assert attention.has_title() is has


@pytest.mark.slow
@pytest.mark.rule("V4", "G8")
@pytest.mark.parametrize("wanted", [True, False], ids=["on", "off"])
def test_a_real_console_says_how_many_wait_rings_once_and_gives_the_title_back(world: World, wanted: bool) -> None:
    flag = str(wanted).lower()
    world.settings(f"[screen]\nbell = {flag}\ntitle = {flag}\n")
    world.submit("op-1")
    command = [sys.executable, "-m", "pollconsole", "--home", str(world.home)]
    with Terminal(command, env=world.environment()) as terminal:
        terminal.until(lambda: "op-1" in terminal.text and "ACTIVE" in terminal.text, LIMIT_S)
        if wanted:
            terminal.until(lambda: b"\x1b]2;pollconsole\x07" in terminal.raw, LIMIT_S)
        before = len(terminal.raw)
        world.state("op-1", "nobody-knows-this")
        terminal.until(lambda: "escalated" in terminal.text, LIMIT_S)
        if wanted:
            terminal.until(lambda: b"\x1b]2;pollconsole: 1 needs you\x07" in terminal.raw[before:], LIMIT_S)
            terminal.until(lambda: rings(bytes(terminal.raw)) == 1, LIMIT_S)
        terminal.send("q")
        terminal.until_text("Q quits", LIMIT_S)
        terminal.send("Q")
        terminal.until(lambda: terminal.exit_code is not None, LIMIT_S)
    raw = bytes(terminal.raw)
    assert terminal.exit_code == 0
    if wanted:
        assert raw.count(b"\x1b[22;2t") == raw.count(b"\x1b[23;2t") == 1
        assert raw.index(b"\x1b[22;2t") < raw.index(b"\x1b]2;") < raw.index(b"\x1b[23;2t")
        assert set(re.findall(rb"\x1b\]2;([^\x07]*)\x07", raw)) == {b"pollconsole", b"pollconsole: 1 needs you", b""}
        assert rings(raw) == 1
    else:
        assert [raw.count(each) for each in (b"\x1b]2;", b"\x1b[22;2t", b"\x1b[23;2t")] == [0, 0, 0]
        assert rings(raw) == 0


def rings(raw: bytes) -> int:
    """Bells that end no title and no other string."""
    return re.sub(rb"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)", b"", raw).count(b"\x07")
