"""What a verification of the audit says, in words: the same lines for the command and for the screen.

Job: pure: the report as a document -> lines. Must not know: how anything is verified, where the lines go.
Source: spec A3; docs/audit.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

SHOWN: Final = 20
"""Faults that people are shown; `audit verify --json` has up to 1,000."""
NOT_ASKED: Final = "not asked: a file is verified by what is in it"
"""Said of the anchor where a file is verified."""
PLAIN: Final[Mapping[str, str]] = {
    "intact": "nothing was changed, removed, moved or put in",
    "altered": "something was changed: the record cannot be trusted from there on",
    "removed_or_reordered": "links were removed or moved",
    "truncated": "links at the end are gone, although the anchor or a checkpoint knows them",
    "torn_last_write": "a crash cut the last write; the next writer repairs it, on record",
    "missing": "the chain, the record of its keys, or its anchor is not where it was put",
    "unsigned_tail": "whole; the newest links are under no checkpoint and no anchor yet, which the next one mends",
    "other_log": "this is the log of another home, or links of one are in it",
}
"""By verdict: what that means to somebody who never read about chains."""


def meaning(report: Mapping[str, Any]) -> str:
    """`intact (exit code 0): nothing was changed ...`: the verdict, the code of `audit verify`, what it means."""
    verdict = str(report["verdict"])
    return f"{verdict.replace('_', ' ')} (exit code {report['exit_code']}): {PLAIN.get(verdict, '')}"


def head_lines(report: Mapping[str, Any]) -> list[str]:
    """Key, head, how far it is signed and confirmed; empty: there is no log."""
    if not report["log"]:
        return []
    confirmed = f"; confirmed up to link {report['confirmed_to']:,}"
    if report["anchor"] == NOT_ASKED and not report["confirmed_to"]:
        confirmed = ""  # nothing was there to confirm by, which is no fault
    same = "as you gave it" if report["key_compared"] else "compare it with the one that you kept, or give it as --key"
    return [
        f"key {report['key']} ({same})",
        f"head {report['head']}",
        f"signed up to link {report['signed_to']:,} by {report['checkpoints']:,} checkpoints",
        f"anchor: {report['anchor']}{confirmed}",
    ]


def finding_lines(report: Mapping[str, Any]) -> list[str]:
    """What is to be known, then what is wrong."""
    lines = [f"note: {text}" for text in report["remarks"]]
    for fault in report["faults"][:SHOWN]:
        at = "" if fault["link"] is None else f" at link {fault['link']:,}"
        lines.append(f"{fault['kind'].replace('_', ' ')}{at}: {fault['text']}")
    if report["fault_count"] > SHOWN:
        lines.append(f"... {report['fault_count']:,} faults in all; --json lists up to 1,000")
    return lines
