"""A saved answer to a submission gives job id and status address where the facts say that they are."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from msgspec.structs import replace

from pollcore.adapters.contract_files import ContractFiles, _shipped_contract, _shipped_text
from pollcore.facts import Answer, Instant
from pollcore.reading import from_response
from tests.catalogue import bodies
from tests.catalogue.facts import Api, plain, shipped
from tests.catalogue.reading import JOB, START, contract_of, operation_of

BY_API = [pytest.param(api, id=api.contract) for api in shipped()]
NUMBER = 455


def handed(api: Api) -> tuple[dict[str, str], Any, str] | None:
    """(headers, body, job id) of a submission's answer as documented; None: the facts name no place."""
    told = str(plain(api.raw["submit"]["id_from"]))
    job = api.extra.get("job_id", JOB)
    header = re.match(r"header: ([A-Za-z-]+)", told)
    if header is not None:
        return {header[1].lower(): api.extra["status_url"]}, {}, job
    body = re.search(r"body: ([A-Za-z_][A-Za-z0-9_.]*)", told)
    if body is None:
        return None
    value: Any = NUMBER if "integer" in told or body[1] == "number" else job
    return {}, bodies.build({tuple(body[1].split(".")): value}), str(value)


@pytest.mark.rule("H1")
@pytest.mark.parametrize("api", BY_API)
def test_the_answer_to_a_submission_gives_the_job(api: Api) -> None:
    contract, told = contract_of(api), handed(api)
    given = api.extra.get("handover")
    if told is None and given is None:
        assert contract.submission is None or contract.submission.answer is None
        return
    headers, body, job = (given["headers"], given["body"], given["job_id"]) if given else told or ({}, {}, "")
    code = next(iter(api.raw["submit"].get("expect", [200])))
    answer = Answer(code, tuple(headers.items()), json.dumps(body).encode(), Instant(START), Instant(START + 50))
    submitted = replace(operation_of(api, contract).submitted, job_id="", status_url=None)
    base = contract.base_url or (contract.request_origins or ("https://api.instance.example",))[0]
    found = from_response(contract, submitted, answer, f"{base}/submit")
    assert found.job_id == job
    if headers:
        assert found.status_url == api.extra["status_url"]


@pytest.mark.rule("B1")
def test_a_contract_is_read_when_it_is_named_and_no_other() -> None:
    _shipped_text.cache_clear()
    _shipped_contract.cache_clear()
    files = ContractFiles(None)
    assert len(files.names()) >= len(shipped())
    assert _shipped_text.cache_info().misses == 0
    files.load("openai-batch")
    files.load("openai-batch")
    assert _shipped_text.cache_info().misses == 1
