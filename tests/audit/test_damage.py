"""Every byte flipped, every tail cut, every row removed, swapped, torn: the verifier tells, and tells which."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pollcore.adapters.audit_chain import Torn
from pollcore.chain import layout
from pollcore.chain.findings import Verdict
from pollcore.facts import StoreUnusable
from tests.audit.logs import Log, event, flipped

V = Verdict


def small() -> Log:
    """8 links over two epochs and two runs, a checkpoint over the last."""
    log = Log()
    log.add(2)
    log.rotate()
    log.add(1)
    log.add(1, log.writer())
    log.note()
    assert len(log.rows) == 9
    return log


@pytest.mark.rule("A3")
def test_every_flipped_bit_of_every_byte_is_altered_and_blames_no_other_link() -> None:
    log = small()
    whole, _ = log.copy()
    for at, (seq, blob, head) in enumerate(whole):
        for byte in range(len(blob)):
            log.rows[at] = (seq, flipped(blob, byte, 1 << (byte % 8)), head)
            report = log.verify()
            assert report.verdict is V.ALTERED, (seq, byte, report.faults)
            assert {fault.seq for fault in report.faults} == {seq}, (seq, byte, report.faults)
        for byte in range(len(head)):
            log.rows[at] = (seq, blob, flipped(head, byte))
            report = log.verify()
            assert report.verdict is V.ALTERED
            assert report.faults[0].seq == seq
        log.rows[at] = whole[at]
    assert log.verify().verdict is V.INTACT


@pytest.mark.rule("A3")
def test_every_flipped_byte_of_a_checkpoint_is_found() -> None:
    log = small()
    _, notes = log.copy()
    for at, (seq, text) in enumerate(notes):
        for place in range(len(text)):
            log.notes[at] = (seq, text[:place] + chr(ord(text[place]) ^ 1) + text[place + 1 :])
            assert log.verify().verdict in (V.ALTERED, V.OTHER_LOG), (seq, place)
            assert log.verify(key=False).verdict in (V.ALTERED, V.OTHER_LOG), (seq, place)
        log.notes[at] = notes[at]


@pytest.mark.rule("A3")
@pytest.mark.parametrize("keep_notes", [True, False])
def test_the_last_k_links_cut_for_every_k(keep_notes: bool) -> None:
    log = small()
    rows, notes = log.copy()
    anchor = log.head
    for left in range(1, len(rows)):
        log.rows = rows[:left]
        log.notes = notes if keep_notes else [n for n in notes if n[0] <= left]
        alone = log.verify().verdict
        assert alone is V.TRUNCATED if keep_notes else alone in (V.INTACT, V.TAIL), left
        report = log.verify(anchor)
        assert report.verdict is V.TRUNCATED, left
        assert any(fault.seq == len(rows) for fault in report.faults)


@pytest.mark.rule("A3")
def test_any_link_or_stretch_of_links_removed_is_told_by_its_numbers() -> None:
    log = small()
    rows, _ = log.copy()
    for first in range(len(rows) - 1):
        for last in range(first + 1, len(rows)):
            log.rows = rows[:first] + rows[last:]
            report = log.verify(log.head)
            assert report.verdict is V.REORDERED, (first, last, report.faults)
            assert report.faults[0].seq == first + 1


@pytest.mark.rule("A3")
def test_any_two_links_swapped_and_any_renumbered_are_told() -> None:
    log = small()
    rows, _ = log.copy()
    for a in range(len(rows)):
        for b in range(a + 1, len(rows)):
            log.rows = list(rows)
            log.rows[a], log.rows[b] = (rows[a][0], *rows[b][1:]), (rows[b][0], *rows[a][1:])
            assert log.verify().verdict in (V.REORDERED, V.ALTERED), (a, b)
            assert any(fault.kind is V.REORDERED for fault in log.verify().faults), (a, b)
            log.rows = [rows[b] if i == a else rows[a] if i == b else row for i, row in enumerate(rows)]
            assert any(fault.kind is V.REORDERED for fault in log.verify().faults), (a, b)
    for gone in range(1, len(rows) - 1):
        left = rows[:gone] + rows[gone + 1 :]
        log.rows = [(number, blob, head) for number, (_, blob, head) in enumerate(left, 1)]
        report = log.verify()
        assert any(fault.kind is V.REORDERED for fault in report.faults), gone


@pytest.mark.rule("A3")
def test_a_link_put_in_without_any_key_is_told() -> None:
    log, forger = small(), Log()
    forger.add(1)
    rows, _ = log.copy()
    for at in range(1, len(rows)):
        foreign = forger.rows[2]
        log.rows = [*rows[:at], (at + 1, *foreign[1:]), *rows[at:]]
        assert log.verify().verdict in (V.OTHER_LOG, V.ALTERED, V.REORDERED), at


def torn(log: Log, size: int) -> None:
    """A crash cut the last row: *size* bytes are left, the hash behind them was not written."""
    seq, blob, _ = log.rows[-1]
    log.rows[-1] = (seq, blob[:size], b"")


@pytest.mark.rule("A3")
def test_a_torn_last_write_is_told_from_tampering_wherever_it_was_cut() -> None:
    log = small()
    log.add(1)
    rows, _ = log.copy()
    for size in range(len(rows[-1][1]) + 1):
        log.rows = list(rows)
        torn(log, size)
        assert log.verify().verdict is V.TORN, size
    log.rows = list(rows)
    seq, blob, head = rows[-1]
    for size in range(len(blob)):  # its hash is there, so it was whole once
        log.rows[-1] = (seq, blob[:size], head)
        assert log.verify().verdict is V.ALTERED, size


@pytest.mark.rule("A3")
def test_a_row_that_was_confirmed_as_whole_is_not_torn_but_altered() -> None:
    log = small()
    anchor = log.head
    torn(log, 100)
    assert log.verify().verdict is V.ALTERED
    log.notes.pop()
    assert log.verify().verdict is V.TORN
    assert log.verify(anchor).verdict is V.ALTERED


@pytest.mark.rule("A3")
def test_the_repair_of_a_torn_row_is_on_record_and_the_log_is_whole_again() -> None:
    log = small()
    log.add(1)
    before, at = log.rows[-2][2], len(log.rows) - 1
    torn(log, 77)
    fresh = log.writer()
    with pytest.raises(StoreUnusable, match="torn"):
        log.add(1, fresh)
    fresh.torn = Torn(log.tip.seq, log.rows[-1][1], before)
    log.add(3, fresh)
    log.note()
    report = log.verify()
    assert report.verdict is V.INTACT, report.faults
    assert any("torn by a crash" in remark for remark in report.remarks)
    # what is left of the torn row is evidence: it may not change any more
    assert log.rows[at][2] == b""
    log.rows[at] = (at + 1, flipped(log.rows[at][1], 5), b"")
    assert log.verify().verdict is V.ALTERED
    # nor may a repair be used to hide a row in the middle
    hidden = small()
    seq, blob, _ = hidden.rows[4]
    hidden.rows[4] = (seq, blob[:50], b"")
    assert hidden.verify().verdict is V.ALTERED


@pytest.mark.rule("A3")
def test_many_faults_are_all_counted_and_the_list_is_bounded() -> None:
    log = Log()
    log.add(3_000)
    for seq in range(10, 2_500):
        log.change(seq, lambda blob: flipped(blob, 250))
    report = log.verify()
    assert (report.verdict, report.fault_count, len(report.faults)) == (V.ALTERED, 2_490, 1_000)


@pytest.mark.rule("A3")
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_change_of_the_stored_bytes_leaves_a_checked_log_intact(data: st.DataObject) -> None:
    log = LOG
    rows, _ = log.copy()
    try:
        how = data.draw(st.sampled_from(["bytes", "hash", "drop", "double", "longer", "garbage"]))
        at = data.draw(st.integers(0, len(rows) - 1))
        seq, blob, head = rows[at]
        if how == "bytes":
            place = data.draw(st.integers(0, len(blob) - 1))
            new = data.draw(st.binary(min_size=1, max_size=40).filter(lambda b: blob[place : place + len(b)] != b))
            log.rows[at] = (seq, blob[:place] + new + blob[place + len(new) :], head)
        elif how == "hash":
            log.rows[at] = (seq, blob, data.draw(st.binary(max_size=40).filter(lambda b: b != head)))
        elif how == "drop":
            del log.rows[at]
        elif how == "double":
            log.rows.insert(at, rows[at])
        elif how == "longer":
            log.rows[at] = (seq, blob + data.draw(st.binary(min_size=1, max_size=20)), head)
        else:
            log.rows[at] = (seq, data.draw(st.binary(max_size=300)), head)
        assert log.verify().verdict.exit_code >= 20
        assert log.verify().verdict is not V.TAIL
    finally:
        log.rows = rows


LOG = small()


@pytest.mark.rule("A3")
def test_a_cascade_stays_with_its_link_when_a_runs_key_is_damaged() -> None:
    log = Log()
    log.add(20)
    log.note()
    run = next(seq for seq, blob, _ in log.rows if blob[69] == layout.Kind.RUN)
    log.change(run, lambda blob: flipped(blob, 60))
    report = log.verify()
    assert (report.verdict, report.fault_count, report.faults[0].seq) == (V.ALTERED, 1, run)


@pytest.mark.rule("A3", "O6")
def test_a_run_key_of_a_transaction_that_was_undone_is_written_again() -> None:
    """The links of a rolled back transaction are no part of the chain, nor is the run's key that was among them."""
    log = Log()
    lost = log.chain.links(log.tip, [event()])
    assert len(lost) == 2
    log.add(2)
    log.note()
    assert [blob[69] for _, blob, _ in log.rows[1:]] == [layout.Kind.RUN, layout.Kind.EVENT, layout.Kind.EVENT]
    assert log.verify().verdict is V.INTACT
    other = log.writer()
    log.chain.links(log.tip, [event()])
    log.add(1, other)  # another process wrote meanwhile
    log.add(1)
    log.note()
    assert log.verify().verdict is V.INTACT, log.verify().faults
