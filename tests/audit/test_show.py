"""`audit show`: filters over a real home, one page in memory, new events as they come; `audit forget` confirmed."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pollconsole.bridge import event_pages
from pollconsole.bridge.event_pages import Wanted, pages
from pollconsole.cli import entry
from pollcore.facts import AuditEvent, ChoiceKind, EventName, Instant, Stale
from tests.audit.test_dying import ROOT, copied, laid_out
from tests.controller.bank import DONE, RUNNING
from tests.controller.house import House, house, pick

SHORT = ("max_status_requests = 12", "max_status_requests = 2")
LIMIT_S = 90
ENVIRONMENT = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT / 'core'}:{ROOT / 'console'}"}


def ran(words: tuple[str, ...], environment: dict[str, str]) -> tuple[int, str]:
    """One command in a process of its own: exit code, standard output."""
    command = [sys.executable, "-m", "pollconsole", *words]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_S)
    return ended.returncode, ended.stdout


async def busy(h: House) -> None:
    """A grant, a refused grant, a closing, two providers."""
    h.write_contract(SHORT, name="other")
    await h.submit("job-1", RUNNING)
    await h.submit("job-2", DONE, provider="other")
    await h.run()
    shown = await h.card()
    await h.press(shown, pick(shown, ChoiceKind.EXTEND), "the batch is Larger")
    with pytest.raises(Stale):
        await h.press(shown, pick(shown, ChoiceKind.EXTEND))
    await h.core.actions.lower("op-job-1", ChoiceKind.CLOSE, "enough", "ana")


FILTERS: list[tuple[tuple[str, ...], set[str]]] = [
    (("--decided",), {"granted", "grant_refused", "closed"}),
    (("--event", "granted", "--event", "closed"), {"granted", "closed"}),
    (("--operator", "ANA"), {"closed"}),
    (("--operator", "ops@here", "--decision", "extend"), {"granted"}),
    (("--operator", "ops@here", "--decided"), {"granted", "grant_refused"}),
    (("--reason", "request_budget_exhausted", "--event", "polled"), {"polled"}),
    (("--provider", "other"), {"submitted", "sent", "polled"}),
    (("--provider", "nobody"), set()),
    (("--text", "larger"), {"granted"}),
    (("op-job-2", "--event", "closed"), set()),
    (("--since", "2026-03-02T10:00:01Z", "--event", "submitted"), set()),
    (("--until", "2026-03-02T10:00:01Z"), {"submitted", "credential_changed"}),
]


@pytest.mark.rule("A1", "G8")
async def test_each_filter_takes_what_it_names_and_no_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with house(tmp_path, SHORT) as h:
        await busy(h)
    for words, names in FILTERS:
        code = await asyncio.to_thread(entry.run, ("audit", "show", *words, "--json", "--home", str(h.home)))
        events = json.loads(capsys.readouterr().out)["events"]
        assert (code, {event["event"] for event in events} - {"credential_changed"}) == (
            0,
            names - {"credential_changed"},
        ), words
    whole = ("audit", "show", "--json", "--home", str(h.home))
    await asyncio.to_thread(entry.run, whole)
    everything = json.loads(capsys.readouterr().out)["events"]
    async with h.open() as core:
        stored = [event for _, event in await core.store.events()]
    assert [e["event"] for e in everything] == [e.event.value for e in stored][: len(everything)]
    await asyncio.to_thread(entry.run, ("audit", "show", "--decided", "--home", str(h.home)))
    told = capsys.readouterr().out
    assert "refused the grant of choice 1 by ops@here" in told
    assert "closed by ana" in told


class Long:
    """A store of many events, made as they are asked for."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.asked = 0

    async def events(
        self, operation_id: str | None = None, *, after: int = 0, limit: int = 10_000
    ) -> list[tuple[int, AuditEvent]]:
        self.asked += 1
        return [
            (n, AuditEvent(at=Instant(n), event=EventName.POLLED, operation_id=f"op-{n}", text="x" * 100))
            for n in range(after + 1, min(self.count, after + limit) + 1)
        ]


@pytest.mark.rule("A2")
async def test_a_long_story_is_read_in_pages_and_never_held_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_pages, "PAGE", 500)
    store = Long(20_000)
    core: Any = type("Core", (), {"store": store})()

    async def most(wanted: Wanted) -> tuple[int, int]:
        """(events, peak bytes)."""
        seen = 0
        tracemalloc.start()
        found: AsyncIterator[list[AuditEvent]] = pages(core, None, wanted)
        async for page in found:
            seen += len(page)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return seen, peak

    small, one_page = await most(Wanted(text="nothing"))
    count, peak = await most(Wanted())
    assert (small, count, store.asked) == (0, 20_000, 2 * 41)
    store.count = 500
    _, page = await most(Wanted())
    assert peak < 3 * page
    assert one_page < 3 * page


@pytest.mark.slow
@pytest.mark.rule("A2")
async def test_a_followed_story_goes_on_with_new_events_and_ends_cleanly(tmp_path: Path) -> None:
    home = copied(await laid_out(tmp_path / "model", rotated=False), tmp_path / "home")
    environment = ENVIRONMENT
    command = [sys.executable, "-m", "pollconsole", "audit", "show", "--follow", "--home", str(home)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as tail:
        assert tail.stdout is not None
        try:
            async with asyncio.timeout(LIMIT_S):
                told = [await asyncio.to_thread(tail.stdout.readline) for _ in range(3)]
                assert "submitted job job-1" in "".join(told)
                words = ("pause", "--provider", "acme", "--until", "1h", "--home", str(home))
                assert ran(words, environment)[0] == 0
                while "paused acme" not in (line := await asyncio.to_thread(tail.stdout.readline)):
                    assert line
            tail.send_signal(signal.SIGINT)
            _, errors = await asyncio.to_thread(tail.communicate, timeout=LIMIT_S)
        finally:
            tail.kill()
    assert tail.returncode == 130
    assert "Traceback" not in errors


@pytest.mark.slow
@pytest.mark.rule("A4")
async def test_keys_are_forgotten_on_a_terminal_only_when_their_epochs_are_typed(tmp_path: Path) -> None:
    home = copied(await laid_out(tmp_path / "model", rotated=True), tmp_path / "home")
    entries = home / "reading.key.audit"
    command = ("audit", "forget", "--before", "1h", "--because", "kept long enough", "--home", str(home))
    assert await asyncio.to_thread(entry.run, command) == 2  # no terminal, no --yes
    assert "audit-read/0-" in entries.read_text()
    for typed, code in ((b"yes\n", 2), (b"0\n", 0)):
        found, told = await asyncio.to_thread(typing, command, typed)
        assert (found, "cannot be read again" in told) == (code, True), told
        assert ("audit-read/0-" in entries.read_text()) is (code != 0)
    _, found = ran(("audit", "show", "--event", "audit_keys", "--home", str(home)), ENVIRONMENT)
    assert "reading keys of audit epochs 0 deleted" in found
    assert "kept long enough" in found


def typing(command: tuple[str, ...], typed: bytes) -> tuple[int, str]:
    """The command on a terminal of its own, with *typed* at its question: exit code, what the terminal showed."""
    leader, follower = pty.openpty()
    environment = {**ENVIRONMENT, "TERM": "dumb"}
    with subprocess.Popen(
        [sys.executable, "-m", "pollconsole", *command],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env=environment,
    ) as running:
        os.close(follower)
        shown = b""
        while b"to confirm" not in shown:
            shown += os.read(leader, 4_096)
        os.write(leader, typed)
        code = running.wait(LIMIT_S)
    try:
        while more := os.read(leader, 4_096):
            shown += more
    except OSError:
        pass  # the other side is closed
    os.close(leader)
    return code, shown.decode()
