"""This job's entry in an answer about several jobs: found by its id, absent as not found, never another's."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.reading.helpers import HEAD, LIMITS, STATES, answer, look, moment, operation

from pollcore.contract import Contract, parse
from pollcore.facts import ContractError, Instant, Memory, StopDetail, Verdict
from pollcore.reading import reread

LIST = 'item = { entries = "body.jobs", job_id = "item.id" }\n'
KEYED = 'item = { entries = "body.jobs" }\n'
MORE = '[not_found]\ngrace_seconds = 60\nonce_seen = "expired"\n'
KNOWN = Memory(first_seen_at=Instant(1))


def made(item: str = LIST, more: str = MORE, value: str = "item.status") -> Contract:
    head = HEAD.replace("observation", f"{item}observation", 1)
    return parse(f'{head}[state]\nvalue = "{value}"\n{STATES}{LIMITS}{more}', "acme.toml")


def jobs(**states: str) -> dict[str, Any]:
    return {"jobs": [{"id": name.replace("_", "-"), "status": state} for name, state in states.items()]}


@pytest.mark.rule("S6", "S3")
def test_another_jobs_end_is_never_ours() -> None:
    seen, _ = look(made(), answer(200, jobs(job_2="succeeded", job_1="running")))
    assert (seen.verdict, seen.state, seen.job_seen) == (Verdict.WAITING, "running", True)
    seen, _ = look(made(), answer(200, jobs(job_2="succeeded")))
    assert (seen.verdict, seen.job_seen) == (Verdict.WAITING, False), "not found yet, inside the grace"
    assert "no entry of job job-1 in body.jobs" in seen.notes


@pytest.mark.rule("H4")
def test_an_absent_entry_means_what_a_404_means_by_contract_and_history() -> None:
    for one in (answer(200, {"jobs": []}), answer(404)):
        assert look(made(), one)[0].verdict is Verdict.WAITING
        assert look(made(), one, KNOWN)[0].verdict is Verdict.EXPIRED
        seen, _ = look(made(more=""), one)
        assert (seen.verdict, seen.detail) == (Verdict.INTEGRATION, StopDetail.NOT_FOUND)


@pytest.mark.rule("S6")
@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({"jobs": [{"id": "job-1", "status": "running"}, {"id": "job-1", "status": "failed"}]}, StopDetail.WRONG_JOB),
        ({"message": "odd"}, StopDetail.STATE_MISSING),
        ({"jobs": {"job-1": {"status": "running"}}}, StopDetail.STATE_MISSING),
        ({"jobs": [{"id": n} for n in range(5_001)]}, StopDetail.RULE_FAILED),
        (b"<html>", StopDetail.UNREADABLE),
    ],
)
def test_an_answer_that_does_not_tell_which_entry_is_ours_is_no_answer(body: Any, detail: StopDetail) -> None:
    seen, _ = look(made(), answer(200, body))
    assert (seen.verdict, seen.detail) == (Verdict.INTEGRATION, detail)


def test_a_table_by_job_id_needs_no_id_in_its_entries_and_numbers_are_ids_too() -> None:
    assert look(made(KEYED), answer(200, {"jobs": {"job-1": {"status": "failed"}}}))[0].verdict is Verdict.FAILED
    assert look(made(KEYED), answer(200, {"jobs": {"job-2": {"status": "failed"}}}))[0].verdict is Verdict.WAITING
    numbered = {"jobs": [{"id": 7, "status": "failed"}, {"id": True, "status": "succeeded"}]}
    assert look(made(), answer(200, numbered), job_id="7")[0].verdict is Verdict.FAILED
    assert look(made(), answer(200, numbered), job_id="True")[0].verdict is Verdict.WAITING


@pytest.mark.rule("S3", "H4")
def test_a_rule_over_the_item_never_holds_because_there_is_none_and_rules_over_the_body_come_first() -> None:
    more = MORE + '[[rules]]\nwhen = "body.errors"\ncategory = "rate_limited"\n'
    more += '[[rules]]\nwhen = "!(item.error)"\ncategory = "succeeded"\n'
    one = made(more=more)
    assert look(one, answer(200, {"jobs": [], "errors": [1]}))[0].verdict is Verdict.RATE_LIMITED
    assert look(one, answer(200, {"errors": [1]}))[0].verdict is Verdict.RATE_LIMITED
    assert look(one, answer(200, {"jobs": []}))[0].verdict is Verdict.WAITING
    assert look(one, answer(200, jobs(job_1="x")))[0].verdict is Verdict.SUCCEEDED


def test_where_there_is_no_entry_another_place_may_be_asked() -> None:
    more = MORE + '[[status.then]]\nwhen = "!item"\nstep = "history"\n'
    more += '[[steps]]\nname = "history"\nurl = "https://api.example.test/history/{job_id}"\n'
    more += 'item = { entries = "body.jobs", job_id = "item.id" }\n'
    one = made(more=more)
    seen, memory = look(one, answer(200, {"jobs": []}))
    assert (seen.continues, memory.step) == (True, "history")
    assert look(one, answer(200, jobs(job_1="succeeded")), memory, step="history")[0].verdict is Verdict.SUCCEEDED


@pytest.mark.rule("S6")
def test_a_large_list_is_kept_as_our_entry_alone_and_reads_again() -> None:
    many = jobs(**{f"other_{n}": "running" for n in range(300)}, job_1="running")
    one = made()
    seen, memory = look(one, answer(200, many))
    assert b"other" not in seen.envelope
    assert reread(one, operation(memory), seen.envelope, moment()).observation.state == "running"


def test_reading_an_item_that_no_key_finds_is_an_error_of_the_file() -> None:
    with pytest.raises(ContractError, match=r"acme.toml:\d+: state\.value: reads item, and nothing says where it is"):
        made(item="")
    with pytest.raises(ContractError, match=r"status\.item\.job_id: is read in each entry: write it over item"):
        made('item = { entries = "body.jobs", job_id = "body.id" }\n')


@given(
    st.lists(
        st.fixed_dictionaries(
            {"id": st.sampled_from(["job-1", "job-2", 1, None, True]), "status": st.sampled_from(["succeeded", "odd"])}
        )
        | st.none()
        | st.integers(-(10**18), 10**18)
        | st.text(max_size=3),
        max_size=6,
    )
)
@pytest.mark.rule("S1", "S3")
def test_success_is_read_only_off_the_one_entry_of_our_job(entries: list[Any]) -> None:
    ours = [one for one in entries if isinstance(one, dict) and one["id"] == "job-1"]
    seen, _ = look(made(), answer(200, {"jobs": entries}))
    assert (seen.verdict is Verdict.SUCCEEDED) == (len(ours) == 1 and ours[0]["status"] == "succeeded")
