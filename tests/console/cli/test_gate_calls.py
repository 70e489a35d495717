"""Approvals at the real command line: asked, shown, denied, ended; never granted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.console.cli.gate_home import ACTION_CONTRACT, document, run, with_core

from pollcore.assembly import Core
from pollcore.facts import BootMs, Instant, Session
from pollcore.ports import CredentialInfo, Turn, Write

CONTRACT = ACTION_CONTRACT.replace("URL", "http://127.0.0.1:9")


@pytest.fixture
def home(real_home: Path) -> Path:
    (real_home / "providers").mkdir(mode=0o700)
    (real_home / "providers" / "mine.toml").write_text(CONTRACT)
    return real_home


@pytest.mark.slow
@pytest.mark.rule("G5", "G7", "X7", "K4")
def test_a_call_that_waits_is_shown_whole_denied_by_a_command_and_never_approved_by_one(home: Path) -> None:
    document(run(home, "submit", "--provider", "mine", "--job-id", "j1", "--id", "op-1", "--json"))
    document(run(home, "run", "--until-idle", "--for", "50s", "--json"))
    shown = document(run(home, "show", "op-1", "--json"))
    assert (shown["status"], shown["status_requests_used"]) == ("awaiting_approval", 0)
    approval = shown["approval"]
    assert (approval["wanted"], approval["purpose"], approval["granted"]) == ("call_approval", "status", None)
    assert (approval["expires_at"], approval["seen_at"], approval["sessions"]) == (None, None, [])
    (once,) = [choice for choice in shown["escalation"]["choices"] if choice["kind"] == "approve_once"]
    assert once["call"] == approval["request_digest"]
    assert len(once["call"]) == 64
    text = run(home, "escalations").stdout
    assert "Path: /jobs/j1 (its query is masked)" in text
    assert "SIGNATURE" not in text + json.dumps(shown)
    assert run(home, "wait", "op-1", "--timeout", "1s").returncode == 10
    denied = document(run(home, "deny", "op-1", "--because", "nobody started it", "--json"))
    assert (denied["status"], denied["stop_reason"], denied["approval"]) == ("escalated", "approval_denied", None)
    story = run(home, "audit", "show", "op-1").stdout
    assert "denied call approval" in story


@pytest.mark.slow
@pytest.mark.rule("G5", "G6")
def test_a_session_is_listed_with_what_is_left_and_ended_by_a_command(home: Path) -> None:
    document(run(home, "submit", "--provider", "mine", "--job-id", "j1", "--id", "op-1", "--json"))

    async def furnish(core: Core) -> None:
        """A credential, a live run and its session, as a grant leaves them."""
        now = core.clock.now()
        info = CredentialInfo(name="key", kind="bearer", origins=("http://127.0.0.1:9",), created_at=now.wall)
        await core.credential_admin.meta.put(info, None)
        worker = core.controller()._worker
        await core.store.turn(Turn(now=now, owner=worker.owner, beat=worker))
        op = await core.store.operation("op-1")
        assert op is not None
        live = Session(
            session_id="ses-1", credential="key", owner=worker.owner, binding=info.binding, started_at=now.wall,
            until=Instant(now.wall + 3_600_000), boot_id=now.boot_id, until_boot=BootMs(now.boot + 3_600_000),
            calls=200, used=3, granted_by="ops", grant_id="grant-1",
        )  # fmt: skip
        await core.store.commit(now, (Write(after=op, fence_change=op.change, release_lease=False, session=live),))

    with_core(home, furnish)
    (view,) = document(run(home, "credential", "list", "--json"))["credentials"]
    (live,) = view["sessions"]
    assert (live["credential"], live["calls"], live["calls_left"], live["granted_by"]) == ("key", 200, 197, "ops")
    assert "197 of 200 calls left" in run(home, "credential", "list").stdout
    ended = document(run(home, "credential", "end-session", "key", "--because", "enough", "--json"))
    assert ended == {"credential": "key", "ended": 1}
    again = run(home, "credential", "end-session", "key", "--because", "enough")
    assert (again.returncode, again.stdout) == (0, "")
    assert "no session was live" in again.stderr
    (view,) = document(run(home, "credential", "list", "--json"))["credentials"]
    assert view["sessions"] == []
    assert "session ended" in run(home, "audit", "show").stdout
    unknown = run(home, "credential", "end-session", "kex", "--because", "x", "--json")
    assert unknown.returncode == 2
    assert "no credential kex; near: key" in json.loads(unknown.stdout)["error"]["message"]
