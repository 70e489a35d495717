"""A status made of children: who is asked next, and what all of them mean together."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.reading.helpers import answer, contract, look, moment, operation

from pollcore.contract import Contract, requests
from pollcore.facts import Memory, Observation, StopDetail, Verdict
from pollcore.reading import reread

MORE = """
[[status.then]]
when = "body.parts"
step = "part"
[[steps]]
name = "part"
url = "https://api.example.test/part/{{each}}"
each = {{ children = "body.parts", most = 4, together = "{together}" }}
[not_found]
grace_seconds = 60
"""
WORST = (Verdict.FAILED, Verdict.EXPIRED, Verdict.CANCELLED, Verdict.SUCCEEDED)
ENDS = [verdict.value for verdict in WORST]


def made(together: str = "worst") -> Contract:
    return contract(MORE.format(together=together))


def asked(one: Contract, memory: Memory) -> str:
    return requests.status_request(one, operation(memory), None).url.rpartition("/")[2]


def play(one: Contract, states: dict[str, str], memory: Memory) -> tuple[Observation, Memory, list[str]]:
    """One round: the listing answer, then every child that is asked. Returns who was asked."""
    seen, memory = look(one, answer(200, {"parts": list(states)}), memory)
    found: list[str] = []
    while seen.continues:
        found.append(asked(one, memory))
        seen, memory = look(one, answer(200, {"status": states[found[-1]]}), memory, step="part")
        assert len(found) <= 4
    return seen, memory, found


@pytest.mark.rule("S1", "S3")
@pytest.mark.parametrize("together", ["worst", "all", "any"])
def test_every_mix_of_three_ends_has_the_verdict_that_the_rule_says(together: str) -> None:
    for mix in product(ENDS, repeat=3):
        seen, memory, found = play(made(together), dict(zip("abc", mix, strict=True)), Memory())
        verdicts = [Verdict(text) for text in mix]
        worst = min(verdicts, key=WORST.index)
        if together == "any" and Verdict.SUCCEEDED in verdicts:
            assert (seen.verdict, len(found)) == (Verdict.SUCCEEDED, verdicts.index(Verdict.SUCCEEDED) + 1)
        elif together == "all" and worst is not Verdict.SUCCEEDED:
            first = next(n for n, verdict in enumerate(verdicts) if verdict is not Verdict.SUCCEEDED)
            assert (seen.verdict, len(found)) == (verdicts[first], first + 1)
        else:
            assert (seen.verdict, found) == (worst, ["a", "b", "c"])
        assert memory.step == "status"


@pytest.mark.rule("B2", "S3")
def test_what_has_ended_is_not_asked_again_and_new_children_are() -> None:
    one = made()
    seen, memory, found = play(one, {"a": "succeeded", "b": "running"}, Memory())
    assert (seen.verdict, seen.state, found) == (
        Verdict.WAITING,
        "1 of 2 children ended, 1 succeeded",
        ["a", "b"],
    )
    assert asked(one, memory) == "job-1"
    seen, memory, found = play(one, {"a": "failed", "b": "running", "c": "queued"}, memory)
    assert (seen.verdict, found) == (Verdict.WAITING, ["b", "c"])
    seen, memory, found = play(one, {"a": "succeeded", "b": "succeeded", "c": "succeeded"}, memory)
    assert (seen.verdict, found) == (Verdict.SUCCEEDED, ["b", "c"])
    seen, memory, found = play(one, {"a": "x", "b": "x", "c": "x"}, memory)
    assert (seen.verdict, found) == (Verdict.SUCCEEDED, []), "all had ended: no child is asked"


@pytest.mark.rule("S2", "H3", "H5")
@pytest.mark.parametrize(
    ("got", "verdict"),
    [
        (answer(200, {"status": "odd"}), Verdict.UNKNOWN),
        (answer(200, {"status": "paused"}), Verdict.NEEDS_HUMAN),
        (answer(503), Verdict.TRANSPORT_FAILURE),
        (answer(429), Verdict.RATE_LIMITED),
        (answer(403), Verdict.DENIED),
        (answer(404), Verdict.INTEGRATION),
        (answer(200, b"<html>"), Verdict.INTEGRATION),
    ],
)
def test_what_is_neither_waiting_nor_an_end_stops_as_it_would_alone_and_the_same_child_is_next(
    got: Any, verdict: Verdict
) -> None:
    one = made()
    _, memory = look(one, answer(200, {"parts": ["a", "b"]}))
    seen, after = look(one, got, memory, step="part")
    assert (seen.verdict, seen.continues) == (verdict, False)
    assert asked(one, after) == "a"


@pytest.mark.rule("S1")
@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (["a", "b", "c", "d", "e"], "lists 5 children, at most 4 are allowed"),
        ([{"id": "a"}], "is no list of ids"),
        ([True], "is no list of ids"),
        (["x" * 2_049], "is no list of ids"),
        ("abc", "is no list of ids"),
    ],
)
def test_a_list_of_children_that_cannot_be_used_stops_and_asks_nobody(parts: Any, said: str) -> None:
    seen, _ = look(made(), answer(200, {"parts": parts}))
    assert (seen.verdict, seen.detail) == (Verdict.INTEGRATION, StopDetail.RULE_FAILED)
    assert said in str(seen.explanation)


@pytest.mark.rule("S1")
def test_without_children_the_listing_answer_speaks_for_itself() -> None:
    one = contract(MORE.format(together="all").replace('"body.parts"\nstep', '"body.status"\nstep'))
    none: list[Any] = [None, []]
    for parts in none:
        assert look(one, answer(200, {"status": "succeeded", "parts": parts}))[0].verdict is Verdict.SUCCEEDED


@pytest.mark.rule("S6")
def test_a_child_has_an_id_of_its_own_and_is_no_wrong_job() -> None:
    one = contract(MORE.format(together="all") + '[identity]\njob_id = "body.id"\n')
    seen, memory = look(one, answer(200, {"id": "job-1", "parts": ["a"]}))
    seen, _ = look(one, answer(200, {"id": "a", "status": "succeeded"}), memory, step="part")
    assert seen.verdict is Verdict.SUCCEEDED
    assert look(one, answer(200, {"id": "job-2", "parts": ["a"]}))[0].detail is StopDetail.WRONG_JOB


@pytest.mark.rule("S6")
def test_a_stored_childs_answer_read_again_counts_for_that_child() -> None:
    one = made()
    _, memory = look(one, answer(200, {"parts": ["a", "b"]}))
    seen, memory = look(one, answer(200, {"status": "failed"}), memory, step="part")
    assert asked(one, memory) == "b"
    found = reread(one, operation(memory), seen.envelope, moment())
    again, after = found.observation, found.memory
    assert again.continues
    assert [child.get("verdict") for child in after.values["children"]] == ["failed", None]


@given(
    st.lists(st.sampled_from([*ENDS, "running", "odd", None, 7]), min_size=1, max_size=30),
    st.sampled_from(["worst", "all", "any"]),
)
@pytest.mark.rule("S1", "B2")
def test_whatever_children_answer_a_round_is_bounded_and_never_a_success_without_one(
    answers: list[Any], together: str
) -> None:
    one, memory = made(together), Memory()
    step, succeeded, asked_in_round = "status", False, 0
    for state in answers:
        listing = step == "status"
        body = {"parts": ["a", "b", "c"]} if listing else {"status": state}
        seen, memory = look(one, answer(200, body), memory, step=step)
        told = state in (*ENDS, "running")
        asked_in_round = 0 if listing else asked_in_round + told
        assert asked_in_round <= 3 or not seen.continues
        succeeded = succeeded or (not listing and state == "succeeded")
        assert seen.verdict is not Verdict.SUCCEEDED or succeeded
        step = memory.step or "status"
