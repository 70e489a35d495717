"""What every shipped contract sends: method, address, headers and body as documented, to pinned origins alone."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from pollcore.contract import requests
from pollcore.contract.origins import covers, normalise_origin
from pollcore.facts import FORCE, ResultPointer
from tests.catalogue.facts import Api, confirmed, plain, shipped
from tests.catalogue.reading import contract_of, document, operation_of, whole

BY_API = [pytest.param(api, id=api.contract) for api in shipped()]
MIN_CONSEQUENCES = 30


def shape(documented: str, job: str) -> re.Pattern[str] | None:
    """A pattern for a documented URL: `{id}` is the job's, encoded or not, `{host}` and `{api}` may hold a path, others
    are one part of it. None: the fact is prose, or says "verbatim"."""
    if not re.match(r"https://|\{(?:host|api)\}", documented) or " " in documented:
        return None
    ids = "|".join(re.escape(quote(job, safe=safe)) for safe in ("", "/"))
    known = {"{id}": f"(?:{ids})", "{name}": f"(?:{ids})", "{host}": ".+?", "{api}": ".+?", "{nextUri}": ".+?"}
    path = documented.partition("?")[0]
    pieces = [known.get(part, r"[^/?]+?") if part[0] == "{" else re.escape(part) for part in _PIECES.findall(path)]
    return re.compile("".join(pieces))


_PIECES = re.compile(r"\{[^}]*\}|[^{]+")


def assert_is_documented(url: str, documented: str, job: str) -> None:
    pattern = shape(documented, job)
    if pattern is None:
        return
    assert pattern.fullmatch(url.partition("?")[0]), f"{url} is not {documented}"
    for name in re.findall(r"[?&]([A-Za-z_]+)=", documented):
        assert re.search(rf"[?&]{name}=", url), f"{url} lacks {name} of {documented}"


def filled(template: Any, job: str) -> Any:
    if isinstance(template, dict):
        return {key: filled(value, job) for key, value in template.items()}
    if isinstance(template, list):
        return [filled(value, job) for value in template]
    return template.replace("{id}", job) if isinstance(template, str) else template


def holds(sent: Any, documented: Any) -> bool:
    """Whether *sent* has everything that is documented; numbers may have been ids in text."""
    if isinstance(documented, dict):
        return isinstance(sent, dict) and all(key in sent and holds(sent[key], documented[key]) for key in documented)
    return bool(sent == documented or str(sent) == documented)


@pytest.mark.rule("K3")
@pytest.mark.parametrize("api", BY_API)
def test_the_status_request_is_the_documented_one(api: Api) -> None:
    contract = contract_of(api)
    operation = operation_of(api, contract)
    sent = requests.status_request(contract, operation, "credential")
    fact = api.raw["status_request"]
    assert sent.method == fact["method"]
    documented = plain(fact["url"])
    if "verbatim" in documented:
        assert sent.url == operation.submitted.status_url
    assert_is_documented(sent.url, documented, operation.submitted.job_id)
    headers = {name.lower(): value for name, value in sent.headers}
    for name, value in fact.get("headers", {}).items():
        assert headers.get(name.lower()) == value
    if "body" in fact and "query" not in fact["body"]:
        assert sent.body is not None
        assert holds(json.loads(sent.body), filled(fact["body"], operation.submitted.job_id))
    elif "body" in fact:
        # a GraphQL query, of which the facts give the gist: every word of it, and braces that close
        query = json.loads(sent.body or b"")["query"]
        assert set(re.findall(r"\w+", fact["body"]["query"])) <= set(re.findall(r"\w+", query))
        assert query.count("{") == query.count("}") > 0
    assert any(covers(origin, normalise_origin(sent.url)) for origin in contract.origins)


@pytest.mark.rule("K3")
@pytest.mark.parametrize("api", BY_API)
def test_origins_are_pinned_to_hosts(api: Api) -> None:
    contract = contract_of(api)
    reasons = api.extra.get("wildcards", {})
    for origin in contract.origins:
        if "*" in origin:
            assert len(reasons.get(origin.removesuffix(":443"), "")) > 30, f"{origin}: say in extra why no host will do"
    hosts = re.findall(r'"https://[^/"]*\{[^"]*"', json.dumps(document(api.contract)))
    assert [host for host in hosts if "{" in host.split("/")[2]] == [], "a host is no parameter: use base_url"


@pytest.mark.rule("E5")
@pytest.mark.parametrize("api", BY_API)
def test_a_cancel_is_offered_as_documented_or_not_at_all(api: Api) -> None:
    contract, fact = contract_of(api), api.raw["cancel"]
    sure = fact is not None and not fact.get("unconfirmed") and confirmed(fact["url"]) is not None
    if not sure:
        assert contract.policy.cancel is None, "an unconfirmed or absent cancel is not offered"
        return
    refused = api.extra.get("no_cancel")
    if refused is not None:
        assert len(refused) > 30
        assert contract.policy.cancel is None
        return
    assert contract.cancel is not None
    assert contract.policy.cancel is not None, "a cancel without consequences is never offered"
    assert len(contract.policy.cancel.consequences) >= MIN_CONSEQUENCES
    operation = operation_of(api, contract)
    sent = requests.cancel_request(contract, operation, "credential")
    assert sent.method in fact["method"].split("|")
    assert_is_documented(sent.url, fact["url"], operation.submitted.job_id)
    if isinstance(fact.get("body"), dict):
        assert sent.body is not None
        assert holds(json.loads(sent.body), filled(fact["body"], operation.submitted.job_id))
    action = re.fullmatch(r"[A-Za-z_0-9]+\.[A-Za-z]+", fact["url"])
    if action is not None:
        assert ("X-Amz-Target", fact["url"]) in sent.headers
    if "best effort" in fact.get("note", ""):
        assert contract.policy.cancel.best_effort
    if fact.get("irreversible") or "irreversible" in fact.get("note", ""):
        assert contract.policy.cancel.irreversible


@pytest.mark.rule("E5")
@pytest.mark.parametrize("api", BY_API)
def test_a_force_cancel_is_offered_as_documented_or_not_at_all(api: Api) -> None:
    contract, fact = contract_of(api), api.raw["cancel"] or {}
    path = re.search(r"/[a-z/]*force-cancel", fact.get("note", ""))
    if path is None or fact.get("unconfirmed") or contract.policy.cancel is None:
        assert contract.policy.force_cancel is None, "a force-cancel that is not documented is not offered"
        return
    said = contract.policy.force_cancel
    assert said is not None
    assert len(said.consequences) >= MIN_CONSEQUENCES
    assert said.consequences != contract.policy.cancel.consequences
    operation = operation_of(api, contract)
    sent = requests.cancel_request(contract, operation, "credential", FORCE)
    plain = requests.cancel_request(contract, operation, "credential")
    assert sent.method in fact["method"].split("|")
    assert (sent.url, sent.headers) == (plain.url.removesuffix("/cancel") + "/force-cancel", plain.headers)
    assert sent.url.endswith(path[0])
    named = re.search(r"after ([a-z-]+-at)", fact["note"])
    assert said.names_time is (named is not None)
    if named is not None:
        assert contract.cancel is not None
        assert contract.cancel.force is not None
        assert named[1] in getattr(contract.cancel.force.available_at, "source", "")


@pytest.mark.rule("S4")
@pytest.mark.parametrize("api", BY_API)
def test_the_result_is_fetched_from_pinned_origins(api: Api) -> None:
    contract = contract_of(api)
    if contract.result is None:
        assert "result" not in document(api.contract)
        return
    given = {field.name: f"https://{field.hosts[0]}/r" if field.hosts else "r-1" for field in contract.success.requires}
    fields = {**given, **api.extra.get("result", {})}
    operation = operation_of(api, contract)
    ended = msgspec.structs.replace(operation, result=ResultPointer(fields, "fetch_result", True, ()))
    sent = requests.result_request(contract, ended, "credential")
    assert any(covers(origin, normalise_origin(sent.url)) for origin in contract.origins)


@pytest.mark.rule("H1")
@pytest.mark.parametrize("api", BY_API)
def test_nothing_of_a_request_is_left_unfilled(api: Api) -> None:
    contract = contract_of(api)
    sent = requests.status_request(contract, operation_of(api, contract), None)
    assert "{" not in sent.url
    assert sent.slot is None
    assert whole(api, {}) is not None
