"""The hand-over: open cards by cause, decisions with names, what ends soon, holds, pauses, core and audit."""

from __future__ import annotations

from typing import Any

import pytest

from pollconsole.cli import takeover
from pollconsole.safe import safe
from tests.console.cli.conftest import HOSTILE
from tests.outside.world import World, until

pytestmark = pytest.mark.slow


@pytest.mark.rule("V5", "A5", "O8", "E10")
def test_the_next_operator_is_told_what_is_open_and_who_did_what(world: World) -> None:
    world.submit("op-soon", "30m")
    world.submit("op-long", "3h")
    for name in ("op-a", "op-b"):
        world.state(name, "nobody-knows")
        world.submit(name)
    world.state("op-f", "failed")
    world.submit("op-f")
    with world.running():
        until(lambda: len(world.json("escalations")["escalations"]) == 3)
        world.call("hold", "op-long", "--because", "the plant stands still", "--caller", "nightly")
        world.call("close", "op-f", "--because", "nobody wants it")
        world.call("pause", "--provider", "lab", "--until", "1m")
        told = world.json("handover", "--since", "1h")["handover"]
        text = world.call("handover")
    assert told["core"]["runs"] is True
    assert [one["kind"] for one in told["core"]["running"]] == ["run"]
    assert [(one["reason"], one["count"]) for one in told["open_cards"] if one["reason"] == "unknown_state"] == [
        ("unknown_state", 2)
    ]
    # what stands still for an answer ends as well
    assert {one["operation_id"] for one in told["ends_soon"]} == {"op-soon", "op-a", "op-b"}
    assert all(one["ends_at"] for one in told["open_cards"] if one["reason"] == "unknown_state")
    assert [one["operation_id"] for one in told["held"]] == ["op-long"]
    assert [one["provider"] for one in told["paused"]] == ["lab"]
    by = {(one["event"], one["operation_id"]): one for one in told["decided"]}
    assert "nobody wants it" in str(by["closed", "op-f"]["text"])
    assert "caller nightly" in str(by["held", "op-long"])
    assert not any(one["granted"] for one in told["decided"])
    assert told["audit"]["links"] > 0
    assert len(told["audit"]["head"]) == 64
    assert told["sessions"] == []
    for part in (
        "unknown_state, 2 operations of one cause",
        "op-soon",
        "op-long",
        "lab: until",
        "anchored",
        "op-f, by",
    ):
        assert part in text
    later = world.call("handover", "--since", "1h")
    assert "nothing is polled" in later
    assert world.json("handover")["handover"]["core"]["runs"] is False


def test_what_others_wrote_is_made_harmless() -> None:
    row = dict.fromkeys(("operation_id", "provider", "account", "label"), HOSTILE)
    view: dict[str, Any] = {
        "at": "t", "since": "t", "core": {"runs": True, "silent_ms": 1, "running": [
            {"kind": "run", "pid": 1, "host": HOSTILE, "started_at": "t"}]},
        "operations": {"waiting": 1}, "open_cards_count": 1, "ends_soon_count": 1, "held_count": 1, "decided_more": 3,
        "open_cards": [{**row, "reason": "unknown_state", "detail": None, "count": 2, "waiting_ms": 1,
                        "expires_at": "t", "ends_at": "t", "passed": False, "seen": False, "credential": None}],
        "ends_soon": [{**row, "status": "waiting", "left_ms": 1, "requests_left": 1, "deadline_at": "t"}],
        "held": [{**row, "hold_until": None}],
        "paused": [{"provider": HOSTILE, "account": HOSTILE, "until": "t", "by": HOSTILE}],
        "sessions": [{"credential": HOSTILE, "run": HOSTILE, "until": "t", "calls": 2, "calls_left": 1}],
        "audit": {"begun": True, "links": 1, "head": "00", "anchored": False, "alarm": None, "why": HOSTILE},
        "decided": [{"at": "t", "event": "granted", "decision": "extend", "detail": HOSTILE, "operation_id": HOSTILE,
                     "operator": HOSTILE, "caller": None, "text": HOSTILE}],
    }  # fmt: skip
    lines = list(takeover.page(view))
    assert all(line.isprintable() for line in lines)
    assert any(f"granted {safe(HOSTILE)}, {safe(HOSTILE)}, by" in line for line in lines)
    gone: dict[str, Any] = {"runs": False, "silent_ms": None, "running": []}
    assert "nothing is polled" in "\n".join(takeover.page({**view, "core": gone}))
