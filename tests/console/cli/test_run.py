"""`run` as a process: signals end it cleanly, its report is the one document, what happens to the core is told once."""

from __future__ import annotations

import asyncio
import json
import os
import re
import selectors
import signal
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pollconsole.bridge.outside import beside
from pollconsole.mcp_server import command
from pollcore.adapters import metrics_http, notice_sender, signing
from pollcore.facts import Refused

ROOT = Path(__file__).resolve().parents[3]
LIMIT_S = 60.0

#: The real command over a core whose controller only waits to be stopped; a sick one is mended by SIGUSR1.
PROGRAM = """
import asyncio, ctypes, signal, sys
import msgspec
from pollconsole import bridge
from pollcore.adapters.config import Config
from pollcore.adapters.system import SystemClock
from pollconsole.cli.entry import run

class Report(msgspec.Struct):
    turns: int = 3

class Controller:
    health = "disk full" if "sick" in sys.argv else None
    async def run(self, stop, *, until_idle, for_ms):
        if until_idle or for_ms:
            assert (until_idle, for_ms) == (True, 600_000)
            return Report()
        if self.health:
            await self.mended.wait()
            self.health = None
        print("READY", file=sys.stderr, flush=True)
        await stop.wait()
        return Report()

class Core:
    notices = ["made a key"]
    clock = SystemClock()
    config = Config()
    async def send_notices(self, say):
        pass
    def controller(self):
        assert ctypes.CDLL(None).prctl(3, 0, 0, 0, 0) == 0, "the memory of this process can be read"
        made = Controller()
        made.mended = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, made.mended.set)
        return made

def with_core(home, job, *, kind, tell):
    assert kind == "run"
    async def body():
        return await job(Core())
    return asyncio.run(body())

bridge.with_core = with_core
raise SystemExit(run([a for a in sys.argv[1:] if a != "sick"]))
"""


REAL = "import sys; from pollconsole.cli.entry import run; raise SystemExit(run(sys.argv[1:]))"


def start(*argv: str, program: str = PROGRAM) -> subprocess.Popen[bytes]:
    paths = os.pathsep.join((str(ROOT / "core"), str(ROOT / "console")))
    return subprocess.Popen(
        [sys.executable, "-c", program, *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths},
    )


def read_until(process: subprocess.Popen[bytes], word: bytes) -> bytes:
    """What stderr says until *word* comes, at most LIMIT_S."""
    assert process.stderr is not None
    seen, end = b"", time.monotonic() + LIMIT_S
    with selectors.DefaultSelector() as selector:
        selector.register(process.stderr, selectors.EVENT_READ)
        while word not in seen:
            assert time.monotonic() < end, seen
            if selector.select(1.0):
                chunk = os.read(process.stderr.fileno(), 4096)
                assert chunk, seen
                seen += chunk
    return seen


@pytest.mark.rule("V3")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda s: s.name)
def test_a_signal_ends_the_run_cleanly_with_its_report(number: signal.Signals, tmp_path: Path) -> None:
    process = start("run", "--json", "--home", str(tmp_path))
    try:
        read_until(process, b"READY")
        process.send_signal(number)
        out, err = process.communicate(timeout=LIMIT_S)
    finally:
        process.kill()
        process.wait(LIMIT_S)
    assert process.returncode == 0
    assert json.loads(out) == {"run": {"turns": 3}}
    assert number.name.encode() in err
    assert b": by a signal\n" in err


@pytest.mark.rule("K1")
@pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux's")
def test_until_idle_and_for_reach_a_core_whose_memory_cannot_be_read(tmp_path: Path) -> None:
    process = start("run", "--until-idle", "--for", "10m", "--home", str(tmp_path))
    out, err = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, out) == (0, b"turns 3\n")
    assert re.search(rb"^core ended after \d+ s: no operation waits or is held$", err, re.MULTILINE)


def test_a_run_says_when_it_started_and_what_the_core_noticed_and_is_quiet_otherwise(tmp_path: Path) -> None:
    process = start("run", "--json", "--home", str(tmp_path))
    try:
        seen = read_until(process, b"made a key\n")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=LIMIT_S)
    finally:
        process.kill()
        process.wait(LIMIT_S)
    lines = [line for line in (seen + err).decode().splitlines() if line != "READY"]
    assert [line.partition(" (pid")[0].partition(" after")[0] for line in lines] == [
        f"core running on {tmp_path}",
        "made a key",
        "SIGTERM: ending; requests in flight are still recorded",
        "core ended",
    ]


@pytest.mark.rule("O6")
def test_a_store_that_cannot_commit_is_told_and_its_recovery_too(tmp_path: Path) -> None:
    process = start("sick", "run", "--home", str(tmp_path))
    try:
        read_until(process, b"nothing is sent: disk full")
        process.send_signal(signal.SIGUSR1)
        read_until(process, b"polling goes on")
    finally:
        process.kill()
        process.communicate(timeout=LIMIT_S)
    assert process.returncode == -signal.SIGKILL, "it went on"


INTERRUPTED = """
import asyncio, sys
from pollconsole import bridge
from pollconsole.cli.entry import run

def with_core(*_, **__):
    async def body():
        print("READY", file=sys.stderr, flush=True)
        await asyncio.sleep(60)
    return asyncio.run(body())

bridge.with_core = with_core
raise SystemExit(run(sys.argv[1:]))
"""


@pytest.mark.parametrize("as_json", [False, True])
def test_ctrl_c_ends_a_blocking_command_without_a_traceback(tmp_path: Path, as_json: bool) -> None:
    flags = ["--json"] if as_json else []
    process = start("wait", "op-1", "--home", str(tmp_path), *flags, program=INTERRUPTED)
    try:
        read_until(process, b"READY")
        process.send_signal(signal.SIGINT)
        said, err = process.communicate(timeout=LIMIT_S)
    finally:
        process.kill()
        process.wait(LIMIT_S)
    assert process.returncode == 130
    assert err.split() == [b"interrupted"]
    assert said == b"" if not as_json else json.loads(said)["error"]["code"] == "interrupted"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.rule("O8")
def test_a_run_that_is_refused_its_figures_never_says_that_it_runs(tmp_path: Path) -> None:
    taken = socket.create_server(("127.0.0.1", 0))
    try:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        home = ("--home", str(tmp_path / "home"))
        process = start("run", "--metrics", address, "--for", "1s", *home, program=REAL)
        _, err = process.communicate(timeout=LIMIT_S)
    finally:
        taken.close()
    assert process.returncode == 2
    assert f"metrics: cannot listen on {address}" in err.decode()
    assert b"core running" not in err


def test_a_missing_extra_names_what_works_however_the_program_was_installed() -> None:
    for text, package, extra in (
        (metrics_http.INSTALL, "prometheus-client", "metrics"),
        (notice_sender.INSTALL, "apprise", "notify"),
        (signing.WITHOUT, "botocore", "aws"),
        (command.MISSING, "mcp", "mcp"),
    ):
        assert f"the extra '{extra}' is not installed: pip install {package}, " in text
        assert f"with its extra [{extra}]" in text
        assert f"pollconsole[{extra}]" not in text
    named = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for extra, package in (
        ("metrics", "prometheus-client"),
        ("notify", "apprise"),
        ("aws", "botocore"),
        ("mcp", "mcp"),
    ):
        assert [one.partition(">")[0] for one in named[extra]] == [package]


async def test_figures_that_cannot_be_told_leave_no_task_behind() -> None:
    async def send_notices(_say: Any) -> None:
        """Never begun."""

    def metrics(_controller: Any, _listen: Any) -> Any:
        raise Refused("the library is not installed", code="metrics")

    core: Any = SimpleNamespace(send_notices=send_notices, metrics=metrics, config=SimpleNamespace(metrics=None))
    with pytest.raises(Refused):
        beside(core, core, print, listen=("127.0.0.1", 9464))
    assert asyncio.all_tasks() == {asyncio.current_task()}
