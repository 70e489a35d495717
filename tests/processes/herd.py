"""Real `pollconsole run` processes on one home: started, killed, stopped, continued, ended by process id.

It knows how a home is laid out and how a worker is started, not what a run has to prove (verdict.py).
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from pollcore.actions import SubmitSpec
from pollcore.assembly import open_core
from tests.processes.provider import CONTRACT

ROOT: Final = Path(__file__).resolve().parents[2]
PROGRAM: Final = (sys.executable, "-m", "pollconsole")
LIMIT_S: Final = 60.0
KILLED: Final = 0.35
"""Share of kills among what is done to a worker; the others are stops."""
READY: Final = "core running"
"""What a worker says on stderr once signals end it cleanly."""


def environment() -> dict[str, str]:
    """Of every worker: the checkout's own packages, no home but the one that is named."""
    paths = os.pathsep.join(str(ROOT / part) for part in ("core", "console", "."))
    return {**os.environ, "PYTHONPATH": paths, "POLLCONSOLE_HOME": "/dev/null/name-the-home"}


def shortened(lease_ms: int = 0, journal: str = "WAL") -> tuple[str, ...]:
    """The command line of a worker with its lease times or its journal set (worker.py)."""
    return (
        *(sys.executable, "-m", "tests.processes.worker"),
        *("--lease-ms", str(lease_ms), "--journal", journal, "--"),
    )


def lay_out(home: Path, url: str) -> None:
    """Contract, instance and a reading key in a file: no keyring is touched."""
    (home / "providers").mkdir(parents=True, mode=0o700)
    home.chmod(0o700)
    (home / "providers" / "counted.toml").write_text(CONTRACT)
    (home / "config.toml").write_text(
        f'[audit]\nkey_file = "{home}/reading.key"\n[providers.lab]\ncontract = "counted"\nbase_url = "{url}"\n'
    )


async def hand_over(home: Path, specs: Mapping[str, SubmitSpec], wave: int = 0, pause_s: float = 0.0) -> None:
    """Submit every job; returns when all are durable. *wave*: so many at once, then a pause."""
    async with open_core(home, kind="cli") as core:
        for k, (job, spec) in enumerate(specs.items(), 1):
            assert (await core.actions.submit(spec)).operation.submitted.job_id == job
            if wave and k % wave == 0:
                await asyncio.sleep(pause_s)


def specs(chance: random.Random, jobs: int, *, deadline_s: int, share: int = 1) -> dict[str, SubmitSpec]:
    """Small random budgets. *share*: so many operations belong to one account."""
    return {
        f"job-{k:03d}": SubmitSpec(
            provider="lab",
            job_id=f"job-{k:03d}",
            operation_id=f"op-{k:03d}",
            account=f"account-{k // share}",
            deadline_ms=deadline_s * 1000,
            max_status_requests=chance.randint(2, 10),
            max_transport_failures=chance.randint(1, 4),
            max_rate_limited=chance.randint(1, 3),
        )
        for k in range(jobs)
    }


class Worker:
    """One process and what it said on stderr."""

    def __init__(self, home: Path, command: tuple[str, ...], log: Path, *arguments: str) -> None:
        self.log = log
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                [*command, "run", "--home", str(home), *arguments],
                cwd=log.parent,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=out,
            )
        self.stopped = False

    def said(self) -> str:
        """Its stderr so far."""
        return self.log.read_text("utf-8", "replace")

    def send(self, number: signal.Signals) -> None:
        """A signal, to this process alone."""
        self.process.send_signal(number)
        if number in (signal.SIGSTOP, signal.SIGCONT):
            self.stopped = number is signal.SIGSTOP

    def is_ready(self) -> bool:
        """It runs and its signal handlers are set. Raises AssertionError: it ended before."""
        code = self.process.poll()
        assert code is None, f"a worker ended by itself with {code}: {self.said()}"
        return READY in self.said()

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it and return its exit code."""
        if self.stopped:
            self.send(signal.SIGCONT)
        self.process.send_signal(number)
        return self.process.wait(LIMIT_S)


class Herd:
    """So many workers on one home; whoever is killed is replaced."""

    def __init__(self, home: Path, logs: Path, size: int, command: tuple[str, ...] = PROGRAM) -> None:
        self.home = home
        self.logs = logs
        self.command = command
        self.started = self.kills = self.stops = 0
        self.dead: list[Worker] = []
        self.workers = [self._new() for _ in range(size)]

    def _new(self) -> Worker:
        self.started += 1
        return Worker(self.home, self.command, self.logs / f"worker-{self.started}.log")

    def __enter__(self) -> Herd:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            if worker.process.poll() is None:
                worker.process.kill()
                worker.process.wait(LIMIT_S)

    def wait_ready(self) -> None:
        """All workers have set their handlers."""
        until(lambda: all(w.is_ready() for w in self.workers), "workers are ready")

    def kill(self, worker: Worker) -> None:
        """SIGKILL, and a new worker in its place."""
        worker.process.kill()
        assert worker.process.wait(LIMIT_S) in (-signal.SIGKILL,), worker.said()
        self.dead.append(worker)
        self.kills += 1
        self.workers[self.workers.index(worker)] = self._new()

    def chaos(self, chance: random.Random, seconds: float, longest_stop_s: float) -> None:
        """Kill, stop and continue at random for *seconds*; everyone runs again afterwards."""
        end = time.monotonic() + seconds
        wake: dict[int, tuple[float, Worker]] = {}
        while time.monotonic() < end:
            time.sleep(chance.uniform(0.05, 0.6))
            now = time.monotonic()
            for pid in [pid for pid, (at, _) in wake.items() if at <= now]:
                wake.pop(pid)[1].send(signal.SIGCONT)
            worker = chance.choice(self.workers)
            if chance.random() < KILLED:
                wake.pop(worker.process.pid, None)
                self.kill(worker)
            elif not worker.stopped and READY in worker.said():
                worker.send(signal.SIGSTOP)
                self.stops += 1
                wake[worker.process.pid] = (now + chance.uniform(0.5, longest_stop_s), worker)
        for _, worker in wake.values():
            worker.send(signal.SIGCONT)

    def end(self) -> list[int]:
        """SIGTERM to all that are ready; their exit codes."""
        self.wait_ready()
        return [worker.end() for worker in self.workers]


def until(condition: Callable[[], bool], what: str, limit_s: float = LIMIT_S) -> None:
    """Wait until *condition* holds. Raises AssertionError after *limit_s*."""
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, f"not within {limit_s:.0f} s: {what}"
        time.sleep(0.02)
