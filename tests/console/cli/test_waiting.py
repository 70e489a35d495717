"""`wait`'s exit codes and the words about a core that does not run: pure parts."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from pollconsole import due, rows, words
from pollconsole.cli import liveness, present
from pollconsole.cli.wait import NO_CORE, START_GRACE_MS, STILL_WAITING, verdict
from pollcore.facts import BootMs, Instant, Moment, Operation, Status, Submitted
from pollcore.waiting import SILENT_AFTER_MS, core_silence, is_running, silent_ms

START = Moment(Instant(1_772_445_600_000), BootMs(5_000_000), "boot-a")


@dataclass(frozen=True)
class Beat:
    """A heartbeat as `core_silence` reads it."""

    beat_at: Instant
    beat_boot: BootMs
    boot_id: str = "boot-a"
    kind: str = "run"
    owner: str = "w"
    host: str = "h"


def operation(status: Status = Status.WAITING, **changes: object) -> Operation:
    fields: dict[str, object] = {
        "operation_id": "op-1",
        "submitted": Submitted(provider="acme", account="a", job_id="job-7"),
        "status": status,
        "contract_digest": "d",
        "started_at": START.wall,
        "submitted_at": START.wall,
        "boot_id": "boot-a",
        "deadline_at": Instant(START.wall + 2_400_000),
        "deadline_boot": BootMs(START.boot + 2_400_000),
        "max_status_requests": 12,
        "max_transport_failures": 3,
        "max_rate_limited": 3,
    }
    return Operation(**{**fields, **changes})  # type: ignore[arg-type]


def judge(status: Status, *, silent: int | None = 0, waited: int = 0, timeout: int | None = None) -> int | None:
    return verdict(operation(status), silent, now=START.after(waited), started=START, timeout_ms=timeout)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (Status.SUCCEEDED, 0),
        (Status.ESCALATED, 10),
        (Status.AWAITING_APPROVAL, 10),
        (Status.FAILED, 11),
        (Status.CANCELLED, 12),
        (Status.EXPIRED, 12),
        (Status.CLOSED, 14),
        (Status.WAITING, None),
        (Status.HELD, None),
    ],
)
def test_each_status_has_its_exit_code_whether_a_core_runs_or_not(status: Status, code: int | None) -> None:
    assert judge(status) == code
    assert judge(status, silent=None) == code


@pytest.mark.rule("O8")
def test_no_core_has_its_own_code_and_a_starting_one_gets_a_grace() -> None:
    for silent in (None, SILENT_AFTER_MS + 1):
        assert judge(Status.WAITING, silent=silent, waited=START_GRACE_MS - 1) is None
        assert judge(Status.WAITING, silent=silent, waited=START_GRACE_MS) == NO_CORE
    assert judge(Status.WAITING, silent=SILENT_AFTER_MS, waited=START_GRACE_MS) is None


@pytest.mark.rule("O8")
def test_the_timeout_tells_a_slow_job_from_a_missing_core() -> None:
    assert judge(Status.WAITING, waited=999, timeout=1_000) is None
    assert judge(Status.WAITING, waited=1_000, timeout=1_000) == STILL_WAITING
    assert judge(Status.HELD, waited=1_000, timeout=1_000) == STILL_WAITING
    assert judge(Status.WAITING, silent=None, waited=1_000, timeout=1_000) == NO_CORE


@pytest.mark.rule("O8")
def test_heartbeats_of_this_boot_are_measured_by_the_clock_that_never_steps() -> None:
    stepped = Moment(Instant(START.wall + 86_400_000), BootMs(START.boot + 2_000), "boot-a")
    assert silent_ms([Beat(START.wall, START.boot)], stepped) == 2_000
    other = Beat(START.wall, BootMs(9_000_000), "boot-b")
    assert silent_ms([other], START.after(70_000)) == 70_000
    assert silent_ms([other, Beat(START.wall, START.boot)], START.after(1_000)) == 1_000
    assert silent_ms([], START) is None


@pytest.mark.rule("O8")
def test_a_core_that_is_proved_to_have_ended_runs_no_more_however_fresh_its_heartbeat() -> None:
    dead, living = Beat(START.wall, START.boot, owner="dead"), Beat(START.wall, START.boot, owner="living")
    gone = {("dead", "h")}

    def silence(*beats: Beat, after: int = 1_000) -> int | None:
        return core_silence(beats, START.after(after), lambda owner, host: (owner, host) in gone)

    assert not is_running(silence(dead))
    assert "no core is running" in str(liveness.warning(silence(dead)))
    assert judge(Status.WAITING, silent=silence(dead), waited=START_GRACE_MS) == NO_CORE
    assert judge(Status.WAITING, silent=silence(dead), waited=START_GRACE_MS - 1) is None
    assert silence(dead, living) == 1_000
    assert silence(dead, after=200_000) == 200_000
    assert is_running(silence(Beat(START.wall, START.boot, owner="dead", host="elsewhere")))
    assert silence(Beat(START.wall, START.boot, kind="cli")) is None


@pytest.mark.rule("O8")
def test_the_warning_says_how_long_and_what_to_do() -> None:
    assert liveness.warning(59_000) is None
    assert "has run for 3 minutes" in str(liveness.warning(185_000))
    assert "has run on this home yet" in str(liveness.warning(None))
    assert "pollconsole run" in str(liveness.warning(None))


def test_every_status_has_a_glyph_and_a_word() -> None:
    assert set(words.STATUS) == set(Status)
    assert all(glyph.isascii() and word for glyph, word in words.STATUS.values())


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (None, "-"),
        (0, "0 s"),
        (999, "0 s"),
        (12_000, "12 s"),
        (3_840_000, "1 h 4 min"),
        (3_601_000, "1 h"),
        (-61_000, "-1 min 1 s"),
    ],
)
def test_spans_are_told_in_their_two_largest_units(ms: int | None, text: str) -> None:
    assert words.span(ms) == text


def test_columns_stay_aligned_under_wide_characters() -> None:
    lines = words.table(("A", "B"), [("作业", "x"), ("abcd", "y")]).split("\n")
    assert lines == ["A     B", "作业  x", "abcd  y"]


HOSTILE = "a\x1b]52;c;eA==\x07\x9b2J\u202e\n\r\x7f[@click=app.quit]"


@pytest.mark.rule("G4")
def test_provider_texts_reach_the_table_harmless() -> None:
    op = operation(
        submitted=Submitted(provider=HOSTILE, account=HOSTILE, job_id=HOSTILE, label=HOSTILE), last_known_state=HOSTILE
    )
    text = present.rows([op], START)
    assert text.count("\n") == 1
    assert text.replace("\n", "").isprintable()


@pytest.mark.rule("V1")
def test_a_row_shows_state_next_request_time_left_and_what_is_used_of_what() -> None:
    op = operation(
        status_requests_used=5,
        transport_failures_used=1,
        rate_limited_used=2,
        next_poll_at=Instant(START.wall + 9_000),
        last_known_state="running",
    )
    row = present.rows([op], START.after(5_000)).split("\n")[1]
    for part in ("op-1", "acme", "job-7", "~ waiting", "running", "10:00:09", "39 min 55 s", "5/12", "1/3", "2/3"):
        assert part in row


@pytest.mark.rule("V1", "T9")
def test_the_list_says_as_the_table_does_what_will_be_sent_and_what_has_passed() -> None:
    due_at = Instant(START.wall + 9_000)
    held_until = Instant(START.wall + 600_000)
    soon = Instant(START.wall + 60_000)
    cases = [
        (operation(next_poll_at=due_at), True, "now"),
        (operation(next_poll_at=due_at), False, "-"),
        (operation(status=Status.AWAITING_APPROVAL, next_poll_at=due_at), True, "-"),
        (operation(status=Status.ESCALATED, next_poll_at=due_at), True, "-"),
        (operation(status=Status.HELD, next_poll_at=due_at, hold_until=held_until), True, "10:10:00"),
    ]
    for op, polled, shown in cases:
        now = START.after(30_000)
        assert due.next_words(op, now, polled=polled) == shown
        in_table = rows.next_span(op, now, polled=polled)[0]
        assert (in_table == "-") == (shown == "-")
        cells = present.rows([op], now, polled=polled).split("\n")[1].split()
        assert shown in cells
        assert "10:00:09" not in cells
    late = operation(deadline_at=Instant(START.wall - 1), status=Status.ESCALATED)
    assert present.rows([late], START).split("\n")[1].split().count("passed") == 1
    assert rows.left_span(late, START)[0] == "passed"
    useful = operation(useful_until=soon)
    assert "1 min" in present.rows([useful], START)


def test_nested_documents_are_indented_lines_without_control_characters() -> None:
    text = present.nested({"a": {"b": [HOSTILE, 1], "c": []}, "d": [{"e": None}, {"e": True}], "f": 0})
    assert "c: none" in text
    assert "- e: yes" in text
    assert all(line.isprintable() for line in text.split("\n"))
