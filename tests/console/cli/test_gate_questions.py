"""A looser mode and the first use of a contract at the real command line: asked, listed, rejected, never granted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.console.cli.gate_home import LIMIT_S, document, run, with_core

from pollcore.assembly import Core
from pollcore.facts import ChoiceKind, CredentialMode, Operator
from pollcore.ports import CredentialInfo

CONTRACT = """
schema = 1
name = "mine"
origins = ["http://127.0.0.1:9"]
[credential]
kind = "bearer"
optional = true
[status]
url = "http://127.0.0.1:9/jobs/{job_id}"
[state]
value = "body.status"
[states]
waiting = ["running"]
succeeded = ["succeeded"]
[limits]
deadline_basis = "decide-by: the hour"
[limits.default]
deadline = "40m"
max_status_requests = 12
[limits.max]
deadline = "8h"
max_status_requests = 200
"""


@pytest.fixture
def home(real_home: Path) -> Path:
    """A home with the contract `mine`, which says nothing of itself, and a credential `key` in mode per_call."""
    (real_home / "providers").mkdir(mode=0o700)
    (real_home / "providers" / "mine.toml").write_text(CONTRACT)

    async def furnish(core: Core) -> None:
        info = CredentialInfo(
            name="key", kind="bearer", origins=("http://127.0.0.1:9",), mode=CredentialMode.PER_CALL,
            created_at=core.clock.now().wall,
        )  # fmt: skip
        await core.credential_admin.meta.put(info, None)

    with_core(real_home, furnish)
    return real_home


def mode(home: Path) -> str:
    (view,) = document(run(home, "credential", "list", "--json"))["credentials"]
    return str(view["mode"])


@pytest.mark.rule("G2", "G5", "E1")
def test_a_looser_mode_is_asked_for_listed_and_rejected_and_never_given(home: Path) -> None:
    done = run(home, "credential", "mode", "key", "standing", "--because", "the nightly batch", "--caller", "batch-7")
    assert done.returncode == 0
    assert "an operator decides in the console" in done.stderr
    again = document(run(home, "credential", "mode", "key", "standing", "--json"))
    (view,) = document(run(home, "escalations", "--json"))["escalations"]
    assert again["asked"]["id"] == view["id"]
    assert (view["reason"], view["operation_id"], view["credential"]) == ("mode_change", None, "key")
    assert [choice["kind"] for choice in view["choices"]] == ["approve", "reject", "inspect", "close"]
    assert view["asked_by"].endswith("caller batch-7")
    assert "Mode: per_call -> standing" in view["card"]
    text = run(home, "escalations").stdout
    assert text.startswith("External job needs a decision\nOperation: none, the question belongs to a credential")
    assert "Stopped because: mode_change" in text
    assert mode(home) == "per_call"
    rejected = document(run(home, "reject", view["id"], "--because", "not for this one", "--json"))
    assert (rejected["decision"], rejected["credential"]) == ("reject", "key")
    assert document(run(home, "escalations", "--json")) == {"escalations": []}
    assert mode(home) == "per_call"
    refused = run(home, "reject", view["id"], "--because", "again", "--json")
    assert (refused.returncode, json.loads(refused.stdout)["error"]["code"]) == (2, "no_question")


@pytest.mark.rule("V4", "G4")
def test_a_question_about_a_credential_is_told_whole_in_lines_of_a_home_without_operations(home: Path) -> None:
    run(home, "credential", "mode", "key", "standing", "--because", "the nightly batch", "--caller", "batch-7")
    told = run(home, "--plain", "--once").stdout
    assert told.startswith("0 live operations.")
    assert "Card 1, credential key, asked " in told
    for line in ("Stopped because: mode_change", "Mode: per_call -> standing", "Because: the nightly batch"):
        assert line in told
    assert "No open question." not in told


@pytest.mark.rule("G2", "G6")
def test_towards_per_call_a_mode_changes_at_once(home: Path) -> None:
    done = document(run(home, "credential", "mode", "key", "per_call", "--json"))
    assert (done["asked"], done["credentials"][0]["mode"]) == (None, "per_call")
    assert document(run(home, "escalations", "--json")) == {"escalations": []}


@pytest.mark.rule("X7", "E1", "G5")
def test_a_first_use_is_stored_listed_waited_for_with_10_and_told_by_provider_list(home: Path) -> None:
    done = run(home, "submit", "--provider", "mine", "--job-id", "j1", "--id", "op-j1", "--json")
    view = document(done)
    assert (view["status"], view["status_requests_used"]) == ("awaiting_approval", 0)
    assert any("an operator decides once" in line for line in view["warnings"])
    assert run(home, "wait", "op-j1", "--timeout", "0s").returncode == 10
    (asked,) = document(run(home, "escalations", "--json"))["escalations"]
    assert (asked["reason"], asked["operation_id"]) == ("first_use", "op-j1")
    assert "Declared: nothing: the contract does not say that asking is read-only" in asked["card"]
    mine = next(p for p in document(run(home, "provider", "list", "--json"))["providers"] if p["name"] == "mine")
    assert (mine["marks"]["first_use"], mine["marks"]["seen"], mine["marks"]["tested_live"]) == (
        "undecided",
        False,
        None,
    )

    async def decide(core: Core) -> None:
        shown = await core.actions.card("op-j1")
        choice = next(c for c in shown.choices if c.kind is ChoiceKind.APPROVE and "action" in c.label)
        operator = Operator("ann", "desk", "pty")
        await core.actions.decide("op-j1", asked["id"], choice.key, shown.digest, {"kind": "test"}, operator)
        await core.actions.contract_seen(shown.operation.contract_digest)

    with_core(home, decide)
    found = document(run(home, "provider", "show", "mine", "--json"))
    assert (found["marks"]["first_use"], found["marks"]["seen"]) == ("action", True)
    assert found["marks"]["decided_by"] == "ann@desk (pty)"
    assert "action" in run(home, "provider", "list").stdout
    later = document(run(home, "submit", "--provider", "mine", "--job-id", "j2", "--json"))
    assert later["status"] == "waiting"


@pytest.mark.rule("X7", "G5")
def test_a_rejected_first_use_closes_its_operation_by_either_id(home: Path) -> None:
    for number, by_question in enumerate((False, True)):
        op = f"op-{number}"
        run(home, "submit", "--provider", "mine", "--job-id", op, "--id", op)
        (asked,) = document(run(home, "escalations", "--json"))["escalations"]
        name = asked["id"] if by_question else op
        assert document(run(home, "reject", name, "--because", "not ours", "--json"))["status"] == "closed"
        assert run(home, "wait", op, "--timeout", "0s").returncode == 14


@pytest.mark.rule("X7", "G5")
def test_providers_are_listed_where_the_store_cannot_be_read(home: Path) -> None:
    spoil = "import sys, pathlib; pathlib.Path(sys.argv[1]).write_bytes(b'no database at all' * 100)"
    subprocess.run([sys.executable, "-c", spoil, str(home / "pollconsole.db")], check=True, timeout=LIMIT_S)
    done = run(home, "provider", "list", "--json")
    mine = next(p for p in document(done)["providers"] if p["name"] == "mine")
    assert (mine["marks"]["first_use"], mine["marks"]["seen"]) == (None, None)
    assert "is not known" in done.stderr
