"""What one answer may cost: counted over all that is read out of it, and beyond it a stop in words, never a stall."""

from __future__ import annotations

import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.reading.helpers import URL, answer, contract, look, operation
from tests.core.reading.test_reading_item import made

from pollcore.contract.counted import COST_OF_STEP, MAX_SHARED_STEPS, MAX_STEPS, Steps, TooCostly
from pollcore.contract.expressions import compile_expression
from pollcore.contract.patterns import MAX_COST, MAX_SUBJECT, glob, regex
from pollcore.facts import Exchange, StopDetail, Verdict
from pollcore.reading import Opened, read
from pollcore.reading.strict_json import MAX_NODES

STATE = '[state]\nvalue = "body.status"\n[states]\nwaiting = ["running"]\nsucceeded = ["done"]\n'


def counts(expression: str) -> str:
    """A rule over *expression*; it goes before the state."""
    return f'[[rules]]\nwhen = "{expression} > `1000000000`"\ncategory = "failed"\n'


COSTLY: list[tuple[str, Any]] = [
    # what the hostile tester's provider sent: 480 texts of 512 characters, each a cube of its length
    ("length(body.l[?match(@, '(a*)a*a*b')])", {"l": ["a" * 252] * 950}),
    ("length(body.l[?match(@, '(.*)(.*)(.*)b')])", {"l": ["a" * 60] * 4_000}),
    ("length(body.l[?match(@, '.*a?a?a?a?a?b')])", {"l": ["a" * 700] * 300}),
    ("length(sort_by(body.l, &to_string(@)))", {"l": [{"a": n} for n in range(9_000)]}),
    ("length(body.l[*].[@, @, @, @][*].[@, @, @, @][*].[@, @, @, @][])", {"l": [{"a": n} for n in range(9_000)]}),
    ("length(join(body.s, body.l))", {"s": "x" * 60_000, "l": ["y"] * 15_000}),
    ("length(" + "to_string([" * 14 + "body.s" + "])" * 14 + ")", {"s": '"' * 60_000}),
    ("length(to_string([body.l, body.l, body.l, body.l]))", {"l": ["xy" * 90] * 1_000}),
    ("length([" + ", ".join(["body.x == body.y"] * 20) + "])",
     {"x": [[n] for n in range(4_900)], "y": [[n] for n in range(4_900)]}),
    ("length([" + ", ".join(["contains(body.x, body.y)"] * 20) + "])",
     {"x": [["z" * 20] for _ in range(6_000)], "y": []}),
]  # fmt: skip


@pytest.mark.rule("H7", "X5")
@pytest.mark.parametrize(("expression", "body"), COSTLY, ids=[f"{n}" for n in range(len(COSTLY))])
def test_an_answer_that_costs_too_much_to_read_is_an_integration_failure_that_names_the_rule(
    expression: str, body: dict[str, Any]
) -> None:
    many = "".join(counts(expression) for _ in range(12))
    one = contract(many, state=STATE)
    seen, _ = look(one, answer(200, {"status": "running", **body}))
    assert (seen.verdict, seen.detail) == (Verdict.INTEGRATION, StopDetail.RULE_FAILED)
    assert f"takes more than {MAX_STEPS:,} steps" in (seen.explanation or "")
    assert "rules[" in (seen.explanation or "")
    assert "takes less" in (seen.explanation or "")


@pytest.mark.rule("H7")
def test_the_steps_of_one_answer_are_counted_over_all_its_expressions_together() -> None:
    once = "length(body.l[?a == `1`])"
    body = {"status": "running", "l": [{"a": n} for n in range(9_000)]}
    assert look(contract(counts(once), state=STATE), answer(200, body))[0].verdict is Verdict.WAITING
    often = contract("".join(counts(once) for _ in range(20)), state=STATE)
    assert look(often, answer(200, body))[0].detail is StopDetail.RULE_FAILED


@pytest.mark.rule("H7", "S1")
def test_ordinary_conditions_over_the_largest_answers_are_read() -> None:
    body = {"status": "running", "l": [{"a": f"step {n} of 10 is done", "b": n} for n in range(MAX_NODES // 3 - 10)]}
    rules = [
        "length(body.l[?b > `3`])",
        "length(body.l[?a == 'x' && b == `1`])",
        "length(body.l[?match(a, 'step ([0-9]+) of .*')])",
        "length(to_string(body.l[0]))",
    ]
    one = contract("".join(counts(rule) for rule in rules), state=STATE)
    assert look(one, answer(200, body))[0].verdict is Verdict.WAITING


@pytest.mark.rule("H7")
def test_an_answer_that_several_operations_read_has_one_count_for_all_of_them() -> None:
    one = contract(counts("length(body.l[?a == `1`])"), state=STATE)
    got = answer(200, {"status": "running", "l": [{"a": n} for n in range(9_000)]})
    shared, left = Opened(), []
    for _ in range(50):
        seen, _ = read(one, operation(), (Exchange("status", URL, got, 49),), shared)
        left.append(shared.steps.left)
    assert shared.steps.most == MAX_SHARED_STEPS
    # which one of them uses up the last step says nothing about its job: each of the rest is asked for alone
    assert seen.apart
    assert left[0] > 0 > left[-1]


@pytest.mark.rule("H7", "B2")
@pytest.mark.parametrize(
    ("entries", "most"),
    [
        ("body.jobs[].{id: id, status: status}", 1_000),
        ("body.jobs[?kind=='x'].{id: id, status: status, steps: steps}", 500),
        ("body.jobs[?kind=='none'].{id: id, status: status}", 500),
    ],
)
def test_entries_that_are_computed_are_computed_once_for_all_that_share_the_answer(entries: str, most: int) -> None:
    one = made(f'item = {{ entries = "{entries}", job_id = "item.id" }}\n')
    listed = [{"id": f"job-{n}", "kind": "x", "status": "running", "steps": [1]} for n in range(most)]
    got, shared = answer(200, {"jobs": listed}), Opened()
    for n in range(most):
        left = shared.steps.left
        seen, _ = read(one, operation(job_id=f"job-{n}"), (Exchange("status", URL, got, most - 1),), shared)
        # whether it is there or not, no one is asked alone for what it cost
        assert (seen.verdict, seen.apart) == (Verdict.WAITING, False)
        assert n == 0 or left - shared.steps.left <= 10
    assert not shared.is_too_costly


@pytest.mark.rule("H7")
def test_entries_that_cost_too_much_cost_it_once_and_say_so_to_each() -> None:
    one = made(f'item = {{ entries = "{COSTLY[0][0].removeprefix("length(")[:-1]}", job_id = "item.id" }}\n')
    got, shared = answer(200, COSTLY[0][1]), Opened()
    for _ in range(3):
        seen, _ = read(one, operation(), (Exchange("status", URL, got, 2),), shared)
        assert seen.apart
        assert shared.is_too_costly
    alone, _ = look(one, got)
    assert f"takes more than {MAX_STEPS:,} steps" in (alone.explanation or "")


@pytest.mark.rule("S8")
def test_an_answer_read_again_under_another_contract_has_the_entries_of_that_one() -> None:
    got, shared = answer(200, {"jobs": [{"id": "job-1", "status": "running"}], "more": []}), Opened()
    found = []
    for entries in ("body.jobs", "body.more", "body.jobs"):
        one = made(f'item = {{ entries = "{entries}", job_id = "item.id" }}\n')
        seen, _ = read(one, operation(), (Exchange("status", URL, got, 1),), shared)
        found.append(seen.job_seen)
    assert found == [True, False, True]


@pytest.mark.rule("H7")
def test_steps_once_used_up_refuse_everything_that_follows() -> None:
    steps = Steps(3)
    plain, computed = compile_expression("body.a"), compile_expression("length(body.l)")
    for _ in range(2):
        with pytest.raises(TooCostly, match="more than 3 steps"):
            computed.read({"body": {"l": [1]}}, steps)
    assert plain.read({"body": {"a": 1}}, steps) == 1


@pytest.mark.rule("H7")
def test_states_and_required_fields_that_are_matched_count_too() -> None:
    steps = Steps(10)
    with pytest.raises(TooCostly):
        steps.matches(regex("a*a*b"), "a" * 200)
    assert 200**2 // COST_OF_STEP > 10
    assert Steps().matches(regex("a*a*b"), "a" * 200 + "b")


@pytest.mark.rule("H7")
@pytest.mark.parametrize(
    ("text", "longest"),
    [
        ("done ([0-9]+) of .*", MAX_SUBJECT),
        (".* at ([0-9]+)%.*", MAX_SUBJECT),
        (r"https://[a-z.]+/jobs/([^/?]+)", MAX_SUBJECT),
        (r"[\s\S]*[^0-9]([0-9]{1,3})%\|[\s\S]*", MAX_SUBJECT),
        ("(a*)a*a*b", 256),
        ("(.*)(.*)(.*)b", 64),
        (r"\w*\b\w*b", 256),
        (r"\x41*\x42*b", 256),
        ("ä*ä*b", 256),
        ("a*$a*b", MAX_SUBJECT),
        ("(?:a*|b)a*c", MAX_SUBJECT),
        ("a?a?a?a*a*b", 1_448),
    ],
)
def test_how_long_a_text_may_be_follows_from_what_matching_it_can_cost(text: str, longest: int) -> None:
    pattern = regex(text)
    assert pattern.longest == longest
    assert 0 < pattern.cost(longest) <= MAX_COST
    assert pattern.cost(longest + 1) == 0


@pytest.mark.rule("S2")
@settings(max_examples=300)
@given(st.text("ab*?", max_size=8), st.text("ab", max_size=10))
def test_a_glob_matches_exactly_what_trying_every_place_would(text: str, subject: str) -> None:
    def tried(parts: str, left: str) -> bool:
        if not parts:
            return not left
        if parts[0] == "*":
            return any(tried(parts[1:], left[n:]) for n in range(len(left) + 1))
        return bool(left) and parts[0] in ("?", left[0]) and tried(parts[1:], left[1:])

    if text.count("*") <= 3:
        assert glob(text).matches(subject) == tried(text, subject)


@pytest.mark.rule("H7")
def test_what_is_counted_does_not_depend_on_the_machine() -> None:
    left = []
    body = msgspec.json.decode(msgspec.json.encode({"l": [{"a": str(n)} for n in range(500)]}))
    for _ in range(2):
        steps = Steps()
        compile_expression("join(',', sort(body.l[?match(a, '([0-9]+)5')].a))").read({"body": body}, steps)
        left.append(steps.left)
    assert left[0] == left[1] < MAX_STEPS


@pytest.mark.rule("H7")
def test_what_would_be_joined_is_counted_before_it_is_built() -> None:
    joined = compile_expression("join(body.s, body.l)")
    body = {"s": "x" * 60_000, "l": ["y"] * 15_000}
    tracemalloc.start()
    try:
        with pytest.raises(TooCostly):
            joined.read({"body": body}, Steps())
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()
