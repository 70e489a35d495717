"""What a submission's saved answer gives may be a required parameter: it is read before anything is found missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pollcore.actions import SubmitSpec
from pollcore.facts import Answer, Refused
from tests.controller.house import House, house

ANSWERED = (
    ('[params.input]\nabout = "what the job works on"',
     '[params.input]\nabout = "what the job works on"\n[params.location]\nrequired = true\npattern = "[a-z]{2,9}"'),
    ('job_id = "body.id"', 'job_id = "body.id"\nparams = { location = "body.location" }'),
)  # fmt: skip


async def submitted(h: House, body: dict[str, Any], **params: str) -> Any:
    now = h.clock.now().wall
    answer = Answer(201, (("content-type", "application/json"),), json.dumps(body).encode(), now, now)
    spec = SubmitSpec(provider="acme", account="acct", params=params, response=answer)
    return (await h.core.actions.submit(spec)).operation.submitted


@pytest.mark.rule("H1", "B1")
async def test_a_required_parameter_may_come_from_the_submission_s_answer(tmp_path: Path) -> None:
    async with house(tmp_path, *ANSWERED) as h:
        given = await submitted(h, {"id": "job-1", "location": "eu"})
        assert (given.job_id, given.params) == ("job-1", {"location": "eu"})
        named = await submitted(h, {"id": "job-2"}, location="us")
        assert named.params == {"location": "us"}


@pytest.mark.rule("H1", "B1")
@pytest.mark.parametrize(
    ("body", "code"),
    [({"id": "job-1"}, "address_missing"), ({"id": "job-1", "location": "../../x"}, "bad_parameter")],
)
async def test_a_parameter_that_the_answer_gives_not_or_wrongly_is_refused(
    body: dict[str, Any], code: str, tmp_path: Path
) -> None:
    async with house(tmp_path, *ANSWERED) as h:
        with pytest.raises(Refused) as refused:
            await submitted(h, body)
        assert refused.value.code == code
        with pytest.raises(Refused) as refused:
            await h.submit("job-9")
        assert refused.value.code == "address_missing"
