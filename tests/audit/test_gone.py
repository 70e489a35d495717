"""What ought to lie beside the links and does not: each alarm that sends to `audit verify` has its exit code there."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pollconsole.cli import entry
from pollcore.adapters.audit_safe import ANCHOR, FileSafe
from pollcore.assembly import open_core
from tests.audit.dying_clock import LateClock
from tests.audit.test_dying import laid_out

KEYS = "reading.key.audit"
Harm = Callable[[Path], None]


def verified(home: Path, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    code = entry.run(("audit", "verify", "--home", str(home), "--json", *more))
    return code, json.loads(capsys.readouterr().out)


def sql(home: Path, *statements: str) -> None:
    db = sqlite3.connect(home / "pollconsole.db")
    for statement in statements:
        db.execute(statement)
    db.commit()
    db.close()


def anchor_gone(home: Path) -> None:
    FileSafe(home / KEYS).delete(ANCHOR)


def anchor_overwritten(home: Path) -> None:
    FileSafe(home / KEYS).set(ANCHOR, "something of another program")


def keys_record_gone(home: Path) -> None:
    sql(home, "DELETE FROM document WHERE kind='audit' AND name='log'")


def all_documents_gone(home: Path) -> None:
    sql(home, "DELETE FROM document")


def keys_record_damaged(home: Path) -> None:
    sql(home, "UPDATE document SET value=x'00' WHERE kind='audit' AND name='log'")


def keys_record_of_another_log(home: Path) -> None:
    old = "substr(value, instr(value, 'log_id') + 9, 4)"
    sql(home, f"UPDATE document SET value=CAST(replace(CAST(value AS TEXT), {old}, 'AAAA') AS BLOB) "
        "WHERE kind='audit' AND name='log'")  # fmt: skip


def links_gone(home: Path) -> None:
    sql(home, "DROP TRIGGER audit_no_delete", "DELETE FROM audit")


def cut_damaged(home: Path) -> None:
    sql(home, "INSERT INTO document(kind, name, value) VALUES('audit', 'cut', x'7b')")


HARMS: list[tuple[Harm, int]] = [
    (anchor_gone, 24),
    (anchor_overwritten, 24),
    (keys_record_gone, 24),
    (all_documents_gone, 24),
    (keys_record_damaged, 20),
    (keys_record_of_another_log, 20),
    (links_gone, 24),
    (cut_damaged, 20),
]


@pytest.mark.rule("A3", "A4")
@pytest.mark.parametrize(("harm", "expected"), HARMS, ids=lambda x: getattr(x, "__name__", None))
async def test_what_stops_the_core_is_no_whole_log_for_the_verifier(
    harm: Harm, expected: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import asyncio

    home = await laid_out(tmp_path / "home", rotated=False)
    assert (await asyncio.to_thread(verified, home, capsys))[0] == 0
    harm(home)
    code, told = await asyncio.to_thread(verified, home, capsys)
    assert (code, told["exit_code"]) == (expected, expected), told
    assert told["fault_count"] >= 1
    assert told["faults"][0]["text"]


@pytest.mark.rule("A4")
async def test_a_copy_is_verified_by_its_store_and_a_home_that_never_had_an_anchor_is_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import asyncio

    home = await laid_out(tmp_path / "home", rotated=False)
    anchor_gone(home)
    assert (await asyncio.to_thread(verified, home, capsys, str(home / "pollconsole.db")))[0] == 0
    sql(home, "DELETE FROM document WHERE kind='audit' AND name='anchored'")
    assert (await asyncio.to_thread(verified, home, capsys))[0] == 0


@pytest.mark.rule("A3", "A4")
async def test_a_graver_fault_of_the_links_keeps_its_own_code_beside_a_lost_anchor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import asyncio

    home = await laid_out(tmp_path / "home", rotated=False)
    anchor_gone(home)
    sql(home, "DROP TRIGGER audit_no_update", "UPDATE audit SET blob=CAST(substr(blob, 1, 200) || x'00' || "
        "substr(blob, 202) AS BLOB) WHERE seq=(SELECT max(seq) - 2 FROM audit)")  # fmt: skip
    code, told = await asyncio.to_thread(verified, home, capsys)
    assert code == 20
    assert any("anchor" in fault["text"] for fault in told["faults"])


@pytest.mark.rule("A3", "A4")
async def test_after_a_lost_anchor_was_accepted_on_record_the_log_is_whole_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import asyncio

    home = await laid_out(tmp_path / "home", rotated=False)
    anchor_gone(home)
    async with open_core(home, kind="run", clock=LateClock()) as core:
        assert core.audit.state.alarm
    code = await asyncio.to_thread(entry.run, ("audit", "accept-loss", "--because", "new", "--home", str(home)))
    assert code == 0
    assert (await asyncio.to_thread(verified, home, capsys))[0] == 0
