"""Forgers who know the format: hashes need no key, so links are re-hashed; what they may not say is told."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from hypothesis import given
from hypothesis import strategies as st

from pollcore.adapters.audit_safe import ANCHOR
from pollcore.chain import layout
from pollcore.chain.findings import Verdict
from pollcore.chain.layout import Header, Kind
from pollcore.chain.notes import note_text
from pollcore.chain.sealing import RowKeys, pad, unpad
from pollcore.facts import ChoiceKind, EventName, SealedUnreadable
from tests.audit.logs import Log
from tests.audit.test_home import lock, proved
from tests.controller.bank import DONE, RUNNING
from tests.controller.house import KEYS, OPERATOR, House, house

V = Verdict


def made() -> Log:
    """12 links, a checkpoint over the last."""
    log = Log()
    log.add(10)
    log.note()
    assert len(log.rows) == 12
    return log


def rehash(log: Log, first: int) -> None:
    """Give every link from *first* on the hash that its bytes now have."""
    head = log.rows[first - 2][2]
    for at in range(first - 1, len(log.rows)):
        seq, blob, _ = log.rows[at]
        head = layout.link_hash(blob, head)
        log.rows[at] = (seq, blob, head)


def put(blob: bytes, at: int, new: bytes) -> bytes:
    return blob[:at] + new + blob[at + len(new) :]


@pytest.mark.rule("A3", "A4")
@pytest.mark.parametrize("seq", range(3, 13))
def test_a_changed_link_with_all_hashes_made_anew_is_found_by_the_checkpoint(seq: int) -> None:
    log = made()
    log.change(seq, lambda blob: put(blob, 200, b"forged"))
    rehash(log, seq)
    report = log.verify()
    assert report.verdict is V.ALTERED
    assert [fault.seq for fault in report.faults] == [12]
    assert "names another hash" in report.faults[0].text


SAYS: list[tuple[str, Callable[[bytes], bytes], V]] = [
    ("a wrong length", lambda blob: put(blob, 118, (7).to_bytes(4, "big")), V.ALTERED),
    ("a longer content", lambda blob: put(blob, 118, (len(blob) - 121).to_bytes(4, "big")) + b"x", V.ALTERED),
    ("an unknown run", lambda blob: put(blob, 53, os.urandom(16)), V.ALTERED),
    ("an epoch to come", lambda blob: put(blob, 49, (1).to_bytes(4, "big")), V.ALTERED),
    ("an unknown kind", lambda blob: put(blob, 69, b"\x09"), V.ALTERED),
    ("a second beginning", lambda blob: put(blob, 69, b"\x02"), V.ALTERED),
    ("a repair of nothing", lambda blob: put(blob, 69, b"\x06"), V.ALTERED),
    ("another layout", lambda blob: put(blob, 0, b"\x02"), V.ALTERED),
    ("another number", lambda blob: put(blob, 41, (99).to_bytes(8, "big")), V.REORDERED),
    ("another log", lambda blob: put(blob, 25, bytes(16)), V.OTHER_LOG),
]


@pytest.mark.rule("A3")
@pytest.mark.parametrize(("what", "forge", "verdict"), SAYS, ids=[what for what, _, _ in SAYS])
def test_a_link_in_the_tail_that_says_what_it_may_not_is_no_mere_tail(
    what: str, forge: Callable[[bytes], bytes], verdict: V
) -> None:
    log = made()
    log.add(5)
    assert log.verify().verdict is V.TAIL
    log.change(15, forge)
    rehash(log, 15)
    assert log.verify().verdict in ((V.ALTERED,) if verdict is V.ALTERED else (verdict, V.ALTERED)), what


@pytest.mark.rule("A4")
def test_a_link_of_an_epoch_that_is_over_is_told() -> None:
    log = made()
    old = log.chain
    state = log.state
    log.rotate()
    log.add(2)
    log.note()
    log.state = state
    fresh = log.writer(signs=False)
    del old
    log.add(2, fresh)
    report = log.verify()
    assert report.verdict is V.ALTERED
    assert any("of epoch 0; the keys of epoch 1" in fault.text for fault in report.faults)


@pytest.mark.rule("A4")
def test_a_checkpoint_that_names_another_epoch_than_its_links_does_not_count() -> None:
    log = made()
    seq, _, head = log.rows[-1]
    log.notes[-1] = (seq, note_text(log.log_id, seq, head, 7, log.public, log.signing[0].sign))
    assert log.verify().verdict is V.ALTERED


@pytest.mark.rule("A3")
def test_sealed_content_opens_by_the_words_of_the_format_alone() -> None:
    key, header, before = os.urandom(32), os.urandom(81), os.urandom(32)
    commitment, body = RowKeys(key).seal(header, before, b'{"at":1}')
    okm = HKDFExpand(hashes.SHA256(), 64, b"row\x00" + header).derive(key)
    assert commitment == okm[32:]
    plain = AESGCM(okm[:32]).decrypt(bytes(12), body, header + commitment + before)
    assert plain == (8).to_bytes(4, "big") + b'{"at":1}' + bytes(244)
    blob = layout.assemble(header, commitment, body)
    assert RowKeys(key).open(blob, before) == b'{"at":1}'
    for wrong, prev in ((RowKeys(os.urandom(32)), before), (RowKeys(key), os.urandom(32))):
        with pytest.raises(SealedUnreadable):
            wrong.open(blob, prev)


@pytest.mark.rule("A3")
@given(st.binary(max_size=1_500))
def test_padding_tells_lengths_in_steps_and_comes_off_in_one_way(plain: bytes) -> None:
    padded = pad(plain)
    assert len(padded) % 256 == 0
    assert unpad(padded) == plain
    with pytest.raises(ValueError):
        unpad(padded + bytes(256))


@pytest.mark.rule("A3")
@given(st.binary(min_size=16, max_size=16), st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1), st.sampled_from(Kind))
def test_a_header_is_read_as_it_was_written(raw: bytes, seq: int, epoch: int, kind: Kind) -> None:
    header = Header(raw, seq, epoch, raw[::-1], kind, raw)
    packed = layout.pack(header)
    assert len(packed) == layout.HEADER
    assert layout.header_of(layout.assemble(packed, layout.NO_COMMITMENT, b"")) == header


async def forged_last(h: House) -> None:
    def change(turns: Any) -> None:
        from pollcore.adapters.store import schema

        turns.conn.execute("DROP TRIGGER audit_no_update")
        changed = "CAST(substr(blob, 1, 150) || x'00' || substr(blob, 152) AS BLOB)"
        turns.conn.execute(f"UPDATE audit SET blob = {changed} WHERE seq = (SELECT max(seq) FROM audit)")
        turns.conn.execute(schema.TRIGGERS["audit_no_update"])

    await h.core.store._write(change)


@pytest.mark.rule("A4")
async def test_a_last_link_that_was_changed_is_an_alarm_at_the_next_start(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING, DONE)
        await forged_last(h)
        h.core._audit._begun = False
    async with h.open() as core:
        assert core.audit.state.alarm
        assert "altered" in str(core.audit.state.why)
    assert proved(h).verdict is V.ALTERED


@pytest.mark.rule("A4")
async def test_an_anchor_that_knows_another_link_is_an_alarm(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", DONE)
        await h.run()
    service = h.core.vault.service
    words = str(h.keyring.get_password(service, ANCHOR)).split()
    h.keyring.set_password(service, ANCHOR, " ".join([*words[:4], "0" * 64]))
    async with h.open() as core:
        assert "altered" in str(core.audit.state.why)
        assert core.audit.state.alarm


@pytest.mark.rule("A4", "E10")
async def test_one_answer_for_many_is_on_record_for_each_and_refused_without_an_anchor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house(tmp_path, ("max_status_requests = 12", "max_status_requests = 2")) as h:
        for n in range(3):
            await h.submit(f"job-{n}", RUNNING)
        await h.run()
        (asked, *_) = await h.core.store.questions()
        lock(h, monkeypatch)
        shown = await h.core.actions.group(asked.cause)
        extend = next(c for c in shown.card.choices if c.kind is ChoiceKind.EXTEND)
        with pytest.raises(Exception, match="nothing was done"):
            await h.core.actions.decide_group(asked.cause, extend.key, shown.digest, KEYS, OPERATOR)
        assert not await h.events(EventName.GRANTED)
        monkeypatch.undo()
        shown = await h.core.actions.group(asked.cause)
        outcome = await h.core.actions.decide_group(asked.cause, extend.key, shown.digest, KEYS, OPERATOR)
        assert len(outcome.done) >= 1
        kinds = [link.blob[69] for link in await h.core.store.audit_links()]
        assert kinds.count(Kind.AUTHORITY) == len(outcome.done) == len(await h.events(EventName.GRANTED))
