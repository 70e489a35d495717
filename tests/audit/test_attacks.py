"""The attack table, row by row: what is found without a key, with the anchor, with a head that was kept elsewhere."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pollcore.chain.findings import Verdict
from pollcore.chain.layout import Kind
from tests.audit.logs import READ, Log, flipped, kinds, rebuilt

V = Verdict


def table_log() -> Log:
    """56 links, checkpoints over 1, 20, 40 and 51; five links under none."""
    log = Log()
    log.add(18)
    log.note()
    log.add(20)
    log.note()
    log.add(11)
    log.note()
    log.add(5)
    assert len(log.rows) == 56
    assert [seq for seq, _ in log.notes] == [1, 20, 40, 51]
    return log


def two_epochs() -> Log:
    """30 links of epoch 0, then 30 of epoch 1."""
    log = Log()
    log.add(28)
    log.note()
    log.rotate()
    log.add(28)
    log.note()
    return log


def flip(log: Log) -> None:
    log.change(30, lambda blob: flipped(blob, 200))


def delete(log: Log) -> None:
    del log.rows[29]


def swap(log: Log) -> None:
    a, b = log.rows[28], log.rows[29]
    log.rows[28:30] = [(a[0], *b[1:]), (b[0], *a[1:])]


def other_log(log: Log) -> None:
    other = table_log()
    log.rows, log.notes = other.rows, other.notes


def cut_below_last_note(log: Log) -> None:
    del log.rows[45:]


def cut_tail(log: Log) -> None:
    del log.rows[51:]


def cut_and_drop_note(log: Log) -> None:
    del log.rows[45:]
    del log.notes[-1]


def old_copy(log: Log) -> None:
    del log.rows[40:]
    del log.notes[-1]


def thief_in_the_current_epoch(log: Log) -> None:
    rebuilt(log, 25)


TABLE = [
    # attack, verdict without a key, with the anchor, with a head kept elsewhere
    (flip, V.ALTERED, V.ALTERED, V.ALTERED),
    (delete, V.REORDERED, V.REORDERED, V.REORDERED),
    (swap, V.REORDERED, V.REORDERED, V.REORDERED),
    (other_log, V.OTHER_LOG, V.OTHER_LOG, V.OTHER_LOG),
    (cut_below_last_note, V.TRUNCATED, V.TRUNCATED, V.TRUNCATED),
    (cut_tail, V.INTACT, V.TRUNCATED, V.INTACT),
    (cut_and_drop_note, V.TAIL, V.TRUNCATED, V.TRUNCATED),
    (old_copy, V.INTACT, V.TRUNCATED, V.TRUNCATED),
    (thief_in_the_current_epoch, V.INTACT, V.ALTERED, V.ALTERED),
]


@pytest.mark.rule("A3", "A4")
@pytest.mark.parametrize(("attack", "alone", "anchored", "kept"), TABLE, ids=lambda x: getattr(x, "__name__", None))
def test_each_attack_is_found_by_whom_the_table_names(
    attack: Callable[[Log], None], alone: V, anchored: V, kept: V
) -> None:
    log = table_log()
    anchor = log.head
    seq, _, head = log.rows[50]
    checkpoint = type(anchor)(seq, head, "a checkpoint kept elsewhere", log.log_id)
    attack(log)
    assert log.verify().verdict is alone
    assert log.verify(anchor).verdict is anchored
    assert log.verify(checkpoint).verdict is kept


@pytest.mark.rule("A4")
def test_a_thief_with_the_present_keys_cannot_rewrite_a_past_epoch_even_before_no_anchor() -> None:
    log = two_epochs()
    assert log.verify().verdict is V.INTACT
    new = log.signing[1]
    rows, _ = log.copy()
    # the thief holds new, not log.signing[0]
    forger = Log(log_id=log.log_id)
    forger.signing[0] = new
    forger.rows, forger.notes, forger.public = rows[:15], log.notes[:1], log.public
    forger.state = type(log.state)(log.log_id, log.public, 0, log.public, READ, 0, 1)
    forger.chain = forger.writer(signs=False)
    forger.add(14)
    forger.rotate()
    forger.add(5)
    forger.note()
    report = forger.verify()
    assert report.verdict is V.ALTERED
    assert any("did not sign" in fault.text for fault in report.faults)


@pytest.mark.rule("A4")
def test_store_and_keyring_restored_together_are_found_by_a_kept_checkpoint_alone() -> None:
    log = table_log()
    old_rows, old_notes = log.copy()
    old_anchor = log.head
    log.add(30)
    log.note()
    kept = log.head
    log.rows, log.notes = old_rows, old_notes
    assert log.verify(old_anchor).verdict is V.INTACT
    assert log.verify(old_anchor, kept).verdict is V.TRUNCATED


@pytest.mark.rule("A4")
def test_a_crash_between_commit_and_anchor_is_accepted() -> None:
    log = table_log()
    anchor = log.head
    log.add(5)
    assert log.verify(anchor).verdict is V.TAIL
    log.note()
    assert log.verify(anchor).verdict is V.INTACT


@pytest.mark.rule("A4")
def test_an_old_key_does_not_sign_after_its_rotation_nor_a_new_one_before_it() -> None:
    log = two_epochs()
    assert kinds(log).count(Kind.EPOCH) == 1
    old, new = log.signing
    at = kinds(log).index(Kind.EPOCH) + 1
    log.chain.signer = type(log.chain.signer)(log.public, old.sign)  # type: ignore[misc]
    state = log.state
    log.state = type(state)(state.log_id, state.first, 0, log.public, state.read, 0, 1)
    log.add(1, log.writer(signs=False))
    log.note()
    report = log.verify()
    assert report.verdict is V.ALTERED
    before = two_epochs()
    seq, _, head = before.rows[at - 3]
    early = before.writer()
    note = early.note(before.state, seq, head)
    assert note is not None
    before.notes = sorted([*(n for n in before.notes if n[0] != seq), (seq, note)])
    assert before.verify().verdict is V.ALTERED
    del new


@pytest.mark.rule("A4")
def test_anyone_can_write_a_tail_and_it_is_never_more_than_a_tail() -> None:
    """Writing needs no secret, so links without a checkpoint prove nothing; the verdict says so."""
    log = table_log()
    log.note()
    forger = log.writer(signs=False)
    log.add(9, forger)
    report = log.verify()
    assert (report.verdict, report.signed_to) == (V.TAIL, 56)
    assert V.TAIL.exit_code == 25


@pytest.mark.rule("A3")
def test_another_first_key_than_the_kept_one_is_another_log() -> None:
    log, impostor = table_log(), Log(log_id=table_log().log_id)
    impostor.add(3)
    impostor.note()
    impostor.public = log.public
    impostor.log_id = impostor.state.log_id
    assert impostor.verify().verdict is V.OTHER_LOG
    assert impostor.verify(key=False).verdict is V.INTACT


@pytest.mark.rule("A3")
def test_no_link_at_all_is_missing() -> None:
    log = Log()
    anchor = log.head
    log.rows, log.notes = [], []
    assert log.verify(anchor).verdict is V.MISSING
    codes = {v.value: v.exit_code for v in V}
    assert codes == {
        "intact": 0,
        "altered": 20,
        "removed_or_reordered": 21,
        "truncated": 22,
        "torn_last_write": 23,
        "missing": 24,
        "unsigned_tail": 25,
        "other_log": 26,
    }
