"""Health and figures: over real HTTP from a real run, and their bounds."""

from __future__ import annotations

import http.client
import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollcore import measures
from pollcore.adapters import metrics_http
from pollcore.adapters.config import parse_listen
from pollcore.facts import AuditEvent, EventName, Instant, Refused
from pollcore.measures import Counted, Snapshot, why_ill
from tests.console.cli.conftest import HOSTILE, NOW, make_operation, make_question
from tests.outside.world import World, until


@contextmanager
def reserved_port() -> Iterator[int]:
    """A port that nobody else gets meanwhile: bound and never listening, which lets a server that reuses it in."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield int(held.getsockname()[1])


def get(port: int, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    asked = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        asked.request(method, path, headers=headers)
        answer = asked.getresponse()
        return answer.status, answer.read().decode()
    finally:
        asked.close()


def reached(port: int, path: str) -> tuple[int, str] | None:
    try:
        return get(port, path)
    except OSError:
        return None


def figures(text: str) -> dict[str, float]:
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            found[name] = float(value)
    return found


@pytest.mark.slow
@pytest.mark.rule("O8", "B4", "K1")
def test_a_run_tells_health_and_figures_and_no_id(world: World) -> None:
    with reserved_port() as port:
        health_and_figures(port, world)


def health_and_figures(port: int, world: World) -> None:
    for name, state in (("op-a", "succeeded"), ("op-b", "running"), ("op-c", "failed")):
        world.submit(name)
        world.state(name, state)
    with world.running("--metrics", f"127.0.0.1:{port}"):
        until(lambda: (found := reached(port, "/healthz")) and found[0] == 200, "never well")
        assert json.loads(get(port, "/healthz")[1])["status"] == "ok"
        told = until(
            lambda: (
                (now := figures(get(port, "/metrics")[1])).get('pollconsole_requests_total{outcome="succeeded"}')
                and now.get('pollconsole_questions_open{reason="job_failed"}')
                and now
            )
        )
        assert told['pollconsole_operations{status="succeeded"}'] == 1
        assert told['pollconsole_operations_live{provider="lab"}'] == 1
        assert told['pollconsole_budget_allowed{budget="status_requests",provider="lab"}'] == 25
        assert told["pollconsole_up"] == 1
        assert told["pollconsole_audit_anchored"] == 1
        assert told["pollconsole_lateness_seconds_count"] >= 3
        assert told['pollconsole_lateness_seconds_bucket{le="+Inf"}'] == told["pollconsole_lateness_seconds_count"]
        text = get(port, "/metrics")[1]
        assert [word for word in ("op-a", "op-b", "job-op", "127.0.0.1", "team") if word in text] == []
        assert get(port, "/metrics", Host="evil.example:9464")[0] == 403
        assert get(port, "/else")[0] == 404
        assert get(port, "/metrics", method="POST")[0] == 501
        assert get(port, "/healthz", method="HEAD") == (200, "")
    assert reached(port, "/healthz") is None


@pytest.mark.slow
def test_an_address_in_use_is_refused_when_it_was_asked_for_and_said_when_it_stands_in_the_settings(
    world: World,
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        world.call("run", "--metrics", f"127.0.0.1:{port}", "--for", "5s", code=2)
        assert f"cannot listen on 127.0.0.1:{port}".encode() in world.said
        world.settings(f'[metrics]\nlisten = "127.0.0.1:{port}"\n')
        world.call("run", "--for", "1s")
        assert b"polling goes on without" in world.said
    world.call("run", "--metrics", "0.0.0.0:9464", "--for", "1s", code=2)
    assert b"is not this machine alone" in world.said


@pytest.mark.parametrize("text", ["127.0.0.1:9464", "[::1]:1", "localhost:65535", "127.9.9.9:80"])
def test_loopback_addresses_can_be_listened_on(text: str) -> None:
    host, port = parse_listen(text)
    assert text in (f"{host}:{port}", f"[{host}]:{port}")


@pytest.mark.parametrize(
    "text",
    ["0.0.0.0:9464", "[::]:1", "10.0.0.1:9", "example.com:9", ":9464", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:65536",
     "127.0.0.1.evil.example:80", "127.0.0.1@10.0.0.1:80", "::1:80:80", "127.0.0.1:９"],
)  # fmt: skip
def test_no_other_address_can_be(text: str) -> None:
    with pytest.raises(ValueError):
        parse_listen(text)


@pytest.mark.rule("O8")
@pytest.mark.parametrize(
    ("changes", "ms", "wrong"),
    [
        ({}, 0, ()),
        ({}, 25_000, ()),
        ({}, 31_000, ("the core's loop does not answer", "the core gives no heartbeat")),
        ({"beat_age_ms": 31_000}, 0, ("the core gives no heartbeat",)),
        ({"beat_age_ms": None}, 0, ("no core has run yet",)),
        ({"store_fault": "disk full: /secret"}, 0, ("the store cannot be used",)),
        ({"damaged": True}, 0, ("the audit is damaged",)),
    ],
)
def test_health_is_heartbeat_store_and_audit(changes: dict[str, Any], ms: int, wrong: tuple[str, ...]) -> None:
    snapshot = Snapshot(**{"at": NOW, "beat_age_ms": 5_000, **changes})
    assert why_ill(snapshot, NOW.after(ms)) == wrong
    kind, text = metrics_http.rendered(snapshot, NOW.after(ms))
    assert kind.startswith("text/plain")
    assert figures(text.decode())["pollconsole_up"] == (0 if wrong else 1)
    assert b"secret" not in text


def test_before_the_first_figures_it_is_ill() -> None:
    assert why_ill(None, NOW) == ("the core has not begun",)
    assert figures(metrics_http.rendered(None, NOW)[1].decode()) == {"pollconsole_up": 0.0}


@given(names=st.lists(st.text(min_size=1, max_size=20), max_size=300))
def test_providers_are_capped_and_nothing_is_lost_from_the_sums(names: list[str]) -> None:
    live = [
        make_operation(
            f"op-{n}", submitted=make_operation().submitted.__class__(provider=name, account="a", job_id="j")
        )
        for n, name in enumerate(names)
    ]
    found = measures.by_provider(live)
    assert len(found) <= measures.MAX_PROVIDERS
    assert sum(one.live for one in found.values()) == len(live)
    assert sum(one.requests.used for one in found.values()) == sum(op.status_requests_used for op in live)
    text = metrics_http.rendered(Snapshot(at=NOW, by_provider=found), NOW)[1].decode()
    lines = [line for line in text.split("\n") if line.startswith("pollconsole_operations_live{")]
    assert len(lines) == len(found)


def test_requests_are_counted_by_what_came_of_them_and_by_lateness() -> None:
    def event(name: EventName, **fields: Any) -> AuditEvent:
        return AuditEvent(at=NOW.wall, event=name, planned_at=NOW.wall, **fields)

    at = Instant(NOW.wall + 700)
    counted = measures.count(
        Counted(),
        [
            event(EventName.SENT),
            event(EventName.SUBMITTED, text=HOSTILE),
            event(EventName.POLLED, decision="wait", sent_at=NOW.wall, http=200),
            event(EventName.POLLED, decision="succeed", sent_at=at, http=200),
            event(EventName.POLLED, decision="stop", sent_at=Instant(NOW.wall - 5)),
            event(EventName.FAULTED, http=503, sent_at=Instant(NOW.wall + 10**9)),
            event(EventName.FAULTED, http=429),
            event(EventName.FAULTED, fault="timeout"),
            event(EventName.FAULTED, fault=HOSTILE),
            event(EventName.ANSWER_LOST),
        ],
    )
    assert counted.answers == {
        "waiting": 1, "succeeded": 1, "stopped": 2, "http_5xx": 1, "rate_limited": 1, "timeout": 1, "answer_lost": 1,
    }  # fmt: skip
    assert (counted.late[0], counted.late[2], counted.late[-1]) == (2, 1, 1)
    assert HOSTILE not in str(counted)


def test_questions_are_told_by_reason_with_the_age_of_the_oldest() -> None:
    old = make_question("op-1", asked_at=Instant(NOW.wall - 60_000))
    found = measures.by_reason([make_question("op-2"), old])
    assert found == {"request_budget_exhausted": (2, old.asked_at)}
    text = metrics_http.rendered(Snapshot(at=NOW, questions=found), NOW)[1].decode()
    assert figures(text)['pollconsole_questions_oldest_seconds{reason="request_budget_exhausted"}'] == 60


def test_every_metric_stands_in_the_reference_and_no_other() -> None:
    reference = (Path(__file__).parents[2] / "docs" / "reference.md").read_text("utf-8")
    told = set(re.findall(r"`(pollconsole_[a-z_]+)`", reference))
    snapshot = Snapshot(at=NOW, beat_age_ms=1, by_status={"waiting": 1}, by_provider={"a": measures.Figures()})
    text = metrics_http.rendered(snapshot, NOW)[1].decode()
    assert set(re.findall(r"^# TYPE (\w+) ", text, re.MULTILINE)) == told


@pytest.mark.rule("O6")
def test_a_store_that_cannot_be_read_is_a_figure() -> None:
    before = Snapshot(at=NOW, beat_age_ms=1_000, by_status={"waiting": 3})
    after = measures.unreadable(before, NOW.after(5_000), "gone")
    assert (after.by_status, after.beat_age_ms, after.at) == ({"waiting": 3}, 6_000, NOW.after(5_000))
    assert why_ill(after, NOW.after(5_000)) == ("the store cannot be used",)


def test_a_client_that_says_nothing_keeps_nobody_waiting() -> None:
    with reserved_port() as port:
        server = metrics_http.MetricsServer("127.0.0.1", port, lambda: None, lambda: NOW)
        try:
            silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
            assert get(port, "/healthz")[0] == 503
            for one in silent:
                one.close()
        finally:
            server.close()


def test_the_listening_port_is_told_in_words_when_it_is_taken() -> None:
    with reserved_port() as port:
        server = metrics_http.MetricsServer("127.0.0.1", port, lambda: None, lambda: NOW)
        try:
            with pytest.raises(Refused, match=f"cannot listen on 127.0.0.1:{port}"):
                metrics_http.MetricsServer("127.0.0.1", port, lambda: None, lambda: NOW)
        finally:
            server.close()
