"""What tests of real processes share: a provider on loopback, a home that polls it quickly, the program's call."""

from __future__ import annotations

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 90
PROGRAM = [sys.executable, "-m", "pollconsole"]


class Provider(ThreadingHTTPServer):
    """Job states by id; `/results/ID` holds the result."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.states: dict[str, Any] = {}
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    """GET alone."""

    server: Provider

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        job = self.path.rpartition("/")[2].partition("?")[0]
        if self.path.startswith("/results/"):
            body: dict[str, Any] = {"answer": 42}
        else:
            body = {"id": job, "status": self.server.states.get(job, "running")}
            if body["status"] == "succeeded":
                body["result"] = {"url": f"{self.server.url}/results/{job}?sig=presigned"}
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def make_home(folder: Path, url: str) -> Path:
    """A home whose reading key is a file (no keyring is touched), with a contract that polls quickly."""
    text = (resources.files("pollcore") / "contracts" / "example-jobs.toml").read_text("utf-8")
    text = text.replace('name = "example-jobs"', 'name = "quick"', 1).replace('"5s"\nmax_delay', '"200ms"\nmax_delay')
    (folder / "providers").mkdir(parents=True)
    (folder / "providers" / "quick.toml").write_text(text)
    (folder / "config.toml").write_text(
        f'[providers.lab]\ncontract = "quick"\nbase_url = "{url}"\n[audit]\nkey_file = "reading.key"\n'
    )
    return folder


STORY_TIME = r"(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d"
"""A time as a story tells it: with its date where that is another day, as around midnight."""


def environment() -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("TEXTUAL", "DBUS"))}
    return {**inherited, "PYTHONPATH": os.pathsep.join((str(ROOT / "core"), str(ROOT / "console")))}
