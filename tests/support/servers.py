"""Finds the real things that a test marked `server(...)` needs, and starts job servers when a developer asks for it.

It knows where they are announced, never what a test does with them. Job servers are announced by the environment
variable POLLCONSOLE_TEST_SERVERS, in one of three shapes:
 - a folder that holds NAME/server.json for each running server (what `tests/servers/NAME/start.py DIR PORT` writes);
 - a file with one JSON object {"NAME": {"url": ...}};
 - that JSON object itself.
A real keyring is announced by POLLCONSOLE_TEST_KEYRING=1 inside a D-Bus session; tmux, and xterm with Xvfb and
xdotool, by being on the path.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

JOB_SERVERS = ("aria2", "restate", "prefect", "moto")
TOOLS = ("keyring", "tmux", "xterm")
OF_XTERM = ("xterm", "Xvfb", "xdotool")
VARIABLE = "POLLCONSOLE_TEST_SERVERS"
SCRIPTS = Path(__file__).resolve().parent.parent / "servers"
#: Each start script takes PORT to PORT+3 at most.
PORTS_EACH = 10
#: An installation of prefect takes minutes on a slow line.
START_LIMIT_S = 900.0
STOP_LIMIT_S = 20.0


@dataclass(frozen=True)
class JobServer:
    """A running job server. *facts* is its whole announcement: `url`, and by server `admin` or `files`."""

    name: str
    url: str
    facts: Mapping[str, Any]


def find(name: str, environ: Mapping[str, str] = os.environ) -> JobServer | None:
    """Return the announced job server *name*, or None.

    Raises:
        ValueError: what is announced is not one of the three shapes.
    """
    facts = _announced(name, environ.get(VARIABLE, "").strip())
    if facts is None:
        return None
    url = facts.get("url")
    if not isinstance(url, str) or not url.startswith("http://"):
        raise ValueError(f"{VARIABLE}: {name}: no url in {dict(facts)!r}")
    return JobServer(name, url, facts)


def why_missing(name: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """Return None if *name* can be used by a test, else the reason with the way out."""
    if name in JOB_SERVERS:
        if find(name, environ):
            return None
        return f"no {name} server: set {VARIABLE}, or run pytest with --servers {name}"
    if name == "tmux":
        return None if shutil.which("tmux") else "no tmux on the path: apt-get install tmux"
    if name == "xterm":
        missing = [tool for tool in OF_XTERM if not shutil.which(tool)]
        return f"no {', '.join(missing)} on the path: apt-get install xterm xvfb xdotool" if missing else None
    if name == "keyring":
        announced = environ.get("POLLCONSOLE_TEST_KEYRING") == "1" and environ.get("DBUS_SESSION_BUS_ADDRESS")
        return None if announced else "no unlocked Secret Service: run through .ci/run, or as it does"
    raise ValueError(f"server({name!r}): known are {', '.join(JOB_SERVERS + TOOLS)}")


def _announced(name: str, value: str) -> Mapping[str, Any] | None:
    if not value:
        return None
    if value.startswith("{"):
        return _entry(json.loads(value), name)
    place = Path(value)
    if place.is_dir():
        file = place / name / "server.json"
        return json.loads(file.read_text("utf-8")) if file.is_file() else None
    if place.is_file():
        return _entry(json.loads(place.read_text("utf-8")), name)
    raise ValueError(f"{VARIABLE}={value}: no such folder or file")


def _entry(table: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    entry = table.get(name)
    return {"url": entry} if isinstance(entry, str) else entry


def start(names: Sequence[str], folder: Path) -> list[subprocess.Popen[bytes]]:
    """Start the job servers *names* on free loopback ports, installed below *folder*; return their controllers.

    Raises:
        RuntimeError: one ended or was not ready in time; those already started are stopped.
    """
    running: list[subprocess.Popen[bytes]] = []
    try:
        for name in names:
            place = folder / name
            place.mkdir(parents=True, exist_ok=True)
            (place / "server.json").unlink(missing_ok=True)
            with (folder / f"{name}.log").open("wb") as log:
                command = [sys.executable, str(SCRIPTS / name / "start.py"), str(place), str(_free_ports())]
                running.append(subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL))
        for name, process in zip(names, running, strict=True):
            _await_ready(name, process, folder)
    except BaseException:
        stop(running)
        raise
    return running


def stop(running: Sequence[subprocess.Popen[bytes]]) -> None:
    """End exactly the controllers in *running*; each ends what it started."""
    for process in running:
        if process.poll() is None:
            process.terminate()
    for process in running:
        try:
            process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await_ready(name: str, process: subprocess.Popen[bytes], folder: Path) -> None:
    end = time.monotonic() + START_LIMIT_S
    while not (folder / name / "server.json").is_file():
        if process.poll() is not None or time.monotonic() > end:
            tail = (folder / f"{name}.log").read_text("utf-8", "replace")[-1000:]
            raise RuntimeError(f"{name} did not start (exit {process.poll()}): {tail}")
        time.sleep(0.1)


def _free_ports() -> int:
    """Return a port that is free together with the ones after it that a start script may take."""
    for _ in range(100):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            first = int(probe.getsockname()[1])
        if first + PORTS_EACH < 65_536 and all(_is_free(first + i) for i in range(PORTS_EACH)):
            return first
    raise RuntimeError("no row of free loopback ports found in 100 tries")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
