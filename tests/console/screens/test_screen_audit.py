"""The audit on the screen: its state in words, a proof beside everything else, what a damaged or locked store says."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.audit.logs import Log
from tests.console.screens.conftest import RealCore
from tests.console.screens.fakes import FakeCore
from tests.console.screens.harness import LIMIT_S, QuickApp, console, screen_text, until

from pollconsole import bridge, proof_words
from pollconsole.core_thread import CoreThread
from pollconsole.draw import join
from pollconsole.draw import plain as draw_plain
from pollconsole.screens.audit import AuditScreen
from pollconsole.screens.audit_lines import chain_lines, verification_lines
from pollconsole.screens.live import LiveScreen
from pollconsole.screens.status_line import head_lines
from pollcore.adapters.audit_overview import MAX_TAIL, overview
from pollcore.adapters.keyring_store import MemoryBackend
from pollcore.chain.findings import Verdict
from pollcore.facts import CredentialUnavailable, Instant, StopDetail, StoreUnusable

MANY = 40_000
"""Links of a log that takes long enough to be cut short."""


async def opened(app: Any, pilot: Any) -> AuditScreen:
    await pilot.press("V")
    await until(pilot, lambda: isinstance(app.screen, AuditScreen) and app.screen.ready, "the audit opens")
    await until(pilot, lambda: app.screen.chain is not None or app.screen.trouble is not None, "its state is read")
    assert isinstance(app.screen, AuditScreen)
    return app.screen


def words_of(screen: AuditScreen) -> str:
    return join(screen.content())


@contextmanager
def changing(home: Path) -> Iterator[sqlite3.Connection]:
    """The store as whoever can write its file has it: the triggers are away meanwhile."""
    with closing(sqlite3.connect(home / "pollconsole.db", isolation_level=None)) as conn:
        triggers = conn.execute("SELECT name, sql FROM sqlite_master WHERE type='trigger'").fetchall()
        conn.execute("BEGIN")
        for name, _ in triggers:
            conn.execute(f'DROP TRIGGER "{name}"')
        yield conn
        for _, sql in triggers:
            conn.execute(sql)
        conn.execute("COMMIT")


def put_log(home: Path, count: int) -> None:
    """Put a log of *count* links in place of the home's own, with its last checkpoint."""
    log = Log()
    while len(log.rows) < count:
        log.add(2_000)
    log.note()
    with changing(home) as conn:
        conn.execute("DELETE FROM audit")
        conn.execute("DELETE FROM document WHERE kind='audit_note'")
        conn.executemany("INSERT INTO audit VALUES(?,?,?)", log.rows)
        conn.executemany(
            "INSERT INTO document VALUES('audit_note',?,?)",
            [(f"{seq:020d}", text.encode()) for seq, text in dict(log.notes).items()],
        )
        conn.execute("UPDATE document SET value=? WHERE kind='audit' AND name='log'", (log.state.encoded(),))


@pytest.mark.rule("A3", "A4")
async def test_an_anchored_home_says_so_and_its_chain_is_proved_in_plain_words(real: RealCore) -> None:
    async with console(real.runner, home=real.home, size=(100, 40)) as (app, pilot):
        screen = await opened(app, pilot)
        await until(pilot, lambda: "anchored" in words_of(screen), "it is anchored")
        told = words_of(screen)
        assert screen.chain is not None
        for said in (screen.chain.key, screen.chain.log_id, f"link {screen.chain.links:,}", "the keyring", "epochs"):
            assert str(said) in told
        assert screen.chain.head not in told
        await pilot.press("enter")
        assert screen.chain.head in words_of(screen)
        assert "pollconsole/" in words_of(screen).split("note")[1]
        await pilot.press(app.state.keymap.shown("verify"))
        await until(pilot, lambda: screen.verification is not None and not screen.verification.running, "it is proved")
        assert screen.verification is not None
        assert screen.verification.report is not None
        assert screen.verification.report["verdict"] in ("intact", "unsigned_tail")
        assert "exit code" in words_of(screen)
        assert re.search(r"link in (under a second|\d+ (s|min)), ", words_of(screen))


@pytest.mark.rule("A3")
async def test_a_log_that_was_put_in_another_ones_place_is_damage_and_a_changed_link_is_told_by_its_number(
    real: RealCore,
) -> None:
    await asyncio.to_thread(real_fill, real)
    put_log(real.home, 2_000)
    with changing(real.home) as conn:
        conn.execute("UPDATE audit SET blob = CAST(substr(blob, 1, length(blob) - 1) || x'00' AS BLOB) WHERE seq = 2")
    async with console(real.runner, home=real.home, size=(100, 40), read_only=True) as (app, pilot):
        screen = await opened(app, pilot)
        await pilot.press(app.state.keymap.shown("verify"))
        await until(pilot, lambda: screen.verification is not None and not screen.verification.running, "it is proved")
        await until(pilot, lambda: "DAMAGED" in words_of(screen), "the state is read")
        told = words_of(screen)
        assert "other log (exit code 26)" in told
        assert "altered at link 2" in told
        await until(pilot, lambda: "AUDIT DAMAGED" in status_of(app), "the status line says so")


def status_of(app: Any) -> str:
    """The first line of the table, wherever the operator is."""
    return draw_plain(head_lines(app.state, app.state.now(), 140)[0])


def real_fill(real: RealCore) -> None:
    """A few links, then the console is over."""

    async def nothing(core: Any) -> None:
        await core.prepare()

    real.read(nothing)


@pytest.mark.rule("A3", "V3")
async def test_a_long_proof_shows_its_progress_and_esc_ends_it_before_the_screen(
    real: RealCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[bridge.Verification.__module__], "BREATH_S", 0.3)
    await asyncio.to_thread(real_fill, real)
    put_log(real.home, MANY)
    async with console(real.runner, home=real.home, size=(100, 40), read_only=True) as (app, pilot):
        screen = await opened(app, pilot)
        await pilot.press(app.state.keymap.shown("verify"))
        await until(pilot, lambda: screen.verification is not None and screen.verification.links > 0, "it has begun")
        proof = screen.verification
        assert proof is not None
        assert proof.total == len_of(real.home)
        await pilot.press("escape")
        await until(pilot, lambda: not proof.running, "it ended")
        assert app.screen is screen
        assert proof.report is None
        assert "Nothing is known of the rest" in words_of(screen)
        await pilot.press("escape")
        assert isinstance(app.screen, LiveScreen)


def len_of(home: Path) -> int:
    with closing(sqlite3.connect(home / "pollconsole.db")) as conn:
        (count,) = conn.execute("SELECT count(*) FROM audit").fetchone()
        return int(count)


@pytest.mark.rule("V3")
async def test_leaving_the_screen_ends_its_proof(real: RealCore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[bridge.Verification.__module__], "BREATH_S", 0.3)
    await asyncio.to_thread(real_fill, real)
    put_log(real.home, MANY)
    async with console(real.runner, home=real.home, read_only=True) as (app, pilot):
        screen = await opened(app, pilot)
        await pilot.press(app.state.keymap.shown("verify"))
        await until(pilot, lambda: screen.verification is not None, "it has begun")
        proof = screen.verification
        assert proof is not None
        await pilot.press("M")
        await until(pilot, lambda: proof.ending and not proof.running, "it ended with its screen")


class LockedBackend(MemoryBackend):
    """A keyring that is locked once the test says so."""

    locked = False

    def get_password(self, *args: Any) -> Any:
        if self.locked:
            raise CredentialUnavailable("the keyring is locked", StopDetail.KEYRING_LOCKED)
        return super().get_password(*args)


@pytest.mark.rule("A4")
async def test_a_locked_keyring_is_told_on_the_status_line_and_with_its_meaning_on_the_screen(real: RealCore) -> None:
    await asyncio.to_thread(real_fill, real)
    backend = LockedBackend()
    backend.__dict__ |= real.backend.__dict__
    real.backend = backend
    backend.locked = True
    async with console(real.runner, home=real.home, size=(140, 40)) as (app, pilot):
        await until(pilot, lambda: "UNANCHORED: no new authority" in screen_text(app), "the status line says it")
        said = [message.text for message in app.state.messages]
        assert any("no new authority is given meanwhile" in text and "locked" in text for text in said)
        screen = await opened(app, pilot)
        told = words_of(screen)
        assert "UNANCHORED since" in told
        assert "No new authority is given; polls go on" in told
        await pilot.press("L")
        await until(pilot, lambda: "the audit is not anchored" in screen_text(app), "the log has it, too")


@pytest.mark.rule("A4")
@pytest.mark.parametrize(
    ("why", "alarm", "width", "said"),
    [
        (None, False, 80, None),
        ("the keyring is locked", False, 80, "UNANCHORED"),
        ("the keyring is locked", False, 120, "UNANCHORED: no new authority"),
        ("truncated", True, 80, "AUDIT DAMAGED"),
        ("truncated", True, 120, "AUDIT DAMAGED: nothing granted"),
    ],
)
async def test_the_status_line_says_what_the_audits_state_means(
    fake: FakeCore, why: str | None, alarm: bool, width: int, said: str | None
) -> None:
    fake.audit.state.why, fake.audit.state.alarm = why, alarm
    async with console(fake.runner, size=(width, 24)) as (app, pilot):
        await until(pilot, lambda: app.state.board.latest.beats, "the core beats")
        await until(pilot, lambda: said is None or said in screen_text(app).splitlines()[0], "it is said")
        if said is None:
            assert "UNANCHORED" not in screen_text(app)
        fake.audit.state.why, fake.audit.state.alarm = None, False
        await until(pilot, lambda: "UNANCHORED" not in screen_text(app).splitlines()[0], "it is over")


@pytest.mark.rule("A4", "K2")
async def test_keys_in_a_file_are_told_as_what_they_are(real: RealCore) -> None:
    key = real.home.parent / "keys" / "reading.key"
    key.parent.mkdir(mode=0o700)
    config = real.home / "config.toml"
    config.write_text(f'{config.read_text()}\n[audit]\nkey_file = "{key}"\n')
    async with console(real.runner, home=real.home, size=(100, 40)) as (app, pilot):
        screen = await opened(app, pilot)
        await until(pilot, lambda: "anchored" in words_of(screen), "it is anchored")
        assert "a key file: every program of this user can read it" in words_of(screen)


async def test_an_export_is_written_into_the_home_and_its_path_is_told(real: RealCore) -> None:
    async with console(real.runner, home=real.home, size=(140, 40)) as (app, pilot):
        await opened(app, pilot)
        await pilot.press("x")
        await until(pilot, lambda: any("links exported to" in each.text for each in app.state.messages), "exported")
        (made,) = (real.home / "exports").glob("audit-*.jsonl")
        assert made.stat().st_mode & 0o777 == 0o600
        assert str(made) in app.state.messages[-1].text


async def test_a_console_that_only_looks_exports_nothing_and_proves_all_the_same(real: RealCore) -> None:
    await asyncio.to_thread(real_fill, real)
    async with console(real.runner, home=real.home, size=(100, 40), read_only=True) as (app, pilot):
        screen = await opened(app, pilot)
        await pilot.press("x")
        assert "started to look" in screen_text(app)
        assert not (real.home / "exports").exists()
        await pilot.press(app.state.keymap.shown("verify"))
        await until(pilot, lambda: screen.verification is not None and screen.verification.report, "it is proved")


@pytest.mark.rule("O6")
async def test_a_damaged_store_is_told_and_the_screen_stays(real: RealCore, monkeypatch: pytest.MonkeyPatch) -> None:
    await asyncio.to_thread(real_fill, real)
    async with console(real.runner, home=real.home, size=(100, 40), read_only=True) as (app, pilot):
        screen = await opened(app, pilot)
        junk = real.home / "junk.db"
        junk.write_bytes(b"no database at all" * 400)
        core = real.core
        monkeypatch.setattr(type(core.home), "database", property(lambda _: junk))
        await pilot.press("r")
        await until(pilot, lambda: screen.trouble is not None, "it says so")
        assert "cannot be read" in words_of(screen)
        assert "junk.db" in words_of(screen)
        await pilot.press(app.state.keymap.shown("verify"))
        await until(pilot, lambda: screen.verification is not None and not screen.verification.running, "it ends")
        assert "exit code 20" in words_of(screen) or "not verified" in words_of(screen)
        await pilot.press("escape")
        assert isinstance(app.screen, LiveScreen)


@pytest.mark.rule("A3", "O6")
async def test_a_store_that_no_core_opens_is_proved_all_the_same(real: RealCore) -> None:
    await asyncio.to_thread(real_fill, real)
    put_log(real.home, 2_000)
    with changing(real.home) as conn:
        conn.execute("UPDATE audit SET blob = CAST(substr(blob, 1, length(blob) - 1) || x'00' AS BLOB) WHERE seq = 2")

    def never(job: Any) -> None:
        raise StoreUnusable("store damaged: put a backup in its place")

    app = QuickApp(CoreThread(never), home=real.home)
    app.state.link.start()
    async with app.run_test(size=(100, 40)) as pilot:
        screen = await opened(app, pilot)
        assert "not open" in words_of(screen)
        await pilot.press(app.state.keymap.shown("verify"))
        await until(pilot, lambda: screen.verification is not None and not screen.verification.running, "it is proved")
        assert "altered (exit code 20)" in words_of(screen)


@pytest.mark.rule("A3")
def test_every_verdict_has_plain_words_and_its_exit_code() -> None:
    assert {verdict.value for verdict in Verdict} == set(proof_words.PLAIN)
    for verdict in Verdict:
        told = proof_words.meaning({"verdict": verdict.value, "exit_code": verdict.exit_code})
        assert f"(exit code {verdict.exit_code}): " in told


def test_an_overview_counts_back_to_the_last_event_under_a_link_and_no_further_than_its_limit(real: RealCore) -> None:
    real_fill(real)
    real.fill()
    database = real.home / "pollconsole.db"
    seen = overview(database, 0)
    assert seen.anchored_at is None
    assert seen.links > 0
    assert overview(database, seen.links).anchored_at is not None
    put_log(real.home, MAX_TAIL + 2_000)
    assert overview(database, 1).anchored_at is None
    assert overview(database, 1).links > MAX_TAIL


@pytest.mark.rule("A3")
async def test_events_and_links_are_told_with_why_they_are_not_equally_many(fake: FakeCore) -> None:
    def told(events: int, before: int | None) -> str:
        chain = bridge.ChainState(begun=True, epoch_since=Instant(0), links=990, events=events, events_before=before)
        return " ".join(join(chain_lines(chain, app.state, whole=False)).split())

    async with console(fake.runner) as (app, _):
        assert "987 events sealed in 990 links: one each, 3 more hold keys" in told(987, 0)
        assert "before the chain began" not in told(987, 0)
        older = told(992, 9)
        assert "983 events sealed in 990 links: one each, 7 more hold keys" in older
        assert "9 events came before the chain began" in older
        assert "990 links; 987 events in the story; each event is sealed in a link" in told(987, None)


@pytest.mark.rule("A3")
def test_the_state_of_a_real_chain_says_what_it_holds(real: RealCore) -> None:
    real_fill(real)
    chain = real.read(bridge.chain_state)
    assert chain.events_before is not None
    assert chain.links - (chain.events - chain.events_before) >= 1


async def test_hostile_texts_in_the_chains_state_are_drawn_harmless(fake: FakeCore) -> None:
    from tests.console.seed import HOSTILE

    chain = bridge.ChainState(
        begun=True, alarm=HOSTILE, key=HOSTILE, log_id=HOSTILE, keys_in=HOSTILE, note=HOSTILE, links=3, anchored_to=1,
        signed_to=1, epoch_since=Instant(0),
    )  # fmt: skip
    async with console(fake.runner) as (app, _):
        lines = [each for line in chain_lines(chain, app.state, whole=True) for each, _ in line]
        assert all(each.isprintable() for each in lines)


async def test_a_proof_that_fails_inside_says_so_and_never_works_for_ever() -> None:
    proof = bridge.Verification(Path("/nowhere/at/all"), object(), "none", 5)
    async with asyncio.timeout(LIMIT_S):
        while proof.running:
            await asyncio.sleep(0.01)
    assert "could not be verified" in join(verification_lines(proof))
