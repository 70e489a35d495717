"""A success counts with its fields alone: every guard of every shipped contract, with and without what it asks for."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pollcore.facts import StopDetail, Verdict
from tests.catalogue import bodies
from tests.catalogue.facts import Api, confirmed, shipped
from tests.catalogue.reading import answer_for, contract_of, plain_path, read_answer

BY_API = [pytest.param(api, id=api.contract) for api in shipped()]


def successes(api: Api) -> list[dict[str, Any]]:
    found = []
    for state in api.states:
        if state.verdict is Verdict.SUCCEEDED and not state.unconfirmed and api.deviation(state) is None:
            answer = answer_for(api, state)
            assert answer is not None
            found.append(answer)
    return found


@pytest.mark.rule("S4")
@pytest.mark.parametrize("api", BY_API)
def test_a_success_without_one_of_its_fields_does_not_count(api: Api) -> None:
    contract = contract_of(api)
    for answer in successes(api):
        assert read_answer(api, answer)[0].verdict is Verdict.SUCCEEDED
        for field in contract.success.requires:
            given = api.extra.get("without", {}).get(field.name)
            path = plain_path(field.path)
            assert given is not None or path is not None, f'give "without": {{"{field.name}": answer}} in extra'
            less = given if given is not None else {**answer, "body": bodies.without(answer["body"], path or ())}
            got, _ = read_answer(api, less)
            # a field that is also part of the state makes another state of its absence; it is still no success
            assert got.verdict is not Verdict.SUCCEEDED, (field.name, less)
            if got.verdict is Verdict.INTEGRATION:
                assert got.detail in (
                    StopDetail.SUCCEEDED_WITHOUT_RESULT,
                    StopDetail.STATE_MISSING,
                    StopDetail.NOT_FOUND,
                ), field.name


@pytest.mark.rule("S4")
@pytest.mark.parametrize("api", BY_API)
def test_a_success_that_is_contradicted_does_not_count(api: Api) -> None:
    contract = contract_of(api)
    for answer in successes(api):
        for forbidden in contract.success.forbids:
            given = api.extra.get("contradicted", {}).get(forbidden.source)
            path = plain_path(forbidden)
            assert given is not None or path is not None, f'give "contradicted": {{"{forbidden.source}": fields}}'
            over = given if given is not None else bodies.build({path or (): {"code": "odd"}})
            got, _ = read_answer(api, {**answer, "body": bodies.merged(answer["body"], over)})
            assert (got.verdict, got.detail) == (Verdict.INTEGRATION, StopDetail.SUCCESS_CONTRADICTED), forbidden.source


@pytest.mark.rule("S4")
@pytest.mark.parametrize("api", BY_API)
def test_every_success_requires_something(api: Api) -> None:
    contract = contract_of(api)
    redirected = contract.redirect is not None
    assert contract.success.requires or redirected, "a success without a result would count"


@pytest.mark.rule("S4")
@pytest.mark.parametrize("api", BY_API)
def test_every_confirmed_result_field_is_required_or_its_absence_has_a_reason(api: Api) -> None:
    contract, reasons = contract_of(api), api.extra.get("not_required", {})
    required = " ".join(field.path.source for field in contract.success.requires)
    for field in api.raw["result_fields"]:
        name = confirmed(field)
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.\[\]]*", name):
            continue  # unconfirmed, or prose
        if name in reasons:
            assert len(reasons[name]) > 30
            continue
        last = name.rpartition(".")[2]
        assert re.search(rf"\b{re.escape(last)}\b", required), f"{name}: require it, or say in not_required why not"


@pytest.mark.rule("S6")
@pytest.mark.parametrize("api", BY_API)
def test_another_jobs_answer_is_no_answer(api: Api) -> None:
    identity = contract_of(api).identity
    path = plain_path(identity.job_id)
    for answer in successes(api) if path is not None else []:
        assert path is not None
        if identity.steps and answer.get("step", "status") not in identity.steps:
            continue  # the last resource of a chain has an id of its own
        other: Any = 987_654_321 if isinstance(_at(answer["body"], path), int) else "another-job"
        got, _ = read_answer(api, {**answer, "body": bodies.put(answer["body"], path, other)})
        assert (got.verdict, got.detail) == (Verdict.INTEGRATION, StopDetail.WRONG_JOB)


def _at(body: Any, path: bodies.Path) -> Any:
    for key in path:
        body = body[key]
    return body
