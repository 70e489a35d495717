"""Approvals on a real terminal, over the real core: honest keys let one request out, a denial and an expiry none."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.console.cli.gate_home import ACTION_CONTRACT as CONTRACT
from tests.console.operator_keys import Operator
from tests.console.ptylib import Terminal
from tests.console.real import Provider
from tests.serving import serving

from pollconsole import bridge
from pollcore.adapters.keyring_store import MemoryBackend
from pollcore.facts import CredentialMode
from pollcore.ports import CredentialInfo

pytestmark = [pytest.mark.slow, pytest.mark.rule("G3")]

ROOT = Path(__file__).resolve().parents[3]
LIMIT_S = 60.0
AFTER_S = 1.5
"""Seconds in which a request, or a decision, that must not be would show itself."""
SHORT_MS = (6_000, 20_000, 60_000)
"""What a question stands for in the test of its expiry, instead of two minutes: the next where this machine is slow."""
PATCHED = """
import sys
from pollcore.escalation import approvals
approvals.ANSWER_MS = SHORT_MS
from pollcore.controller import asked
asked.ANSWER_MS = SHORT_MS
from pollconsole.cli.entry import run
raise SystemExit(run(sys.argv[1:]))
"""


@pytest.fixture
def provider() -> Iterator[Provider]:
    """Every job runs; keeps what was asked."""
    with serving(Provider()) as server:
        yield server


def environment() -> dict[str, str]:
    path = os.pathsep.join(str(ROOT / part) for part in ("core", "console"))
    return {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": path, "POLLCONSOLE_HOME": ""}


class TooSlow(Exception):
    """The question expired before this machine had armed its card: the script was not played."""


class Desk:
    """A home with one wait whose every request asks, a provider, and whatever runs on them."""

    def __init__(self, home: Path, provider: Provider, *, submit: bool = True, contract: str = CONTRACT) -> None:
        self.home = home
        self.provider = provider
        self.running: list[subprocess.Popen[bytes]] = []
        self.terminals: list[Terminal] = []
        (home / "providers").mkdir(parents=True, mode=0o700)
        home.chmod(0o700)
        (home / "providers" / "mine.toml").write_text(contract.replace("URL", provider.url))
        (home / "config.toml").write_text('[audit]\nkey_file = "reading.key"\n')
        if submit:
            self.command("submit", "--provider", "mine", "--job-id", "j1", "--id", "op-1")

    def command(self, *argv: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-m", "pollconsole", *argv, "--json", "--home", str(self.home)],
            capture_output=True, text=True, timeout=LIMIT_S, env=environment(), check=True,
        )  # fmt: skip
        return json.loads(done.stdout)

    def show(self) -> Any:
        return self.command("show", "op-1")

    def story(self) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "pollconsole", "audit", "show", "op-1", "--home", str(self.home)],
            capture_output=True, text=True, timeout=LIMIT_S, env=environment(), check=True,
        )  # fmt: skip
        return done.stdout

    def run(self) -> None:
        """The core without a screen, in a process of its own, until it asked."""
        argv = [sys.executable, "-m", "pollconsole", "run", "--home", str(self.home)]
        self.running.append(subprocess.Popen(argv, env=environment(), stdout=subprocess.DEVNULL))

    def console(self, *, answer_ms: int | None = None, columns: int = 100, rows: int = 40) -> Terminal:
        patched = PATCHED.replace("SHORT_MS", str(answer_ms))
        program = ["-m", "pollconsole"] if answer_ms is None else ["-c", patched]
        argv = [sys.executable, *program, "--home", str(self.home)]
        terminal = Terminal(argv, env=environment(), columns=columns, rows=rows)
        self.terminals.append(terminal)
        return terminal

    def card(self, terminal: Terminal) -> None:
        """Open the queue and the card, read it to its end, until it is armed."""
        terminal.until_text("A opens", LIMIT_S)
        terminal.send("A")
        terminal.until_text("approvals that wait")
        terminal.until_text("GET http://127.0.0.1")
        terminal.send("\r")
        terminal.until(lambda: "expires in" in terminal.text or "EXPIRED" in terminal.text, what="the card")
        self.armed(terminal)

    @staticmethod
    def armed(terminal: Terminal, step: int = 1) -> None:
        prompt = "press one of" if step == 1 else "to confirm"

        def ready() -> bool:
            if "EXPIRED" in terminal.text:
                raise TooSlow
            if "scroll down" in terminal.text:
                terminal.send("\x1b[6~")
                terminal.run_for(0.3)
            return "ARMED" in terminal.text and prompt in terminal.text

        terminal.until(ready, what="armed")

    @classmethod
    def choose(cls, terminal: Terminal, digit: str = "1") -> None:
        """The first key on an armed card, until the letter is asked for. Raises TooSlow."""
        cls.press(terminal, lambda: "ARMED" in terminal.text and "to confirm" in terminal.text, digit, confirms=False)

    @staticmethod
    def press(terminal: Terminal, done: Callable[[], bool], digit: str = "1", *, confirms: bool = True) -> None:
        """What the card asks for, until *done*. Raises TooSlow."""
        operator = Operator(lambda: terminal.text, terminal.send, digit, confirms=confirms)

        def ended() -> bool:
            if "EXPIRED" in terminal.text:
                raise TooSlow
            operator.look()
            return done()

        terminal.until(ended, LIMIT_S, "what the keys bring about")

    def close(self) -> None:
        for terminal in self.terminals:
            terminal.close()
        for process in self.running:
            process.send_signal(signal.SIGTERM)
            process.wait(LIMIT_S)


@pytest.fixture
def desk(tmp_path: Path, provider: Provider) -> Iterator[Desk]:
    one = Desk(tmp_path / "home", provider)
    yield one
    one.close()


@pytest.mark.rule("G2", "G4", "G7", "V5", "X7")
def test_honest_keys_on_a_terminal_let_one_request_of_another_process_out(desk: Desk) -> None:
    desk.run()
    terminal = desk.console()
    desk.card(terminal)
    assert desk.provider.asked == []
    shown = terminal.text
    for wanted in ("Method: GET", f"Host: {desk.provider.url}", "Path: /jobs/j1 (its query is masked)", "1 of 12"):
        assert wanted in shown
    assert "SIGNATURE" not in terminal.raw.decode("utf-8", "replace")
    desk.choose(terminal)
    assert "This gives new authority: approve once" in terminal.text
    assert desk.provider.asked == []
    desk.press(terminal, lambda: len(desk.provider.asked) == 1)  # by the other process
    terminal.until_text("approve once", LIMIT_S)
    terminal.until(lambda: desk.show()["approval"] is not None, LIMIT_S, "the next request asks again")
    terminal.run_for(AFTER_S)
    assert desk.provider.asked == ["/jobs/j1?sig=SIGNATURE"]
    found = desk.show()
    assert (found["status"], found["status_requests_used"]) == ("awaiting_approval", 1)
    assert found["approval"]["seen_at"] is None, "the new question was on no card yet"
    assert "granted approve once" in desk.story()


@pytest.mark.rule("G5", "G7", "V5")
def test_one_armed_digit_denies_and_nothing_is_sent(desk: Desk) -> None:
    desk.run()
    terminal = desk.console()
    desk.card(terminal)
    digit = re.search(r"^\s+(\d)  deny", terminal.text, re.MULTILINE)
    assert digit is not None
    desk.press(terminal, lambda: "op-1: deny" in terminal.text, digit[1])
    terminal.run_for(AFTER_S)
    assert desk.provider.asked == []
    found = desk.show()
    assert (found["status"], found["stop_reason"]) == ("escalated", "approval_denied")


@pytest.mark.rule("G8")
def test_leaving_the_card_decides_nothing_and_the_core_knows_that_it_was_seen(desk: Desk) -> None:
    terminal = desk.console()
    desk.card(terminal)
    terminal.send("\x1b")
    terminal.until_text("approvals that wait")
    found = desk.show()
    assert (found["status"], found["status_requests_used"]) == ("awaiting_approval", 0)
    assert found["approval"]["seen_at"] is not None
    assert found["approval"]["expires_at"] is not None
    assert desk.provider.asked == []


def no_key(terminal: Terminal) -> None:
    """Only look."""


def first_key(terminal: Terminal) -> None:
    """The digit is chosen; the letter stands there when the time is over."""
    Desk.choose(terminal)


@pytest.mark.rule("G7", "G8")
@pytest.mark.parametrize("before", [no_key, first_key], ids=lambda script: script.__name__)
def test_a_card_that_expires_under_the_eyes_locks_and_opens_the_new_question_by_its_own_key(
    tmp_path: Path, provider: Provider, before: Callable[[Terminal], None]
) -> None:
    for answer_ms in SHORT_MS:
        desk = Desk(tmp_path / f"home-{answer_ms}", provider)
        try:
            expires_under_the_eyes(desk, answer_ms, before)
            return
        except TooSlow:
            continue
        finally:
            desk.close()
    pytest.fail(f"within {SHORT_MS[-1]} ms this machine armed no card: nothing is proved")


def expires_under_the_eyes(desk: Desk, answer_ms: int, before: Callable[[Terminal], None]) -> None:
    """Raises TooSlow."""
    terminal = desk.console(answer_ms=answer_ms)
    desk.card(terminal)
    before(terminal)
    terminal.until_text("EXPIRED", answer_ms / 1_000 + LIMIT_S)
    for keys in ("1", "abdefhmuvz", "\r", " "):
        terminal.type_every(keys, 0.05)
    terminal.run_for(AFTER_S)
    assert "EXPIRED" in terminal.text, "it opened nothing by itself"
    assert not re.search("ARMED|QUIET|FENCING|to confirm", terminal.text), "no guard is open on it"
    assert desk.provider.asked == []
    terminal.until_text("press r to open the new question", LIMIT_S)
    terminal.send("r")
    terminal.until(lambda: "EXPIRED" not in terminal.text, what="the new question")
    desk.armed(terminal)
    assert "expires in" in terminal.text
    assert desk.provider.asked == []
    terminal.send("\x1b")
    terminal.until_text("approvals that wait")
    story = desk.story()
    assert "seen and not answered" in story
    assert desk.show()["status_requests_used"] == 0


def a_credential_in_mode_per_call(home: Path, url: str) -> None:
    """As `credential set` and `credential mode` leave it; its secret is wanted by nothing here."""

    async def job(core: Any) -> None:
        info = CredentialInfo(
            name="key", kind="bearer", origins=(url,), mode=CredentialMode.PER_CALL, created_at=core.clock.now().wall
        )
        await core.credential_admin.meta.put(info, None)

    bridge.with_core(home, job, kind="run", backend=MemoryBackend())


def mode_of(desk: Desk) -> str:
    (view,) = desk.command("credential", "list")["credentials"]
    return str(view["mode"])


@pytest.mark.rule("G2", "G4", "V4")
def test_a_looser_mode_is_granted_by_honest_keys_in_a_home_without_any_operation(
    tmp_path: Path, provider: Provider
) -> None:
    desk = Desk(tmp_path / "home", provider, submit=False)
    a_credential_in_mode_per_call(desk.home, provider.url)
    desk.command("credential", "mode", "key", "standing", "--because", "the nightly batch", "--caller", "batch-7")
    terminal = desk.console()
    try:
        terminal.until_text("1 approval waiting", LIMIT_S)
        terminal.send("A")
        terminal.until_text("per_call to standing")
        terminal.send("\r")
        terminal.until_text("Mode: per_call -> standing")
        desk.armed(terminal)
        assert "the nightly batch" in terminal.text
        desk.choose(terminal)
        assert "credential per_call -> standing" in terminal.text
        assert mode_of(desk) == "per_call"
        desk.press(terminal, lambda: "key: approve standing" in terminal.text)
        terminal.until_text("nothing waits here", LIMIT_S)
        assert mode_of(desk) == "standing"
        assert desk.command("escalations") == {"escalations": []}
    finally:
        desk.close()


@pytest.mark.rule("X7", "G5", "E10")
def test_a_first_use_is_read_on_its_card_and_decided_once_for_all_that_wait(tmp_path: Path, provider: Provider) -> None:
    contract = CONTRACT.replace('observation = "action"\n', "")
    desk = Desk(tmp_path / "home", provider, contract=contract)
    desk.command("submit", "--provider", "mine", "--job-id", "j2", "--id", "op-2")
    terminal = desk.console()
    try:
        terminal.until_text("2 approvals on 1 card waiting", LIMIT_S)
        terminal.send("A")
        terminal.until_text("2 operations")
        terminal.send("\r")
        terminal.until_text("External jobs need one decision")
        desk.armed(terminal)
        terminal.send("t")
        terminal.until_text("not seen by an operator", LIMIT_S)
        terminal.send("G")
        terminal.until_text("recorded: you have seen this contract", LIMIT_S)
        terminal.send("\x1b")
        terminal.until_text("1-9 choose")
        terminal.until_text("ARMED")  # without a key: what was read before still counts
        desk.armed(terminal)
        assert provider.asked == []
        desk.press(terminal, lambda: len(provider.asked) >= 2)  # both waits go on
        (mine,) = [p for p in desk.command("provider", "list")["providers"] if p["name"] == "mine"]
        assert (mine["marks"]["first_use"], mine["marks"]["seen"]) == ("read_only", True)
    finally:
        desk.close()
