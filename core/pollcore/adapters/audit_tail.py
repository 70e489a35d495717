"""The last links of a chain, looked at before this process adds its own.

Job: tell a torn last write (a crash) from an altered last link; where a log's keys were made. Must not know: SQL,
keyrings. The whole chain is `audit verify`'s to prove; this look costs the same however long the log is.
Source: spec A3; reliability notes, section 11.
"""

from __future__ import annotations

from collections.abc import Sequence

from pollcore.adapters.audit_chain import LogState, Torn
from pollcore.chain import control, layout
from pollcore.chain.layout import HASH, Kind
from pollcore.ports import AuditLink


def judge_tail(log: LogState, last: Sequence[AuditLink]) -> tuple[Torn | None, str | None]:
    """(the torn last row, what is wrong) of the last three links, fewer where the log is that short."""
    tip = last[-1]
    hashes = {link.seq: link.hash for link in last} | {0: layout.genesis(log.log_id, log.first)}
    header = layout.header_of(tip.blob)
    if len(tip.hash) < HASH or tip.hash == bytes(HASH):
        before = hashes.get(tip.seq - 1, b"")
        if len(before) != HASH:
            return None, f"altered: the last two links, {tip.seq - 1:,} and {tip.seq:,}, are damaged"
        return Torn(tip.seq, tip.blob, before), None
    if header is None or not layout.is_whole(tip.blob):
        return None, f"altered: the last link, {tip.seq:,}, is damaged"
    if header.log_id != log.log_id:
        return None, f"the last link is of another log, {header.log_id.hex()}"
    # a repair is hashed behind the link before the torn one
    before = hashes.get(tip.seq - (2 if header.kind == Kind.REPAIR else 1), b"")
    if layout.link_hash(tip.blob, before) != tip.hash:
        return None, f"altered: the hash of the last link, {tip.seq:,}, is not that of its bytes"
    return None, None


def keys_in(first: bytes) -> str:
    """Where the first link says that the log's keys were made."""
    try:
        return control.decode(layout.content(first), control.Begin).keys_in
    except ValueError:
        return "unknown"
