"""`GET /healthz` and `GET /metrics` for this machine alone, on threads of their own.

Job: a listening socket on a loopback address, a snapshot as text. Must not know: the store, the loop, how figures are
taken. Only prometheus_client's text format is used, never its global registry: nothing of this process but the snapshot
is told. A request that names another host is refused: a page in a browser must not read it under a name of its own.
Source: spec O8, K1.
"""

from __future__ import annotations

import ipaddress
import json
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from pollcore.facts import Moment, Refused, extra_missing
from pollcore.measures import BUCKETS_MS, Counted, Figures, Snapshot, why_ill

REQUEST_S: Final = 5.0
"""Time for one request to arrive and its answer to be taken."""
MAX_AT_ONCE: Final = 8
"""Requests at the same time; more get 503."""
LOOK_S: Final = 0.1
"""How soon closing is noticed."""
INSTALL: Final = extra_missing("metrics", "prometheus-client")


def need_library() -> None:
    """Raises Refused, code `metrics`: the library is not there."""
    try:
        import prometheus_client  # noqa: F401
    except ImportError:
        raise Refused(f"metrics: {INSTALL}", code="metrics") from None


class MetricsServer:
    """Listens from construction to `close`."""

    def __init__(self, host: str, port: int, latest: Callable[[], Snapshot | None], now: Callable[[], Moment]) -> None:
        """*latest*: the newest snapshot, from any thread. Raises Refused, code `metrics`: it cannot listen there, or
        the library is missing.
        """
        need_library()
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        family = _Server6 if ":" in host else _Server
        try:
            self._server = family((host, port), _Handler)
        except OSError as error:
            raise Refused(f"metrics: cannot listen on {address}: {error.strerror or error}", code="metrics") from None
        self._server.latest, self._server.now = latest, now
        self.address = address if port else f"{host}:{self._server.server_address[1]}"
        serve = lambda: self._server.serve_forever(LOOK_S)  # noqa: E731
        self._thread = threading.Thread(target=serve, name="pollcore-metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening; a second call does nothing."""
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = MAX_AT_ONCE
    latest: Callable[[], Snapshot | None]
    now: Callable[[], Moment]

    def __init__(self, *args: Any) -> None:
        self.places = threading.BoundedSemaphore(MAX_AT_ONCE)
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self.places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is nobody's news."""


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = REQUEST_S
    protocol_version = "HTTP/1.0"
    server_version = "pollconsole"
    sys_version = ""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if not _is_here(self.headers.get("Host", "")):
            self._answer(403, "text/plain", b"only this machine is served\n")
        elif path == "/healthz":
            self._healthz()
        elif path == "/metrics":
            kind, body = rendered(self.server.latest(), self.server.now())
            self._answer(200, kind, body)
        else:
            self._answer(404, "text/plain", b"/healthz or /metrics\n")

    do_HEAD = do_GET

    def _healthz(self) -> None:
        snapshot, now = self.server.latest(), self.server.now()
        wrong = why_ill(snapshot, now)
        age = None if snapshot is None else snapshot.beat_age_ms
        told = {"status": "ill" if wrong else "ok", "why": list(wrong), "heartbeat_age_ms": age}
        self._answer(503 if wrong else 200, "application/json", json.dumps(told).encode() + b"\n")

    def _answer(self, code: int, kind: str, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing: an address in a log is of no use here."""


def _is_here(host: str) -> bool:
    """Whether the Host header names this machine; an absent one (HTTP/1.0) does."""
    bare = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() and not host.endswith("]") else host
    bare = bare.removeprefix("[").removesuffix("]")
    if bare in ("", "localhost"):
        return True
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return False


def rendered(snapshot: Snapshot | None, now: Moment) -> tuple[str, bytes]:
    """Content type and text of `/metrics`."""
    from prometheus_client import CollectorRegistry
    from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

    class Once:
        def collect(self) -> Iterator[Any]:
            return _families(snapshot, now)

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Once())
    return CONTENT_TYPE_LATEST, generate_latest(registry)


def _families(snapshot: Snapshot | None, now: Moment) -> Iterator[Any]:
    from prometheus_client.core import GaugeMetricFamily

    def gauge(name: str, says: str, value: float) -> Any:
        return GaugeMetricFamily(f"pollconsole_{name}", says, value=value)

    yield gauge("up", "1 while /healthz answers 200.", 0.0 if why_ill(snapshot, now) else 1.0)
    if snapshot is None:
        return
    age = max(0, now.boot - snapshot.at.boot)
    yield gauge("snapshot_age_seconds", "Age of these figures.", age / 1_000)
    if snapshot.beat_age_ms is not None:
        beat = (snapshot.beat_age_ms + age) / 1_000
        yield gauge("heartbeat_age_seconds", "Since the newest heartbeat of a core.", beat)
    yield gauge(
        "store_usable", "0 while nothing can be recorded, and nothing is sent.", float(not snapshot.store_fault)
    )
    yield gauge(
        "audit_anchored", "0 while the keyring or key file does not anchor: no grant.", float(snapshot.anchored)
    )
    yield gauge("audit_damaged", "1: nothing is sent, nothing granted.", float(snapshot.damaged))
    yield gauge("audit_unanchored_seconds", "Since when the audit is not anchored.", snapshot.unanchored_ms / 1_000)
    yield gauge("pauses", "Pauses of providers that hold now.", snapshot.paused)
    yield from _operations(snapshot)
    yield from _questions(snapshot, now)
    yield from _requests(snapshot.counted)


def _operations(snapshot: Snapshot) -> Iterator[Any]:
    from prometheus_client.core import GaugeMetricFamily

    by_status = GaugeMetricFamily("pollconsole_operations", "Operations by status.", labels=["status"])
    for status, number in sorted(snapshot.by_status.items()):
        by_status.add_metric([status], number)
    yield by_status
    by_delay = GaugeMetricFamily(
        "pollconsole_operations_waiting", "Waiting operations by what set their next request.", labels=["delay_source"]
    )
    for source, number in sorted(snapshot.by_delay.items()):
        by_delay.add_metric([source], number)
    yield by_delay
    live = GaugeMetricFamily("pollconsole_operations_live", "Live operations by provider.", labels=["provider"])
    low = GaugeMetricFamily(
        "pollconsole_operations_low", "Live operations with a budget four fifths used.", labels=["provider"]
    )
    labels = ["provider", "budget"]
    used = GaugeMetricFamily("pollconsole_budget_used", "Used of the budgets of live operations.", labels=labels)
    allowed = GaugeMetricFamily("pollconsole_budget_allowed", "Allowed of the same.", labels=labels)
    for provider, figures in sorted(snapshot.by_provider.items()):
        live.add_metric([provider], figures.live)
        low.add_metric([provider], figures.low)
        for budget, spent, most in _budgets(figures):
            used.add_metric([provider, budget], spent)
            allowed.add_metric([provider, budget], most)
    yield from (live, low, used, allowed)


def _budgets(figures: Figures) -> Iterator[tuple[str, int, int]]:
    for name, one in (
        ("status_requests", figures.requests),
        ("transport_failures", figures.failures),
        ("rate_limited", figures.rate_limited),
    ):
        yield name, one.used, one.allowed


def _questions(snapshot: Snapshot, now: Moment) -> Iterator[Any]:
    from prometheus_client.core import GaugeMetricFamily

    many = GaugeMetricFamily("pollconsole_questions_open", "Open questions by reason.", labels=["reason"])
    oldest = GaugeMetricFamily(
        "pollconsole_questions_oldest_seconds", "Age of the oldest open question of a reason.", labels=["reason"]
    )
    for reason, (number, asked_at) in snapshot.questions.items():
        many.add_metric([reason], number)
        oldest.add_metric([reason], max(0, now.wall - asked_at) / 1_000)
    yield from (many, oldest)


def _requests(counted: Counted) -> Iterator[Any]:
    from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

    sent = CounterMetricFamily(
        "pollconsole_requests",
        "Answers of status requests by what came of them, each operation's own, since this process began.",
        labels=["outcome"],
    )
    for outcome, number in sorted(counted.answers.items()):
        sent.add_metric([outcome], number)
    yield sent
    total, buckets = 0, []
    for number, bound in zip(counted.late, (*BUCKETS_MS, None), strict=True):
        total += number
        buckets.append(("+Inf" if bound is None else str(bound / 1_000), total))
    late = HistogramMetricFamily("pollconsole_lateness_seconds", "Sent later than planned.")
    late.add_metric([], buckets, counted.late_sum_ms / 1_000)
    yield late
