"""The attack table, rows of the store: what an edit of a row leaves behind, and by what it is told."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from pollconsole.bridge.contrary import LOOKED_AT, told
from pollconsole.bridge.health import doctor_facts
from pollconsole.bridge.proof import compare_story
from pollcore.adapters.store import schema
from pollcore.assembly import open_core
from pollcore.facts import MINUTE, ChoiceKind, StoreUnusable
from tests.controller.bank import DONE, LOST, RUNNING, refuses, says
from tests.controller.house import House, house
from tests.controller.parts import Keyring

SHORT = ("max_status_requests = 12", "max_status_requests = 2")
UNGUARDED = tuple(
    f"DROP TRIGGER {name}" for name in ("event_no_update", "event_no_delete", "audit_no_update", "audit_no_delete")
)


async def lives(h: House) -> None:
    """Every kind of stop, decisions of every kind, one success, two questions that stay open."""
    await h.submit("job-1", RUNNING, RUNNING, RUNNING, DONE)  # spends its budget, is extended
    await h.submit("job-2", refuses(429, {"retry-after": "30"}), DONE)
    await h.submit("job-3", says("failed"))
    await h.submit("job-4", LOST, DONE)
    await h.submit("job-5", says("strange"), says("strange"), DONE)
    await h.submit("job-6", refuses(401))
    await h.submit("job-8", says("paused"))
    await h.submit("job-9", RUNNING, DONE)
    await h.core.actions.lower("op-job-9", ChoiceKind.HOLD, "later", "me")
    await h.run()
    h.clock.jump(3 * MINUTE)
    await h.choose(ChoiceKind.EXTEND, "op-job-1")
    await h.choose(ChoiceKind.CHECK_ONCE, "op-job-5")
    await h.core.actions.lower("op-job-6", ChoiceKind.CLOSE, "not ours", "me")
    await h.core.actions.lower("op-job-8", ChoiceKind.HOLD, "later", "me")
    await h.run()
    h.bank.cancel_answer = refuses(202)
    await h.choose(ChoiceKind.CANCEL_AT_PROVIDER, "op-job-8")
    await h.run()


def edited(path: Path, *statements: str) -> None:
    """By a foreign hand, with all guards put back as they were."""
    db = sqlite3.connect(path / "pollconsole.db", timeout=30)
    for statement in (*UNGUARDED, *statements):
        db.execute(statement)
    for name, statement in schema.TRIGGERS.items():
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name=?", (name,)).fetchone():
            db.execute(statement)
    db.commit()
    db.close()


async def found(core: Any) -> tuple[list[str], list[str]]:
    """What `doctor` calls wrong of the records, and what `audit verify --with-key` says."""
    facts = await doctor_facts(core)
    by_doctor = [fact["text"] for name, fact in facts.items() if name.startswith("records ")]
    story = await compare_story(core)
    assert len(story["differing"]) == story["differing_count"]
    return by_doctor, list(story["differing"])


@pytest.mark.rule("A5", "E7", "G4")
async def test_honest_lives_contradict_nothing(tmp_path: Path) -> None:
    async with house(tmp_path, SHORT) as h:
        await lives(h)
        assert await found(h.core) == ([], [])
        assert await told(h.core, limit=LOOKED_AT) == []


BOTH = (True, True)
WITH_KEY = (False, True)
NOBODY = (False, False)
TABLE: list[tuple[str, tuple[str, ...], tuple[bool, bool], str]] = [
    # name, what is edited, told by (doctor, audit verify --with-key), in which words
    ("budget raised", ("UPDATE operation SET max_status_requests=5000 WHERE id='op-job-5'",), BOTH, "allows 5000"),
    ("deadline moved", ("UPDATE operation SET deadline_at=deadline_at+31536000000",), BOTH, "the record's deadline is"),
    ("called a success", ("UPDATE operation SET status='succeeded' WHERE id='op-job-3'",), BOTH, "says succeeded, and"),
    ("called closed", ("UPDATE operation SET status='closed' WHERE id='op-job-2'",), BOTH, "says closed, and no event"),
    ("made to wait again", (
        "UPDATE operation SET status='waiting', next_poll_at=0 WHERE id='op-job-5'",), BOTH, "its last event stopped"),
    ("questions decided", (
        "UPDATE escalation SET operator='nobody', decision='close', decided_at=asked_at WHERE decided_at IS NULL",),
     BOTH, "no event tells that"),
    ("questions removed", (
        "DELETE FROM escalation WHERE decided_at IS NULL",), BOTH, "no questions are open"),
    ("grants removed", ('DELETE FROM "grant"',), BOTH, "grants were given by its events, 0 are kept"),
    ("a grant edited", (
        "UPDATE \"grant\" SET body=replace(body, '\"checks\":4', '\"checks\":40')",), WITH_KEY, "something else than"),
    ("a grant forged", (
        "INSERT INTO \"grant\" SELECT 'grant-forged', operation, 'esc-x', version, granted_at + 1, "
        "replace(body, grant_id, 'grant-forged') FROM \"grant\" LIMIT 1",), BOTH, "grant-forged"),
    ("a grant forged with its event", (
        "INSERT INTO \"grant\" SELECT 'grant-forged', operation, 'esc-x', version, granted_at, "
        "replace(body, grant_id, 'grant-forged') FROM \"grant\" LIMIT 1",), WITH_KEY, "never given"),
    ("contract text", ("UPDATE contract SET text=text || ' '",), BOTH, "not the one of its digest"),
    ("contract settings", ("UPDATE contract SET instance='{\"allow_http\":true}'",), BOTH, "not the one of its digest"),
    ("a foreign table", ("CREATE TABLE evil(x)",), BOTH, "table evil: not made by"),
    ("a foreign view", ("CREATE VIEW evil AS SELECT * FROM operation",), BOTH, "view evil: not made by"),
    ("a foreign index", ("CREATE INDEX evil ON operation(status)",), BOTH, "index evil"),
    ("a guard of questions", ("DROP INDEX escalation_open",), BOTH, "index escalation_open: is missing"),
    ("another guard of questions", (
        "DROP INDEX escalation_open", "CREATE INDEX escalation_open ON escalation(operation)"), BOTH, "open: altered"),
    ("a success' event removed", (
        "UPDATE event SET decision='wait' WHERE decision='succeed'",), BOTH, "says something else|says succeeded"),
    ("record and event alike", (
        "UPDATE operation SET max_status_requests=5000 WHERE id='op-job-5'",
        "UPDATE event SET max_requests=5000 WHERE operation=(SELECT op FROM operation WHERE id='op-job-5') "
        "AND max_requests IS NOT NULL"), WITH_KEY, "says something else"),
    # what cannot be told, here and in `audit limits`
    ("another caller", ("UPDATE submission SET submitted=replace(submitted, 'acct', 'accu')",), NOBODY, ""),
    ("when it is asked next", ("UPDATE operation SET next_poll_at=next_poll_at+1, due_boot=due_boot+1",), NOBODY, ""),
    ("which credential", ("UPDATE operation SET credential='other' WHERE id='op-job-5'",), NOBODY, ""),
]  # fmt: skip


@pytest.mark.rule("A3", "A5", "E7", "G4", "S8")
@pytest.mark.parametrize(("name", "statements", "by", "words"), TABLE, ids=[row[0] for row in TABLE])
async def test_each_edited_row_is_told_by_whom_the_table_names(
    name: str, statements: tuple[str, ...], by: tuple[bool, bool], words: str, tmp_path: Path
) -> None:
    async with house(tmp_path, SHORT) as h:
        await lives(h)
        edited(h.home, *statements)
        doctor, with_key = await found(h.core)
        assert (bool(doctor), bool(with_key)) == by, (name, doctor, with_key)
        lines = doctor if by[0] else with_key
        assert not words or any(word in line for word in words.split("|") for line in lines), lines


@pytest.mark.rule("O6", "B3")
@pytest.mark.parametrize(
    "trigger",
    [
        "CREATE TRIGGER evil AFTER UPDATE ON operation BEGIN UPDATE operation SET completed_polls=0; END",
        "CREATE TRIGGER evil AFTER INSERT ON touched BEGIN DELETE FROM denial; END",
    ],
)
async def test_a_store_with_a_foreign_trigger_is_not_opened(trigger: str, tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING)
    edited(h.home, trigger)
    with pytest.raises(StoreUnusable, match="triggers evil are not of this program"):
        async with open_core(h.home, kind="cli", backend=Keyring()):
            pass
