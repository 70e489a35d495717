"""Real processes over one home: a provider and a receiver of notices on loopback, a keyring in a file.

Job: make the home, run the program, wait on conditions with a limit. Must not know: what is expected of it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from typing import Any

from tests.console.real import Provider
from tests.trust import file_keyring

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 90.0
PROGRAM = [sys.executable, "-m", "pollconsole"]


class Receiver(ThreadingHTTPServer):
    """Takes what `json://` sends. *answer*: its status; *hang*: it answers nothing until the event is set."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Takes)
        self.got: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.answer = 200
        self.hang: threading.Event | None = None

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class _Takes(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.paths.append(self.path)
        if self.server.hang is not None:
            self.server.hang.wait(LIMIT_S)
        if self.server.answer == 200:
            self.server.got.append(json.loads(body))
        self.send_response(self.server.answer)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def until(holds: Callable[[], Any], what: str = "", limit_s: float = LIMIT_S) -> Any:
    """What *holds* gives once it is true."""
    end = time.monotonic() + limit_s
    while not (found := holds()):
        assert time.monotonic() < end, what or "it did not come to be"
        time.sleep(0.05)
    return found


class World:
    """One home."""

    def __init__(self, folder: Path, provider: Provider, receiver: Receiver) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.provider = provider
        self.receiver = receiver
        self.keyring = folder / "keyring.json"
        self.said = b""
        """Everything that any process wrote to its streams."""
        text = (resources.files("pollcore") / "contracts" / "example-jobs.toml").read_text("utf-8")
        text = text.replace('name = "example-jobs"', 'name = "quick"', 1)
        text = text.replace('"5s"\nmax_delay', '"200ms"\nmax_delay')
        (self.home / "providers").mkdir(parents=True)
        (self.home / "providers" / "quick.toml").write_text(text)
        self.settings("")

    def settings(self, more: str) -> None:
        """`config.toml` with *more*."""
        (self.home / "config.toml").write_text(
            '[keyring]\nbackend = "tests.trust.file_keyring.Keyring"\n'
            f'[providers.lab]\ncontract = "quick"\nbase_url = "{self.provider.url}"\n{more}'
        )

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("TEXTUAL", "DBUS"))}
        kept["TERM"] = "xterm-256color"
        paths = os.pathsep.join((str(ROOT / "core"), str(ROOT / "console"), str(ROOT)))
        # an environment that would lead what is sent astray, were it obeyed
        astray = {
            "HTTP_PROXY": "http://127.0.0.1:9",
            "http_proxy": "http://127.0.0.1:9",
            "ALL_PROXY": "http://127.0.0.1:9",
        }
        return {**kept, **astray, "PYTHONPATH": paths, file_keyring.VARIABLE: str(self.keyring)}

    def call(self, *argv: str, code: int = 0, given: bytes = b"") -> str:
        """Standard output of a call that must end with *code*."""
        done = subprocess.run(
            [*PROGRAM, "--home", str(self.home), *argv],
            input=given,
            capture_output=True,
            timeout=LIMIT_S,
            env=self.environment(),
        )
        self.said += done.stdout + done.stderr
        assert done.returncode == code, done
        return done.stdout.decode()

    def json(self, *argv: str, code: int = 0) -> Any:
        return json.loads(self.call(*argv, "--json", code=code))

    def submit(self, operation_id: str, deadline: str = "20m") -> None:
        # fmt: off
        self.call("submit", "--provider", "lab", "--job-id", f"job-{operation_id}", "--id", operation_id,
                  "--deadline", deadline)
        # fmt: on

    def state(self, operation_id: str, state: str) -> None:
        """What the provider says of the operation's job from now on."""
        self.provider.states[f"job-{operation_id}"] = state

    @contextmanager
    def running(self, *argv: str) -> Iterator[subprocess.Popen[bytes]]:
        """`run`, ended by SIGTERM."""
        log = (self.folder / f"run-{time.monotonic_ns()}").open("w+b")
        process = subprocess.Popen(
            [*PROGRAM, "--home", str(self.home), "run", *argv],
            stdout=log,
            stderr=log,
            env=self.environment(),
        )
        try:
            yield process
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            assert process.wait(LIMIT_S) == 0, Path(log.name).read_text()
        finally:
            process.kill()
            process.wait(LIMIT_S)
            log.seek(0)
            self.said += log.read()
            log.close()

    def everything(self) -> Iterator[tuple[str, bytes]]:
        """What was written anywhere but into the keyring: files of the home, streams."""
        yield "streams", self.said
        for path in sorted(self.home.rglob("*")):
            if path.is_file():
                # the store is never opened by this process
                read = subprocess.run(["cat", str(path)], capture_output=True, check=True, timeout=LIMIT_S)
                yield str(path.relative_to(self.home)), read.stdout
