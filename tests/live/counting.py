"""A proxy on loopback that counts what passes through it to a job server, by path."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from tests.serving import serving

TIMEOUT_S = 20
MAX_BODY = 1 << 20


class Counting(ThreadingHTTPServer):
    """Passes GET and POST on to *origin* and keeps `METHOD path` of each."""

    daemon_threads = True

    def __init__(self, origin: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.origin = origin
        self.seen: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def asked_for(self, job_id: str) -> int:
        """Requests for the status of a job."""
        return sum(one.startswith("GET ") and one.endswith(job_id) for one in self.seen)


class _Handler(BaseHTTPRequestHandler):
    server: Counting

    def _pass_on(self) -> None:
        self.server.seen.append(f"{self.command} {self.path}")
        length = min(int(self.headers.get("Content-Length") or 0), MAX_BODY)
        data = self.rfile.read(length) if length else None
        kept = {"Content-Type": self.headers["Content-Type"]} if self.headers["Content-Type"] else {}
        request = urllib.request.Request(self.server.origin + self.path, data, kept, method=self.command)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                code, body = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            code, body = error.code, error.read()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = _pass_on

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def counting(url: str) -> Iterator[tuple[Counting, str]]:
    """(the proxy, the base URL that leads through it to *url*)."""
    parts = urlsplit(url)
    proxy = Counting(f"{parts.scheme}://{parts.netloc}")
    with serving(proxy):
        yield proxy, proxy.url + parts.path
