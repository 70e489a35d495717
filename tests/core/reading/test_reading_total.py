"""Reading is total: any status, headers and bytes give exactly one verdict, and nothing near a success is one."""

from __future__ import annotations

import json
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.reading.case_contracts import CASES, contract_text
from tests.core.reading.helpers import HEAD, LIMITS, START, STATE, STATES, answer, contract, look, moment, operation

from pollcore.contract import parse
from pollcore.contract.near import one_edit
from pollcore.facts import Answer, Instant, Memory, StopDetail, Verdict
from pollcore.reading import explain, reread
from pollcore.reading.envelope import MAX_ENVELOPE

V = Verdict
FULL = contract(
    """
[[rules]]
status = [400, "5xx"]
when = "contains(body.error.message, 'is not found')"
category = "not_found"
[[rules]]
when = "length(body.items) > `2` && body.n < `3`"
category = "failed"
[[success.requires]]
path = "body.result.url"
format = "url"
hosts = ["files.example.test"]
[success]
forbids = ["body.error"]
fields = { extra = "body.extra" }
[[success.qualifiers]]
name = "partial"
when = "body.failed > `0`"
[identity]
job_id = "body.id"
attempt = "body.attempt"
[error]
code = "body.error.code"
message = "body.error.message"
[progress]
value = "body.done"
[not_found]
grace_seconds = 30
[forbidden]
grace_seconds = 30
[redirect]
statuses = [303]
[[hints]]
path = "body.poll_after"
unit = "seconds"
cap = "1h"
[[hints]]
path = 'http.headers."x-next"'
unit = "iso"
[[expiry]]
path = "body.expires_at"
unit = "unix_seconds"
[status.remember]
build = "body.build"
""",
    state=STATE + STATES.replace("[states]", "[states]"),
)
NAMES = st.sampled_from(
    ["retry-after", "date", "location", "x-next", "content-type", "x-request-id", "content-encoding", "set-cookie"]
)
VALUES = st.one_of(
    st.text(st.characters(codec="latin-1"), max_size=60),
    st.sampled_from(
        [
            "-1",
            "1.5",
            "1_000",
            "+5",
            "99999999999",
            "٣",
            "Mon, 02 Mar 2026 10:02:00 GMT",
            "Thu, 01 Jan 99999 00:00:00 GMT",
            "https://evil.example/x",
            "//evil",
            "../x",
            "\\\\x",
            "https://u:p@h/",
            "2026-03-02T11:00:00",
            "NaN",
            "",
        ]
    ),
)
WORDS = st.sampled_from(
    [
        "status",
        "id",
        "result",
        "url",
        "error",
        "code",
        "message",
        "items",
        "n",
        "failed",
        "attempt",
        "done",
        "poll_after",
        "expires_at",
        "build",
        "extra",
        "running",
        "succeeded",
        "SUCCEEDED",
        "job-1",
        "https://files.example.test/r",
    ]
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), WORDS, st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(WORDS, inner, max_size=6)),
    max_leaves=20,
)
BODIES = st.one_of(st.binary(max_size=200), JSON.map(lambda value: json.dumps(value).encode()))
MEMORIES = st.builds(
    Memory,
    first_seen_at=st.none() | st.just(START),
    last_state=st.none() | WORDS,
    in_a_row=st.integers(0, 5),
    forbidden=st.integers(0, 4),
    cancel_sent_at=st.none() | st.just(START),
    attempt=st.none() | st.sampled_from(["1", "2"]),
    settling=st.none() | st.just("failed:failed"),
)


@st.composite
def answers(draw: st.DrawFn) -> Answer:
    headers = tuple(draw(st.lists(st.tuples(NAMES, VALUES), max_size=6)))
    at = Instant(START + draw(st.integers(0, 10_000_000)))
    return Answer(draw(st.integers(100, 999)), headers, draw(BODIES), Instant(at - draw(st.integers(0, 30_000))), at)


@pytest.mark.rule("X5", "H7", "S1")
@given(answers(), MEMORIES)
def test_any_answer_gives_exactly_one_verdict_and_never_an_exception(got: Answer, memory: Memory) -> None:
    seen, after = look(FULL, got, memory)
    assert isinstance(seen.verdict, Verdict)
    assert (seen.detail is not None) or seen.verdict is not V.INTEGRATION
    assert after.polls == memory.polls + 1
    assert after.settling == memory.settling
    assert len(seen.envelope) <= MAX_ENVELOPE
    assert json.loads(seen.envelope)["status"] == got.status
    assert explain(FULL, operation(memory), got).observation.verdict is seen.verdict
    assert isinstance(reread(FULL, operation(after), seen.envelope, moment()).observation.verdict, Verdict)
    if seen.guidance is not None:
        assert seen.guidance.delay_ms >= 0
    if seen.verdict is V.SUCCEEDED:
        assert seen.result is not None
        assert seen.result.validated


@pytest.mark.rule("X5", "H7")
@given(answers(), st.sampled_from(CASES))
def test_the_contracts_of_the_cases_are_total_too(got: Answer, case: dict[str, Any]) -> None:
    seen, _ = look(parse(contract_text(case), "case.toml"), got)
    assert isinstance(seen.verdict, Verdict)


near_words = st.sampled_from(["succeeded", "complete", "DONE"]).flatmap(
    lambda word: st.one_of(
        st.just(word.upper() if word.islower() else word.lower()),
        st.integers(0, len(word) - 1).map(lambda n: word[:n] + word[n + 1 :]),
        st.tuples(st.integers(0, len(word)), st.sampled_from(string.ascii_letters + " _\u200b\u0430")).map(
            lambda cut: word[: cut[0]] + cut[1] + word[cut[0] :]
        ),
    )
)
PLAIN = contract(
    state=(
        '[state]\nvalue = "body.status"\n[states]\nwaiting = ["running"]\n'
        'succeeded = ["succeeded", "complete", "DONE"]\n'
    )
)


@pytest.mark.rule("S2")
@given(near_words)
def test_a_near_miss_never_reads_as_succeeded_and_is_named_as_a_hint(word: str) -> None:
    seen, _ = look(PLAIN, answer(200, {"status": word}))
    assert seen.verdict is V.UNKNOWN
    assert seen.result is None
    assert seen.near_match in ("succeeded", "complete", "DONE")
    assert f"near_match: {seen.near_match}" in seen.notes


@pytest.mark.rule("S2")
@given(
    st.one_of(
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.lists(st.text(max_size=3), max_size=2),
    )
)
def test_another_type_never_reads_as_a_listed_text(value: Any) -> None:
    seen, _ = look(PLAIN, answer(200, {"status": value}))
    assert seen.verdict in (V.UNKNOWN, V.INTEGRATION)


@pytest.mark.rule("S4", "X5")
@given(st.integers(1, 120))
def test_a_success_that_was_cut_off_is_never_a_success(cut: int) -> None:
    body = json.dumps(
        {"status": "succeeded", "id": "job-1", "result": {"url": "https://files.example.test/r"}, "z": 1}
    ).encode()
    seen, _ = look(PLAIN, answer(200, body[: len(body) - min(cut, len(body) - 1)]))
    assert (seen.verdict, seen.detail) == (V.INTEGRATION, StopDetail.UNREADABLE)


@pytest.mark.rule("S2")
@given(st.text(string.ascii_lowercase, max_size=8), st.text(string.ascii_lowercase, max_size=8))
def test_one_edit_is_symmetric_and_true_of_equal_words(left: str, right: str) -> None:
    assert one_edit(left, right) == one_edit(right, left)
    assert one_edit(left, left)
    assert not one_edit(left, left + "xy")


__all__ = ["HEAD", "LIMITS"]
