"""How many of the faults that were listed for store and process are injected somewhere, and where."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

TESTS: Final = Path(__file__).resolve().parents[1]
NTH: Final = "processes/test_nth_call.py::test_every_statement_may_fail_and_nothing_is_lost_or_sent_uncounted"
CHARGE: Final = "processes/test_nth_call.py::test_no_byte_leaves_while_any_part_of_a_charge_cannot_be_written"
KILLED: Final = (
    "processes/test_killed.py::test_killed_and_stopped_workers_never_send_more_than_the_budget_nor_uncounted"
)
STOPPED: Final = "processes/test_killed.py::test_a_worker_stopped_beyond_its_lease_changes_nothing_when_it_wakes"
SIGNAL: Final = "processes/test_killed.py::test_a_signal_ends_a_worker_cleanly_and_no_request_is_left_unrecorded"
TOGETHER: Final = (
    "processes/test_killed.py::test_workers_started_at_the_same_moment_on_a_new_home_agree_on_one_key_and_one_schema"
)

#: fault -> the test that injects it; empty: none does yet.
FAULTS: Final = {
    "SQLITE_BUSY at every statement": NTH,
    "SQLITE_FULL at every statement": NTH,
    "SQLITE_IOERR on write at every statement": NTH,
    "SQLITE_CORRUPT at every statement": NTH,
    "SQLITE_READONLY at every statement": NTH,
    "SQLITE_BUSY_SNAPSHOT": CHARGE,
    "SQLITE_IOERR on read, fsync, shm": CHARGE,
    "SQLITE_NOTADB": CHARGE,
    "SQLITE_CANTOPEN": CHARGE,
    "SQLITE_NOMEM": CHARGE,
    "SQLITE_PROTOCOL": CHARGE,
    "commit succeeded, answer lost": "processes/test_nth_call.py::test_every_commit_may_succeed_and_lose_its_answer",
    "read error of the change watch": (
        "processes/test_findings.py::test_a_read_error_does_not_end_the_watch_for_what_others_write"
    ),
    "a ROLLBACK that fails": "processes/test_findings.py::test_a_rollback_that_failed_does_not_block_the_next_look",
    "disk full, then freed": (
        "processes/test_disk.py::test_a_full_disk_stops_all_sending_says_so_and_goes_on_when_there_is_room"
    ),
    "audit row refused": (
        "processes/test_nth_call.py::test_no_connection_is_made_while_the_real_store_refuses_a_charge"
    ),
    "two migrators": TOGETHER,
    "newer schema": "adapters/store/test_opening.py::test_a_newer_schema_is_refused_and_left_alone",
    "WAL bit flip": "",
    "WAL removed": "",
    "-shm removed": "",
    "file replaced": "",
    "restored backup": "",
    "foreign open()": "",
    "reader holding 10 min": "",
    "directory read-only": "",
    "SIGKILL at random": KILLED,
    "SIGKILL between two steps of a start": (
        "processes/test_findings.py::test_a_start_that_was_killed_while_it_wrote_the_key_file_does_not_spoil_the_home"
    ),
    "SIGSTOP within the lease": KILLED,
    "SIGSTOP beyond the lease": STOPPED,
    "SIGTERM": SIGNAL,
    "SIGHUP": SIGNAL,
    "SIGINT": SIGNAL,
    "two workers from one image at the same moment": TOGETHER,
    "thread that never returns": (
        "adapters/store/test_opening.py::test_a_thread_that_waits_for_the_disk_does_not_hold_the_close_for_ever"
    ),
    "SIGTSTP": "",
    "out of memory": "",
    "PID reuse": "",
    "event loop blocked 5 s": "",
}


def missing() -> list[str]:
    """Tests that the table names and that are not there."""
    found = []
    for where in {one for one in FAULTS.values() if one}:
        file, _, name = where.partition("::")
        path = TESTS / file
        if not path.is_file() or f"def {name}(" not in path.read_text("utf-8"):
            found.append(where)
    return found


@pytest.mark.rule("O6")
def test_every_fault_that_is_said_to_be_injected_has_its_test(capsys: pytest.CaptureFixture[str]) -> None:
    assert missing() == []
    covered = [fault for fault, where in FAULTS.items() if where]
    open_ = [fault for fault, where in FAULTS.items() if not where]
    assert len(covered) >= 27
    with capsys.disabled():
        print(f"\nfaults of store and process: {len(covered)} of {len(FAULTS)} injected; not yet: {', '.join(open_)}")
