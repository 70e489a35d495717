"""Starts jobs at the real servers of tests/servers, as an agent would before it hands the wait over."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
import uuid
from typing import Any

from tests.support.servers import JobServer

TIMEOUT_S = 20
BUSY = 503
"""Prefect's word for "my SQLite was locked, nothing is done, ask again"; its own client does that, too."""
BUSY_LIMIT_S = 30
BUSY_PAUSE_S = 0.5


def call(method: str, url: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
    """One JSON request, sent again while the server is busy, at most BUSY_LIMIT_S; the decoded answer.

    Every request here may be repeated: it only reads, or carries an idempotency key, or was answered with "not done".
    """
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", **(headers or {})}, method=method)
    end = time.monotonic() + BUSY_LIMIT_S
    while True:
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                text = answer.read()
            return json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            if error.code != BUSY or time.monotonic() > end:
                raise
            time.sleep(BUSY_PAUSE_S)


class Aria2:
    """Downloads from the slow file server beside it."""

    unknown = "00000000000000ff"
    state_of_success = "complete"
    state_of_failure = "error"

    def __init__(self, server: JobServer) -> None:
        self.base_url = server.url
        self.urls: dict[str, str] = {}
        self._files = server.facts["files"]

    def _add(self, path: str) -> str:
        body = {"jsonrpc": "2.0", "id": "t", "method": "aria2.addUri", "params": [[f"{self._files}/{path}"]]}
        return str(call("POST", f"{self.base_url}/jsonrpc", body)["result"])

    def succeeding(self) -> str:
        return self._add(f"slow/100000/100000/{uuid.uuid4().hex}")

    def failing(self) -> str:
        return self._add("code/404")

    def endless(self) -> str:
        return self._add(f"slow/50000000/100000/{uuid.uuid4().hex}")


class Restate:
    """Invocations of a service that naps."""

    unknown = "inv_1gdJBtdVEcM942bjcDmb1c1khoaJe11Hbz"
    state_of_success = "completed"
    state_of_failure = "failed"

    def __init__(self, server: JobServer) -> None:
        self.base_url = server.url
        self.urls = {"admin": server.facts["admin"]}

    def _send(self, **given: Any) -> str:
        key = {"idempotency-key": uuid.uuid4().hex}
        return str(call("POST", f"{self.base_url}/naps/nap/send", given, key)["invocationId"])

    def succeeding(self) -> str:
        return self._send(seconds=1)

    def failing(self) -> str:
        return self._send(seconds=1, fail=True)

    def endless(self) -> str:
        return self._send(seconds=600)


class Prefect:
    """Flow runs of the deployment nap/nap."""

    unknown = "00000000-0000-4000-8000-000000000000"
    state_of_success = "COMPLETED"
    state_of_failure = "FAILED"

    def __init__(self, server: JobServer) -> None:
        self.base_url = server.url
        self.urls: dict[str, str] = {}

    def _run(self, **given: Any) -> str:
        deployment = call("GET", f"{self.base_url}/deployments/name/nap/nap")["id"]
        body = {"parameters": given, "state": {"type": "SCHEDULED"}, "idempotency_key": uuid.uuid4().hex}
        return str(call("POST", f"{self.base_url}/deployments/{deployment}/create_flow_run", body)["id"])

    def succeeding(self) -> str:
        return self._run(seconds=1)

    def failing(self) -> str:
        return self._run(seconds=1, fail=True)

    def endless(self) -> str:
        return self._run(seconds=600)

    def lasting(self, seconds: int) -> str:
        return self._run(seconds=seconds)


SERVERS = {"aria2": Aria2, "restate": Restate, "prefect": Prefect}
