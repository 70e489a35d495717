"""Damaged archive files, and a store's record of them edited: each is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pollcore.chain.findings import Verdict
from pollcore.facts import DAY, Refused
from tests.audit.test_archive import archive, old_life, proved, proved_file
from tests.controller.bank import DONE
from tests.controller.house import house

V = Verdict

DAMAGES: list[tuple[str, Callable[[Path], None]]] = [
    ("cut", lambda file: file.write_bytes(file.read_bytes()[:-200])),
    ("no end", lambda file: file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:-1]))),
    ("longer", lambda file: file.write_bytes(file.read_bytes() + b"x\n")),
    ("doubled", lambda file: file.write_bytes(_doubled(file.read_bytes()))),
]


def _doubled(raw: bytes) -> bytes:
    lines = raw.splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if b'"charge"' in line)
    return b"".join((*lines[:at], lines[at], *lines[at:]))


@pytest.mark.rule("A3", "A4")
@pytest.mark.parametrize(("name", "harm"), DAMAGES)
async def test_a_damaged_archive_is_told(name: str, harm: Callable[[Path], None], tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await old_life(h)
        file = Path(str((await archive(h)).file))
        harm(file)
        assert proved_file(h, file).verdict.exit_code in (20, 21, 22, 23)
        assert proved(h, file).verdict.exit_code in (20, 21, 22, 23)
        assert proved(h).verdict is V.INTACT


@pytest.mark.rule("A3", "A4")
async def test_every_flipped_byte_of_an_archive_is_told(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", DONE)
        await h.run()
        h.clock.jump(10 * DAY)
        file = Path(str((await archive(h)).file))
        raw = file.read_bytes()
        copy = tmp_path / "copy.jsonl"
        for at in range(0, len(raw), 3):
            copy.write_bytes(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :])
            try:
                code = proved_file(h, copy).verdict.exit_code
            except Refused:
                code = 2  # the head line
            assert code not in (0, 25), (at, raw[max(0, at - 20) : at + 20])


@pytest.mark.rule("A3", "A4")
@pytest.mark.parametrize(
    "edit",
    [
        "DELETE FROM document WHERE kind='audit' AND name='cut'",
        "UPDATE document SET value=CAST(replace(value, '\"seq\":', '\"seq\":1') AS BLOB) WHERE name='cut'",
        "UPDATE archive SET sha256=zeroblob(32)",
        "UPDATE archive SET signature=zeroblob(64)",
        "UPDATE archive SET hash=zeroblob(32)",
        "UPDATE archive SET last=last+1",
        "DELETE FROM archive",
        "DELETE FROM audit WHERE seq=(SELECT min(seq) FROM audit)",
    ],
)
async def test_what_the_store_says_of_its_archives_is_proved(edit: str, tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await old_life(h)
        await archive(h)
        assert proved(h).verdict is V.INTACT

        def meddled(turns: Any) -> None:
            for (name,) in turns.conn.execute("SELECT name FROM sqlite_master WHERE type='trigger'").fetchall():
                turns.conn.execute(f"DROP TRIGGER {name}")
            turns.conn.execute("PRAGMA foreign_keys=OFF")
            assert turns.conn.execute(edit).rowcount == 1

        await h.core.store._write(meddled)
        assert proved(h).verdict.exit_code in (20, 21), proved(h).faults
