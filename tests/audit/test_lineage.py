"""The keys that are kept of archived links: every changed byte is told, and no other key can take their place."""

from __future__ import annotations

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pollcore.adapters.audit_chain import Signer
from pollcore.chain import control
from pollcore.chain.findings import Findings, Report, Verdict
from pollcore.chain.layout import Kind
from pollcore.chain.lineage import KeyLink, Lineage, inherit
from pollcore.chain.verify import Start, Verifier
from tests.audit.logs import READ, T0, Log, flipped, kinds

V = Verdict


def three_epochs() -> Log:
    log = Log()
    for _ in range(2):
        log.add(3)
        log.rotate()
    log.add(3)
    log.note()
    return log


def lineage(log: Log) -> Lineage:
    """As an archive keeps it."""
    at = [seq for seq, kind in enumerate(kinds(log), 1) if kind == Kind.EPOCH]
    notes = dict(log.notes)
    links = tuple(KeyLink(log.rows[seq - 2][2], log.rows[seq - 1][1], notes[seq]) for seq in at)
    return Lineage(log.rows[0][1], log.notes[0][1], links)


def part(log: Log, keys: Lineage, seq: int, *, key: bool = True) -> Report:
    """Verify what comes behind link *seq* alone."""
    start = Start(seq, log.rows[seq - 1][2], keys)
    notes = [note for note in log.notes if note[0] > seq]
    return Verifier(key=(log.log_id, log.public) if key else None, start=start).run(log.rows[seq:], notes)


@pytest.mark.rule("A3", "A4")
def test_what_is_left_of_a_log_is_proved_by_the_keys_that_were_handed_on() -> None:
    log = three_epochs()
    keys = lineage(log)
    found = Findings()
    followed = inherit(keys, found, (log.log_id, log.public))
    assert followed is not None
    assert (found.count, len(followed.epochs), followed.epochs[2][1]) == (0, 3, log.state.sign)
    for seq in range(1, len(log.rows) - 1):
        whole = part(log, keys, seq)
        # inside an epoch the runs before the cut are unknown: only where an epoch begins, a part stands alone
        first_of_epoch = log.rows[seq][1][69] == Kind.EPOCH
        assert whole.verdict is V.INTACT or not first_of_epoch, (seq, whole.faults)
        assert whole.first == seq + 1


@pytest.mark.slow
@pytest.mark.rule("A3", "A4")
def test_every_flipped_byte_of_the_kept_keys_is_told() -> None:
    log = three_epochs()
    keys = lineage(log)
    seq = [at for at, kind in enumerate(kinds(log), 1) if kind == Kind.EPOCH][1] - 1

    def told(changed: Lineage) -> bool:
        return part(log, changed, seq).verdict in (V.ALTERED, V.OTHER_LOG)

    for at in range(len(keys.begin)):
        assert told(msgspec.structs.replace(keys, begin=flipped(keys.begin, at))), ("begin", at)
    for at in range(len(keys.note)):
        text = keys.note[:at] + chr(ord(keys.note[at]) ^ 1) + keys.note[at + 1 :]
        assert told(msgspec.structs.replace(keys, note=text)), ("note", at)
    first, second = keys.epochs
    for at in range(len(first.link)):
        changed = msgspec.structs.replace(first, link=flipped(first.link, at))
        assert told(msgspec.structs.replace(keys, epochs=(changed, second))), ("link", at)
    for at in range(32):
        changed = msgspec.structs.replace(first, before=flipped(first.before, at))
        assert told(msgspec.structs.replace(keys, epochs=(changed, second))), ("before", at)
    assert told(msgspec.structs.replace(keys, epochs=(second,)))
    assert told(msgspec.structs.replace(keys, epochs=(second, first)))
    assert not told(keys)


@pytest.mark.rule("A4")
def test_a_thief_without_an_old_key_cannot_begin_a_rest_of_his_own() -> None:
    """Whoever can write the store cuts the log at an epoch, and goes on with keys of his own."""
    log = three_epochs()
    seq = [at for at, kind in enumerate(kinds(log), 1) if kind == Kind.EPOCH][1] - 1
    keys, mine = lineage(log), Ed25519PrivateKey.generate()
    sign = mine.public_key().public_bytes_raw()
    log.rows = log.rows[:seq]
    log.notes = [note for note in log.notes if note[0] <= seq]
    tip, old = log.tip, log.state
    state = type(old)(old.log_id, old.first, 2, sign, READ, T0, seq + 1)
    message = control.epoch_message(old.log_id, seq + 1, tip.hash, 2, sign, READ)
    told = control.Epoch(sign, READ, T0, "thief", mine.sign(message))
    log.state, log.signing = state, [*log.signing, mine]
    log.take(log.chain.first_of_epoch(tip, state, control.encode(told), Signer(sign, mine.sign)))
    log.chain = log.writer()
    log.add(4)
    log.note()
    report = part(log, msgspec.structs.replace(keys, epochs=keys.epochs[:1]), seq)
    assert report.verdict is V.ALTERED
    assert any("did not sign" in fault.text for fault in report.faults)
    # nor with his keys in the lineage
    forged = (*keys.epochs[:1], KeyLink(tip.hash, log.rows[seq][1], dict(log.notes)[seq + 1]))
    found = Findings()
    inherit(msgspec.structs.replace(keys, epochs=forged), found, (log.log_id, log.public))
    assert found.worst is V.ALTERED


@pytest.mark.rule("A3")
def test_another_logs_keys_are_another_log() -> None:
    log, other = three_epochs(), three_epochs()
    seq = next(at for at, kind in enumerate(kinds(log), 1) if kind == Kind.EPOCH) - 1
    assert part(log, lineage(other), seq).verdict is V.OTHER_LOG
    assert part(log, lineage(log), seq, key=False).verdict is V.INTACT
