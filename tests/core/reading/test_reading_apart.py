"""An answer about many jobs ends no wait on what it does not say of this very job."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.reading.helpers import START, URL, answer, operation
from tests.core.reading.test_reading_item import KNOWN, jobs, made

from pollcore.contract import Contract
from pollcore.facts import Answer, Exchange, Instant, Memory, Observation, StopDetail, Verdict, iso
from pollcore.reading import Opened, force_available_at, read

EXPIRES = '[not_found]\nonce_seen = "expired"\n'
GONE = '[[rules]]\nwhen = "contains(body.unknown || `[]`, submitted.job_id)"\ncategory = "not_found"\n'
WHOLE = '[[rules]]\nwhen = "body.errors"\ncategory = "failed"\n'
RAISES = '[[rules]]\nwhen = "length(body.errors) > `0`"\ncategory = "failed"\n'
COUNTED = 'unreadable_2xx = "transport_failure"\n'
FORCE = """
[cancel]
method = "POST"
url = "https://api.example.test/v1/jobs/{job_id}/cancel"
consequences = "it stops"
confirm = { minutes = 5, checks = 4 }
[cancel.force]
method = "POST"
url = "https://api.example.test/v1/jobs/{job_id}/force"
consequences = "it is killed"
confirm = { minutes = 5, checks = 4 }
available_at = "item.force_at"
"""


def shared(one: Contract, got: Answer, memory: Memory | None = None, others: int = 2) -> tuple[Observation, Memory]:
    """Read one answer for this job and *others* more."""
    opened = Opened() if others else None
    exchange = Exchange("status", URL, got, others)
    return read(one, operation(memory), (exchange,), opened)


@pytest.mark.rule("S6", "H4", "S9")
@pytest.mark.parametrize(
    ("more", "memory", "alone"),
    [
        (EXPIRES, KNOWN, Verdict.EXPIRED),
        ("", KNOWN, Verdict.INTEGRATION),
        (f"{EXPIRES}confirms_cancel = true\n", Memory(cancel_sent_at=Instant(1)), Verdict.CANCELLED),
    ],
)
def test_a_list_that_does_not_name_the_job_ends_nothing_before_it_was_asked_alone(
    more: str, memory: Memory, alone: Verdict
) -> None:
    page = answer(200, jobs(job_2="running", job_3="succeeded"))
    seen, after = shared(made(more=more), page, memory)
    assert (seen.verdict, seen.apart, after.alone) == (Verdict.WAITING, True, True)
    assert any(note.startswith("HTTP 200 for 3 jobs has no one entry of this one") for note in seen.notes)
    assert shared(made(more=more), page, after, others=0)[0].verdict is alone
    # inside its grace an absent job is waited for as alone
    seen, after = shared(made(), page)
    assert (seen.verdict, seen.apart, after.alone) == (Verdict.WAITING, False, False)


@pytest.mark.rule("S6")
def test_a_job_that_is_named_twice_is_asked_alone_and_stops_where_it_still_is() -> None:
    entries = [{"id": "job-1", "status": "failed"}, {"id": "job-1", "status": "running"}]
    twice = answer(200, {"jobs": [*entries, {"id": "job-2", "status": "running"}]})
    seen, after = shared(made(), twice)
    assert (seen.verdict, seen.apart, after.alone, after.last_state) == (Verdict.WAITING, True, True, None)
    seen, _ = shared(made(), twice, after, others=0)
    assert (seen.verdict, seen.detail) == (Verdict.INTEGRATION, StopDetail.WRONG_JOB)


@pytest.mark.rule("H4")
def test_a_list_of_unknown_ids_that_names_the_job_is_about_it() -> None:
    got = answer(200, {"jobs": [], "unknown": ["job-1"]})
    seen, after = shared(made(more=EXPIRES + GONE), got, KNOWN)
    assert (seen.verdict, seen.apart, after.alone) == (Verdict.EXPIRED, False, False)


@pytest.mark.rule("S6", "X4")
@pytest.mark.parametrize(
    ("more", "body", "alone"),
    [
        (WHOLE, {"errors": ["job-2 is no id"]}, Verdict.FAILED),
        (RAISES, {}, Verdict.INTEGRATION),
    ],
)
def test_what_a_rule_says_of_the_whole_answer_ends_no_single_job_of_many(
    more: str, body: dict[str, Any], alone: Verdict
) -> None:
    got = answer(200, jobs(job_1="running", job_2="running") | body)
    seen, after = shared(made(more=more), got)
    assert (seen.verdict, seen.apart, after.alone) == (Verdict.WAITING, True, True)
    assert shared(made(more=more), got, others=0)[0].verdict is alone
    own = WHOLE.replace("body.errors", "item.status == 'running'")
    assert shared(made(more=own), got)[0].verdict is Verdict.FAILED


@pytest.mark.rule("X5", "B4")
def test_an_unreadable_answer_about_many_spends_no_failure_of_each_where_a_contract_counts_it_so() -> None:
    one = made(value=f'item.status"\n{COUNTED}#')
    seen, after = shared(one, answer(200, b"<html>"))
    assert (seen.verdict, seen.apart, after.alone) == (Verdict.WAITING, True, True)
    seen, _ = shared(one, answer(200, b"<html>"), others=0)
    assert (seen.verdict, seen.detail) == (Verdict.TRANSPORT_FAILURE, StopDetail.UNREADABLE)
    assert shared(one, answer(503))[0].verdict is Verdict.TRANSPORT_FAILURE


@pytest.mark.rule("E5")
@pytest.mark.parametrize("others", [0, 40])
def test_the_time_of_a_force_cancel_is_read_in_the_jobs_own_entry(others: int) -> None:
    at = Instant(START + 60_000)
    entries = [{"id": f"job-{n}", "status": "running", "force_at": iso(Instant(at + n))} for n in range(2, others + 2)]
    entries.append({"id": "job-1", "status": "running", "force_at": iso(at)})
    one = made(more=FORCE)
    seen, _ = shared(one, answer(200, {"jobs": entries}), others=others)
    assert force_available_at(one, operation(), seen.envelope or b"") == at


@pytest.mark.rule("E5", "T4")
@pytest.mark.parametrize("written", [b"1e306", b"-1e306", b"-1", b"0", b"9999999999999999", b'"1e306"', b"true", b"[]"])
@pytest.mark.parametrize("unit", ["unix_seconds", "unix_milliseconds", "iso"])
def test_a_time_that_no_time_can_be_offers_nothing_and_breaks_nothing(written: bytes, unit: str) -> None:
    one = made(more=f'{FORCE}unit = "{unit}"\n')
    seen, _ = shared(one, answer(200, b'{"jobs":[{"id":"job-1","status":"running","force_at":' + written + b"}]}"))
    assert seen.verdict is Verdict.WAITING
    assert force_available_at(one, operation(), seen.envelope or b"") is None
