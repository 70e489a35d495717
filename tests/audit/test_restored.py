"""Old copies put back, tails cut, bytes flipped in real stores: the exit code of `audit verify`, row by row."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pollconsole.cli import entry
from pollcore.adapters.audit_anchor import SEE
from pollcore.adapters.audit_chain import decode_state
from pollcore.adapters.audit_safe import ANCHOR, FileSafe
from pollcore.adapters.audit_verify import Wanted, verify_file, verify_store
from pollcore.adapters.store import connecting
from pollcore.assembly import open_core
from pollcore.chain.findings import Head, Verdict
from pollcore.facts import EventName, StoreUnusable
from tests.audit.dying_clock import LateClock
from tests.audit.test_dying import LIMIT_S, copied, laid_out

V = Verdict
KEYS = "reading.key.audit"
FLIPS = 300


def code(home: Path, *more: str) -> int:
    return entry.run(("audit", "verify", "--home", str(home), *more))


def report(home: Path, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    capsys.readouterr()
    code(home, "--json", *more)
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


async def lived_on(home: Path) -> None:
    """More events, signed and anchored."""
    async with open_core(home, kind="run", clock=LateClock()) as core:
        told = [event for _, event in await core.store.events() if event.event is EventName.SUBMITTED]
        await core.store.record(core.clock.now(), told)


@pytest.mark.rule("A3", "A4")
async def test_old_copies_of_database_keyring_and_both_as_the_table_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import asyncio

    old = await laid_out(tmp_path / "model", rotated=False)
    new = copied(old, tmp_path / "new")
    await lived_on(new)
    found = await asyncio.to_thread(report, new, capsys)
    assert (found["verdict"], found["confirmed_to"]) == ("intact", found["last_link"])
    kept = str(found["head"])

    def mixed(database: Path, keyring: Path) -> Path:
        home = copied(new, tmp_path / f"mixed-{database.parent.name}-{keyring.parent.name}")
        for name in ("pollconsole.db", "pollconsole.db-wal", "pollconsole.db-shm"):
            (home / name).unlink(missing_ok=True)
            if (database / name).exists():
                subprocess.run(["cp", "-a", str(database / name), str(home)], check=True, timeout=LIMIT_S)
        shutil.copy2(keyring / KEYS, home / KEYS)
        return home

    # (database, keyring) -> with the anchor, with a head that was kept elsewhere
    rows = [
        (old, new, 22, 22),  # the database alone
        (new, old, 0, 0),  # the keyring alone: the chain is ahead of its anchor, as after a crash
        (old, old, 0, 22),  # both
    ]
    for database, keyring, anchored, expected in rows:
        home = mixed(database, keyring)
        assert await asyncio.to_thread(code, home) == anchored, (database, keyring)
        assert await asyncio.to_thread(code, home, "--expect-head", kept) == expected, (database, keyring)
        async with open_core(home, kind="run", clock=LateClock()) as core:
            assert core.audit.state.alarm is (anchored == 22)
            assert anchored != 22 or SEE in str(core.audit.state.why)
    assert FileSafe(old / KEYS).get(ANCHOR) != FileSafe(new / KEYS).get(ANCHOR)


@pytest.mark.rule("A3")
async def test_the_last_k_links_of_a_store_cut_for_every_k_are_missed_by_the_anchor(tmp_path: Path) -> None:
    home = await laid_out(tmp_path / "model", rotated=True)
    whole = verify_store(home / "pollconsole.db", Wanted())
    assert whole.verdict is V.INTACT
    assert whole.head is not None
    head = Head(whole.last, whole.head, "the anchor")
    copy = str(copied(home, tmp_path / "cut") / "pollconsole.db")
    conn = connecting.connect(copy)
    conn.execute("DROP TRIGGER audit_no_delete")
    record = conn.execute("SELECT value FROM document WHERE kind='audit' AND name='log'").fetchone()[0]
    new_keys = decode_state(bytes(record)).since_seq
    assert 1 < new_keys < whole.last
    for left in range(whole.last - 1, -1, -1):
        conn.execute("DELETE FROM audit WHERE seq>?", (left,))
        assert verify_store(Path(copy), Wanted(heads=[head])).verdict is (V.TRUNCATED if left else V.MISSING), left
        conn.execute("DELETE FROM document WHERE kind='audit_note' AND name>?", (f"{left:020d}",))
        # without anchor and checkpoint nobody knows of them, and a tail is a tail; but the store's own record of the
        # keys in force knows the link that they came with
        known = (V.MISSING,) if not left else (V.TRUNCATED,) if left < new_keys else (V.INTACT, V.TAIL)
        assert verify_store(Path(copy), Wanted()).verdict in known, left
    conn.close()


@pytest.mark.slow
@pytest.mark.rule("A3", "O6")
async def test_a_byte_flipped_anywhere_in_the_file_is_told_if_it_touched_the_chain(tmp_path: Path) -> None:
    home = await laid_out(tmp_path / "model", rotated=True)
    raw_copy = tmp_path / "raw.bin"
    subprocess.run(["cp", str(home / "pollconsole.db"), str(raw_copy)], check=True, timeout=LIMIT_S)
    raw = raw_copy.read_bytes()
    chance, told = random.Random(7), 0
    whole = audit_rows(home / "pollconsole.db")
    for number in range(FLIPS):
        at = chance.randrange(100, len(raw))
        broken = tmp_path / f"flip-{number}.db"
        broken.write_bytes(raw[:at] + bytes([raw[at] ^ 1 << (at % 8)]) + raw[at + 1 :])
        try:
            verdict = verify_file(broken, Wanted()).verdict
            same = audit_rows(broken) == whole
        except (StoreUnusable, connecting.sqlite3.Error):
            verdict, same = V.ALTERED, False
        assert same or verdict not in (V.INTACT, V.TAIL), at
        told += verdict is not V.INTACT
        broken.unlink()
    assert told > 10


def audit_rows(path: Path) -> list[tuple[int, bytes, bytes]]:
    conn = connecting.connect(str(path), read_only=True)
    try:
        found: list[tuple[int, bytes, bytes]] = conn.execute(
            "SELECT seq, blob, hash FROM audit ORDER BY seq"
        ).fetchall()
        return found
    finally:
        conn.close()


@pytest.mark.rule("A3")
def test_a_long_verification_says_how_far_it_is_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from pollconsole.cli import audit
    from tests.audit.logs import Log

    log = Log()
    log.add(20_000)
    seen: list[int] = []
    from pollcore.chain.verify import Verifier

    assert Verifier(progress=seen.append).run(log.rows, log.notes).links == 20_002
    assert seen == sorted(seen)
    assert 3 <= len(seen) <= 6
    monkeypatch.setattr(audit, "PROGRESS_EVERY", 4_000)
    tell = audit._progress()
    for links in seen:
        tell(links)
    assert capsys.readouterr().err == ""  # no terminal: nothing
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    for links in seen:
        tell(links)
    assert "links verified" in capsys.readouterr().err
