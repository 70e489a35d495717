"""Who shares a request with whom: nobody is lost or asked twice, nobody goes with a request that is not his own."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollcore.contract import Contract, batch_requests, parse, requests
from pollcore.controller.company import Company
from pollcore.controller.due import grouped, numbered
from pollcore.controller.lessons import Went
from pollcore.controller.prepare import Ready, sent_event
from pollcore.controller.suspects import MAX_SUSPECTS
from pollcore.facts import BootMs, Instant, Memory, Moment, Operation, Status, Submitted
from pollcore.ports import Claim, Coming

NOW = Moment(Instant(1_700_000_000_000), BootMs(500_000), "b")
TEXT = """
schema = 1
name = "acme"
origins = ["https://a.example", "https://b.example"]
[credential]
kind = "bearer"
optional = true
[params.region]
required = true
pattern = '[a-z]+'
[params.input]
about = "what the job works on"
[status]
method = "POST"
url = "https://{params.region}.example/v1/jobs"
body = { ids = ["{job_id}"] }
item = { entries = "body.jobs", job_id = "item.id" }
batch = { max = MOST, gather = "5s", BATCH }
[state]
value = "item.status"
[states]
waiting = ["running"]
[submission]
method = "POST"
url = "https://a.example/v1/jobs"
body = { input = "{params.input}" }
[limits]
deadline_basis = "test"
"""


def contract(batch: str = 'body = { ids = ["{job_ids}"] }', most: int = 3) -> Contract:
    text = TEXT
    if "query" in batch:
        text = text.replace('method = "POST"\n', "", 1).replace('body = { ids = ["{job_id}"] }\n', "")
        text = text.replace('/v1/jobs"\nitem', '/v1/jobs/{job_id}"\nitem')
    return parse(text.replace("BATCH", batch).replace("MOST", str(most)), "acme.toml")


def operation(n: int, due: int = 0, **changes: Any) -> Operation:
    given = {"provider": "acme", "account": "a", "job_id": f"j{n}", "params": {"region": "a", "input": f"i{n}"}}
    given |= {key: changes.pop(key) for key in ("account", "job_id", "params") if key in changes}
    fields: dict[str, Any] = {
        "operation_id": f"op-{n}",
        "submitted": Submitted(**given),
        "status": Status.WAITING,
        "contract_digest": "d",
        "started_at": Instant(0),
        "submitted_at": Instant(0),
        "boot_id": "b",
        "due_boot": BootMs(NOW.boot + due),
        "deadline_at": Instant(NOW.wall + 3_600_000),
        "deadline_boot": BootMs(NOW.boot + 3_600_000),
        "max_status_requests": 9,
        "max_transport_failures": 3,
        "max_rate_limited": 3,
    }
    return Operation(**{**fields, **changes})


KINDS = st.fixed_dictionaries(
    {},
    optional={
        "account": st.sampled_from(["a", "b"]),
        "credential": st.sampled_from([None, "one", "two"]),
        "params": st.sampled_from([{"region": "a"}, {"region": "b"}, {"region": "a", "input": "other"}]),
        "memory": st.sampled_from([Memory(), Memory(alone=True)]),
        "check_once": st.booleans(),
    },
)


@pytest.mark.rule("B2", "K3", "T8")
@given(kinds=st.lists(KINDS, max_size=12), dues=st.lists(st.integers(-20_000, 0), min_size=12, max_size=12),
       most=st.integers(2, 5), blind=st.booleans())  # fmt: skip
def test_each_goes_once_with_those_whose_request_is_the_same_but_for_the_ids(
    kinds: list[dict[str, Any]], dues: list[int], most: int, blind: bool
) -> None:
    made, company = contract(most=most), Company()
    operations = [operation(n, due, **kind) for n, (kind, due) in enumerate(zip(kinds, dues, strict=False))]
    alone = [one for one in operations if batch_requests.together(made, one) is None]
    assert {one.operation_id for one in alone} == {
        one.operation_id for one in operations if one.memory.alone or one.check_once
    }
    company.clear(None if blind else ())
    for one in operations:
        if (key := batch_requests.together(made, one)) is not None:
            company.add(key, made, one, NOW)
    gone: list[tuple[Operation, ...]] = []
    while (going := company.take(NOW)) is not None:
        gone.append(going)
    late = NOW.after(60_000)
    kept = len(company)
    while (going := company.take(late)) is not None:
        gone.append(going)
    assert blind or not kept, "nobody comes, and somebody waits"
    names = [one.operation_id for group in gone for one in group]
    assert sorted(names + [one.operation_id for one in alone]) == sorted(one.operation_id for one in operations)
    for group in gone:
        assert 1 <= len(group) <= most
        whose = {(one.submitted.account, one.credential) for one in group}
        assert len(whose) == 1
        # as each would ask alone, but for the ids
        bare = {_without_ids(requests.status_request(made, one, one.credential)) for one in group}
        assert len(bare) == 1
        assert _without_ids(batch_requests.batch_request(made, group)) == bare.pop()


@pytest.mark.rule("O7", "T6")
def test_who_waits_for_a_group_that_is_forgotten_meanwhile_goes_all_the_same() -> None:
    made, company = contract(most=4), Company()
    held = [operation(n) for n in range(4)]
    company.learn(made, [one.operation_id for one in held], Went.NONE, NOW)
    for one in held:
        key = batch_requests.together(made, one)
        assert key is not None
        company.add(key, made, one, NOW)
    for n in range(10):
        company.learn(made, [f"op-{n}-{m}" for m in range(MAX_SUSPECTS // 10)], Went.NONE, NOW)
    late, gone = NOW.after(60_000), 0
    for _ in range(len(held)):
        going = company.take(late)
        assert going, "those that wait are given, never nobody"
        gone += len(going)
    assert (gone, company.take(late)) == (len(held), None)


def _without_ids(request: Any) -> Any:
    return msgspec.structs.replace(request, body=None)


@pytest.mark.rule("T4")
@given(coming=st.lists(st.tuples(st.integers(1, 20_000), st.sampled_from(["a", "b"])), max_size=4))
def test_somebody_is_waited_for_only_if_he_comes_in_time_and_may_share(coming: list[tuple[int, str]]) -> None:
    made, company = contract(), Company()
    told = [Coming("acme", account, None, made.digest, BootMs(NOW.boot + due)) for due, account in coming]
    company.clear(tuple(told))
    one = operation(1)
    key = batch_requests.together(made, one)
    assert key is not None
    company.add(key, made, one, NOW)
    awaited = any(account == "a" and due <= 5_000 for due, account in coming)
    assert (company.take(NOW) is None) == awaited
    if awaited:
        assert company.next_at() == NOW.boot + 5_000
        assert company.take(NOW.after(5_000)) == (one,)


@pytest.mark.rule("B2")
def test_an_id_that_holds_the_separator_goes_alone_where_the_ids_are_one_text() -> None:
    joined = contract('url = "https://{params.region}.example/v1/jobs", query = { ids = "{job_ids}" }, separator = ";"')
    assert batch_requests.together(joined, operation(1, job_id="a;b")) is None
    assert batch_requests.together(joined, operation(1, job_id="a,b")) is not None
    assert batch_requests.together(contract(), operation(1, job_id="a;b")) is not None
    # "a:" and ":b" around "::" could be told from no other pair
    double = contract(
        'url = "https://{params.region}.example/v1/jobs", query = { ids = "{job_ids}" }, separator = "::"'
    )
    apart = [
        batch_requests.together(double, operation(1, job_id=one)) is None for one in ("a:", ":b", "a::b", "a:b", ":")
    ]
    assert apart == [True, True, True, False, True]
    three = [operation(n, job_id=name) for n, name in enumerate(("a b", "c/d", "e"))]
    assert batch_requests.batch_request(joined, three).url.endswith("?ids=a%20b%3Bc%2Fd%3Be")


@pytest.mark.rule("K3")
@pytest.mark.parametrize("job_id", ["a&limit=1", "a%2Cb", "a;b", "a+b"])
def test_an_id_that_means_more_than_itself_in_a_url_goes_alone_where_ids_are_put_in_as_they_are(job_id: str) -> None:
    raw = contract('url = "https://a.example/v1/jobs?ids={job_ids|raw}", query = { all = "1" }')
    assert batch_requests.together(raw, operation(1, job_id=job_id)) is None
    assert batch_requests.together(raw, operation(1, job_id="projects/p:1/a.b")) is not None
    encoded = contract('url = "https://a.example/v1/jobs", query = { ids = "{job_ids}" }')
    assert batch_requests.together(encoded, operation(1, job_id=job_id)) is not None


JSON_IN_A_TEXT = """filter = '{{"id":["{job_ids}"]}' }, separator = '","'"""
AROUND = [
    # the text of the ids is a whole value: any id is encoded as it should be
    ('query = { ids = "{job_ids}" }', ["a b", 'a"b', "a)b", "a/b"], []),
    ('query = { ids = "{job_ids}" }, separator = "|"', ['a"b', "a)b"], ["a|b"]),
    ('body = { ids = "{job_ids}" }', ['a"b', "a\\b", "a)b"], []),
    ('body = { ids = ["x", "{job_ids}"] }', ['a"b', "a,b"], []),
    # JSON inside a text: what would have to be escaped goes alone
    (f"query = {{ {JSON_IN_A_TEXT}", ["a b", "a)b", "a:b"], ['a"b', "a\\", "\x7f", "\xe9"]),
    (f"body = {{ {JSON_IN_A_TEXT}", ["a b", "arn:a/b"], ['x"],"all":["', "a\\", "a\n"]),
    # any other syntax: letters, digits and _ . - mean themselves
    ('query = { where = "id in ({job_ids})" }', ["a-b_c.d", "17"], ["a b", "a)", "a'b", "-a", "a:b", ""]),
    ('body = { where = "id in ({job_ids})" }', ["a-b"], ["1) or (1=1", "a)"]),
    ('query = { q = "{job_ids}" }, separator = " OR "', ["a-b"], ["a b", "a)", "a OR b"]),
    ('url = "https://a.example/v1/jobs?where=in({job_ids})"', ["a-b"], ["a)", "a b"]),
    ('url = "https://a.example/v1/jobs/{job_ids}/all"', ["a)", "a b"], []),
    ('url = "https://a.example/v1/jobs?x=1&ids={job_ids}&all=1"', ["a)", "a b"], []),
]  # fmt: skip


@pytest.mark.rule("K3", "B2")
@pytest.mark.parametrize(("batch", "shares", "alone"), AROUND, ids=range(len(AROUND)))
def test_an_id_that_would_change_the_text_around_it_goes_alone(batch: str, shares: list[str], alone: list[str]) -> None:
    body = batch if "query" in batch or "body" in batch else f"{batch}, body = {{}}"
    made = contract(body if "url" in body or "body" in body else f'url = "https://a.example/v1/jobs", {body}')
    for job_id in (*shares, *alone):
        asked = batch_requests.together(made, operation(1, job_id=job_id))
        assert (asked is None) == (job_id in alone), job_id


@pytest.mark.rule("K3")
@given(ids=st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=5, unique=True))
def test_json_in_a_text_names_the_ids_that_share_it_and_nothing_else(ids: list[str]) -> None:
    made = contract(f"body = {{ {JSON_IN_A_TEXT}")
    sharing = [operation(n, job_id=one) for n, one in enumerate(ids)]
    sharing = [one for one in sharing if batch_requests.together(made, one) is not None]
    if sharing:
        body = json.loads(batch_requests.batch_request(made, sharing).body or b"")
        assert json.loads(body["filter"]) == {"id": [one.submitted.job_id for one in sharing]}


def test_whoever_is_due_and_was_not_loaded_is_waited_for_as_one_who_comes() -> None:
    made = contract(most=5)
    for more in (False, True):
        company = Company()
        company.clear((), more=more)
        one = operation(0)
        key = batch_requests.together(made, one)
        assert key is not None
        company.add(key, made, one, NOW)
        assert (company.take(NOW) is None) is more


def test_ids_fill_a_list_as_texts_or_numbers_and_what_is_no_number_goes_alone() -> None:
    made = contract('body = { ids = ["first", "{job_ids|number}"] }')
    two = [operation(1, job_id="7"), operation(2, job_id="11")]
    assert batch_requests.batch_request(made, two).body == b'{"ids":["first",7,11]}'
    assert batch_requests.together(made, operation(3, job_id="x7")) is None


def test_a_request_asks_for_no_more_than_its_address_can_hold() -> None:
    made = contract('url = "https://{params.region}.example/v1/jobs", query = { ids = "{job_ids}" }', 1_000)
    many = [operation(n, job_id=f"{n:0100d}") for n in range(1_000)]
    count = batch_requests.fitting(made, many)
    assert 10 < count < 1_000
    assert batch_requests.fitting(made, many[:5]) == 5


def ready(n: int, made: Contract, **changes: Any) -> Ready:
    one = operation(n)
    asks = changes.pop("shares", True)
    told = sent_event(one, NOW)
    claim = Claim(operation=one, step="status", origin="https://a.example:443", method="POST", event=told, **changes)
    return Ready(claim, made, requests.status_request(made, one, None), None, changes.get("secret_digest"), False, asks)


@pytest.mark.rule("G6", "H3", "T11")
def test_what_was_prepared_for_one_request_parts_where_leave_or_secret_differ() -> None:
    made = contract()
    rotated = msgspec.structs.replace(ready(2, made), secret_digest="another")
    alone = ready(3, made, shares=False)
    groups = grouped([ready(0, made), alone, ready(1, made), rotated])
    assert [[one.claim.operation.operation_id for one in group] for group in groups] == [
        ["op-0", "op-1"],
        ["op-3"],
        ["op-2"],
    ]
    assert [[one.claim.group for one in group] for group in numbered(groups)] == [[0, 0], [None], [None]]
