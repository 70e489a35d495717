"""What a verification found: faults by kind, and one verdict with its exit code.

Job: shapes and order of gravity. Must not know: how anything is verified.
Source: spec A3; design.md, "Fixed: command line" (exit codes).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

MAX_LISTED: Final = 1_000
"""Faults that a report lists; all are counted."""
MAX_REMARKS: Final = 100


class Verdict(StrEnum):
    """Gravest first: one fault of a kind outweighs all of the kinds after it."""

    OTHER_LOG = "other_log"
    MISSING = "missing"
    ALTERED = "altered"
    REORDERED = "removed_or_reordered"
    TRUNCATED = "truncated"
    TORN = "torn_last_write"
    TAIL = "unsigned_tail"
    INTACT = "intact"

    @property
    def exit_code(self) -> int:
        """Of `audit verify`."""
        return EXIT[self]


EXIT: Final[dict[Verdict, int]] = {
    Verdict.INTACT: 0,
    Verdict.ALTERED: 20,
    Verdict.REORDERED: 21,
    Verdict.TRUNCATED: 22,
    Verdict.TORN: 23,
    Verdict.MISSING: 24,
    Verdict.TAIL: 25,
    Verdict.OTHER_LOG: 26,
}
ORDER: Final = tuple(Verdict)


class Fault(msgspec.Struct, frozen=True):
    """One thing that is wrong. *seq*: the link it was found at; None: it concerns the whole log."""

    kind: Verdict
    seq: int | None
    text: str


class Head(msgspec.Struct, frozen=True):
    """What somebody else remembers of a log: that link *seq* had this hash. *source*: who, for people."""

    seq: int
    hash: bytes
    source: str
    log_id: bytes | None = None


class Archived(msgspec.Struct, frozen=True, kw_only=True):
    """What a store says of one archive that was cut out of it."""

    no: int
    at: int
    """ms since 1970."""
    path: str
    size: int
    sha256: bytes
    after: int
    last: int
    """Links after *after* up to *last* are in it; none, where they are the same."""
    operations: int
    charges: int
    held: bool | None = None
    """Whether the file was held against this; None: no file was given."""

    def text(self) -> str:
        """One line for people."""
        links = f"links {self.after + 1:,} to {self.last:,}" if self.last > self.after else "no links"
        requests = f"{self.charges:,} requests of {self.operations:,} operations"
        held = {None: "", True: ", held against it", False: ", NOT the file that was given"}[self.held]
        return f"archive {self.no}: {links} and {requests} are in {self.path} (sha256 {self.sha256.hex()}){held}"


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one verification says."""

    verdict: Verdict
    faults: tuple[Fault, ...] = ()
    """The first MAX_LISTED, in the order found."""
    fault_count: int = 0
    log: str | None = None
    """The log id, hex."""
    key: str | None = None
    """The first verification key, to be compared with the one that was kept elsewhere."""
    key_compared: bool = False
    keys_in: str | None = None
    links: int = 0
    first: int = 1
    """The first link that was looked at; those before it were archived."""
    last: int = 0
    """The last link; its hash is *head*."""
    head: bytes | None = None
    epoch: int = 0
    notes: int = 0
    """Signed checkpoints that hold."""
    signed_to: int = 0
    """The last link under a checkpoint that holds."""
    known_to: int = 0
    """The last link that an anchor or an expected head confirms."""
    remarks: tuple[str, ...] = ()
    """No faults: events before the chain, repairs, losses that an operator accepted."""
    archives: tuple[Archived, ...] = ()
    """What was cut out of the store, oldest first."""


class Findings:
    """What a verification has found so far."""

    def __init__(self) -> None:
        self.worst = Verdict.INTACT
        self.faults: list[Fault] = []
        self.count = 0
        self.remarks: list[str] = []

    def fault(self, kind: Verdict, seq: int | None, text: str) -> None:
        """Count one fault, and list it if there is room."""
        self.count += 1
        if ORDER.index(kind) < ORDER.index(self.worst):
            self.worst = kind
        if len(self.faults) < MAX_LISTED:
            self.faults.append(Fault(kind, seq, text))

    def remark(self, text: str) -> None:
        """Say what is no fault, and yet to be known."""
        if len(self.remarks) < MAX_REMARKS:
            self.remarks.append(text)
