"""`[status.batch]`: what it needs, what it cannot go together with, and what `provider check` says of it."""

from __future__ import annotations

import pytest
from tests.core.contract.test_contract_mistakes import BATCH, error, warnings

from pollcore.contract import parse

ITEM = '[status.item]\nentries = "body.jobs"\njob_id = "item.id"\n'
MORE = "[status.batch]\n"


def without(*texts: str) -> str:
    text = BATCH
    for one in texts:
        assert one in text, one
        text = text.replace(one, "", 1)
    return text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (without(ITEM), "status.batch: needs [status.item]"),
        (without('job_id = "item.id"\n'), 'status.batch: needs job_id in [status.item], as "item.id"'),
        (without("max = 50\n"), "status.batch.max: missing"),
        (BATCH.replace("max = 50", "max = 1"), "status.batch.max: 1 is outside 2 to 1000"),
        (BATCH.replace("max = 50", "max = 1001"), "status.batch.max: 1001 is outside"),
        (BATCH.replace('gather = "5s"', 'gather = "61s"'), "status.batch.gather: 61s is outside"),
        (BATCH.replace('separator = ";"', 'separator = "123456789"'), "status.batch.separator: longer than 8"),
        (BATCH.replace("{job_ids}", "{job_id}"), 'status.batch.query: ids: "{job_id}" has no value here'),
        (BATCH.replace('ids = "{job_ids}"', 'ids = "{job_ids|number}"'), '"|number" is not known here'),
        (
            without('query = { ids = "{job_ids}" }\n').replace('["{job_ids}"]', '"{job_ids|number}"'),
            "stands alone in a list",
        ),
        (
            without('query = { ids = "{job_ids}" }\n', 'body = { ids = ["{job_ids}"] }\n'),
            "status.batch: names no {job_ids}: put it into url, query or body",
        ),
        (
            without('url = "https://api.acme.example/jobs"\n'),
            "url of [status] names {job_id}, and one request for many operations differs in the job ids alone",
        ),
        (BATCH.replace("[status.item]", 'headers = { X-Job = "{job_id}" }\n[status.item]'), "headers of [status]"),
        (BATCH.replace('method = "POST"', 'method = "GET"'), "status.batch.body: GET carries no body"),
        (BATCH.replace("[status.item]", "form = { a = 1 }\n[status.item]"), "sends a form; the ids go into url"),
        (BATCH.replace(MORE, f'{MORE}url2 = "x"\n'), "status.batch.url2: unknown key"),
        (
            BATCH.replace('url = "https://api.acme.example/jobs"\n', 'url = "https://other.example/jobs"\n'),
            "status.batch.url: https://other.example:443 is not in origins",
        ),
        (BATCH.replace("[status.item]", 'next_url = "body.next"\n[status.item]'), "status.next_url: cannot go"),
        (BATCH.replace("[status.item]", 'location = "next"\n[status.item]'), "status.location: cannot go together"),
        (BATCH.replace("[status.item]", 'provider_url = "prefer"\n[status.item]'), "status.provider_url: cannot go"),
        (BATCH.replace("[state]", '[status.remember]\nx = "body.x"\n[state]'), "status.remember: cannot go together"),
        (
            BATCH.replace("[state]", '[[status.then]]\nwhen = "!item"\nstep = "b"\n[[steps]]\nname = "b"\nurl = "https://api.acme.example/b"\n[state]'),
            "status.then: cannot go together with [status.batch]",
        ),
        (
            BATCH.replace("[state]", '[[steps]]\nname = "b"\nurl = "https://api.acme.example/b"\n[state]'),
            "status.batch: cannot go together with [[steps]]",
        ),
        (
            BATCH.replace("[state]", '[long_poll]\nparameter = "wait"\nwait = "20s"\n[state]'),
            "status.batch: cannot go together with [long_poll]: the answer would wait for the slowest job of all",
        ),
        (BATCH.replace("item.status", "body.jobs[0].status"), "state.value: reads body.jobs[0].status, and in"),
        (BATCH + '[[success.requires]]\npath = "body.jobs[0].url"\n', "success.requires[1].path: reads body.jobs"),
        (BATCH + '[error]\nmessage = "body.jobs[].reason | [0]"\n', "error.message: reads body.jobs[].reason"),
    ],
)  # fmt: skip
def test_what_would_make_two_requests_differ_is_refused_with_what_to_write(text: str, said: str) -> None:
    assert said in error(text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('kind = "none"', 'kind = "bearer"\nleast_mode = "per_call"'),
        ("[status.item]", 'observation = "action"\n[status.item]'),
    ],
)
def test_a_batch_that_no_two_operations_ever_share_is_warned_of(old: str, new: str) -> None:
    assert not any("never share" in one for one in warnings(BATCH))
    (told,) = [one for one in warnings(BATCH.replace(old, new, 1)) if "never share" in one]
    assert "status.batch: two operations never share a request" in told


def test_what_a_batch_does_not_name_is_the_status_requests_own() -> None:
    made = parse(without('body = { ids = ["{job_ids}"] }\n'), "acme.toml")
    plan = made.steps[0].batch
    assert plan is not None
    assert (plan.most, plan.gather, plan.separator, plan.joined) == (50, 5_000, ";", True)
    assert (plan.request.method, plan.request.body) == ("POST", None)
    assert parse(without('gather = "5s"\n', 'separator = ";"\n'), "acme.toml").steps[0].batch.gather == 1_000  # type: ignore[union-attr]
