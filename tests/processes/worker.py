"""`pollconsole` as it is, with its lease times shortened or its journal chosen, for tests that cannot wait 30 seconds.

Run: python -m tests.processes.worker [--lease-ms N] [--journal DELETE] -- ARGUMENTS OF POLLCONSOLE
"""

from __future__ import annotations

import argparse
import sys

from pollcore.adapters.store import leases, library
from pollcore.controller import pacing, prepare


def shorten(lease_ms: int) -> None:
    """Every time of the lease protocol at the scale of *lease_ms*: term, margin, heartbeat and renewal at a third."""
    leases.TTL_MS = lease_ms  # type: ignore[misc]
    leases.SCAN_EVERY_MS = min(leases.SCAN_EVERY_MS, lease_ms // 4)  # type: ignore[misc]
    prepare.LEASE_MS = lease_ms  # type: ignore[misc]
    prepare.LEASE_MARGIN_MS = 0  # type: ignore[misc]
    pacing.BEAT_MS = lease_ms // 3  # type: ignore[misc]


def journal(mode: str) -> None:
    """DELETE: as on a SQLite with the WAL-reset bug, whose safe way is the rollback journal."""
    if mode == "DELETE":
        library.has_wal_reset_bug = lambda version: True


def main() -> int:
    """Apply the options, then be pollconsole."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--lease-ms", type=int, default=0)
    parser.add_argument("--journal", choices=["WAL", "DELETE"], default="WAL")
    at = sys.argv.index("--")
    asked = parser.parse_args(sys.argv[1:at])
    if asked.lease_ms:
        shorten(asked.lease_ms)
    journal(asked.journal)
    from pollconsole.cli.entry import run

    return run(sys.argv[at + 1 :])


if __name__ == "__main__":
    raise SystemExit(main())
