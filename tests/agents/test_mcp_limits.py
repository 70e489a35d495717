"""`pollconsole mcp` with a client that floods, never reads, sends too much or leaves, over a real subprocess."""

from __future__ import annotations

import json
import os
import select
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.console.real import LIMIT_S, PROGRAM, environment

pytest.importorskip("mcp")

from pollconsole.mcp_server import tools, wire

FLOOD = 5_000
STUCK_S = 3.0
HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
    "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}  # fmt: skip


def line(message: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


@contextmanager
def server(home: Path) -> Iterator[tuple[Any, Any, subprocess.Popen[bytes]]]:
    """Standard input and output of a server that was greeted."""
    process = subprocess.Popen(
        [*PROGRAM, "--home", str(home), "mcp"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment(), bufsize=0,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    out = os.fdopen(os.dup(process.stdout.fileno()), "rb")
    try:
        process.stdin.write(line(HELLO))
        assert json.loads(out.readline())["id"] == 0
        process.stdin.write(line({"method": "notifications/initialized"}))
        yield process.stdin, out, process
    finally:
        out.close()
        process.stdin.close()
        process.stdout.close()
        process.kill()
        process.wait(LIMIT_S)


def flooded(into: Any) -> int:
    """How many requests went in before nothing more was taken."""
    os.set_blocking(into.fileno(), False)
    for n in range(1, FLOOD):
        left = line({"id": n, "method": "tools/list"})
        while left:
            if not select.select([], [into], [], STUCK_S)[1]:
                return n
            left = left[into.write(left) or 0 :]
    return FLOOD


@pytest.mark.slow
@pytest.mark.rule("G5")
def test_a_client_that_never_reads_is_not_read_and_its_leaving_ends_the_server(home: Path) -> None:
    with server(home) as (into, _, process):
        assert flooded(into) < FLOOD
        into.close()
        assert process.wait(LIMIT_S) == 0


@pytest.mark.slow
@pytest.mark.rule("G5")
def test_a_client_that_reads_gets_every_answer_however_many_it_asks_for_at_once(home: Path) -> None:
    many = wire.MAX_UNANSWERED * 4
    asked = b"".join(line({"id": n, "method": "ping"}) for n in range(1, many + 1))
    with server(home) as (into, out, process):
        writer = threading.Thread(target=lambda: os.write(into.fileno(), asked), daemon=True)
        writer.start()
        assert sorted(json.loads(out.readline())["id"] for _ in range(many)) == list(range(1, many + 1))
        writer.join(LIMIT_S)
        into.close()
        assert process.wait(LIMIT_S) == 0


@pytest.mark.slow
@pytest.mark.rule("G5")
def test_requests_that_were_taken_back_make_room_for_others(home: Path) -> None:
    wait = {"name": "wait_for_operation", "arguments": {"operation_id": "mine", "timeout_s": 300}}
    made = {"name": "submit_operation", "arguments": {"provider": "lab", "job_id": "j", "id": "mine"}}
    with server(home) as (into, out, _):
        into.write(line({"id": "made", "method": "tools/call", "params": made}))
        assert json.loads(out.readline())["result"]["isError"] is False
        for n in range(1, wire.MAX_UNANSWERED * 2):
            into.write(line({"id": n, "method": "tools/call", "params": wait}))
            into.write(line({"method": "notifications/cancelled", "params": {"requestId": n}}))
        into.write(line({"id": "last", "method": "ping"}))
        while json.loads(out.readline()).get("id") != "last":
            pass
    assert wire.MAX_UNANSWERED > tools.MAX_WAITS


@pytest.mark.slow
@pytest.mark.rule("G5", "K4")
def test_what_is_too_long_or_unknown_is_answered_short_and_harmless(home: Path) -> None:
    with server(home) as (into, out, _):
        into.write(line({"id": 1, "method": "no/\x1b[31m" + "x" * 50_000}))
        answer = json.loads(out.readline())
        assert (answer["id"], answer["error"]["code"]) == (1, -32601)
        assert len(answer["error"]["data"]) <= wire.MAX_NAMED
        assert answer["error"]["data"].isprintable()
        threading.Thread(target=into.write, args=(b"x" * wire.MAX_LINE * 8 + b"\n",), daemon=True).start()
        answer = json.loads(out.readline())
        assert (answer["id"], str(wire.MAX_LINE) in answer["error"]["message"]) == (None, True)
    with server(home) as (into, out, _):
        into.write(line({"id": "i" * (wire.MAX_ID + 1), "method": "ping"}))
        answer = json.loads(out.readline())
        assert (answer["id"], str(wire.MAX_ID) in answer["error"]["message"]) == (None, True)
        into.write(line({"id": 2, "method": "ping"}))
        assert json.loads(out.readline())["id"] == 2
