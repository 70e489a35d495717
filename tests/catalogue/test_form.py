"""The form of every shipped contract: header, sources, order of tables, what it rests on, and its use of each need."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from pollcore.contract import Contract, check
from pollcore.facts import Verdict
from tests.catalogue.facts import Api, shipped
from tests.catalogue.reading import contract_of, document, text

BY_API = [pytest.param(api, id=api.contract) for api in shipped()]
ORDER = (
    *("credential", "urls", "params", "status", "steps", "state", "states", "rules", "needs_human", "success", "error"),
    *("identity", "progress", "request_id", "redirect", "not_found", "forbidden", "settle", "hints", "expiry"),
    *("long_poll", "cancel", "result", "submission", "schedule", "caps", "limits"),
)
"""As docs/contracts.md, "The catalogue", says."""
MAX_LINES = 220


def unconfirmed(fact: Any) -> bool:
    """Whether anything of the facts is marked so."""
    if isinstance(fact, dict):
        return bool(fact.get("unconfirmed")) or any(unconfirmed(value) for value in fact.values())
    return isinstance(fact, list) and any(unconfirmed(value) for value in fact)


def verdicts(contract: Contract) -> set[Verdict]:
    table = contract.table
    found = {meaning.verdict for place in (table.texts, table.others) for meaning in place.values()}
    found |= {one.meaning.verdict for one in table.patterns}
    return found | {rule.meaning.verdict for rule in contract.rules if rule.meaning}


def odd_types(contract: Contract) -> bool:
    table = contract.table
    return bool(table.others or table.absent or contract.rules) or not (table.value and table.value.keys)


def several(contract: Contract) -> bool:
    return bool(contract.rules) or not (contract.table.value and contract.table.value.keys)


def qualified(contract: Contract, raw: dict[str, Any]) -> bool:
    return bool(contract.success.qualifiers) or "qualifier" in str(raw.get("states")) + str(raw.get("rules"))


USES: dict[str, Callable[[Contract, dict[str, Any]], bool]] = {
    "R01": lambda c, raw: several(c),
    "R02": lambda c, raw: odd_types(c),
    "R03": lambda c, raw: (
        c.redirect is not None or any(rule.statuses for rule in c.rules) or "statuses" in raw["state"]
    ),
    "R04": lambda c, raw: c.not_found.grace > 0 or "not_found" in raw or any(rule.statuses for rule in c.rules),
    "R05": lambda c, raw: several(c),
    "R06": lambda c, raw: odd_types(c),
    "R09": lambda c, raw: several(c),
    "R10": lambda c, raw: "submitted" in c.needs,
    "R11": lambda c, raw: Verdict.NEEDS_HUMAN in verdicts(c),
    "R12": qualified,
    "R13": lambda c, raw: bool(c.success.requires or c.success.forbids),
    "R15": lambda c, raw: "cancelling" in str(raw.get("states")) + str(raw.get("rules")),
    "R16": lambda c, raw: c.submission is not None and c.submission.answer is not None,
    "R17": lambda c, raw: any(
        word in str(raw) for word in ("provider_url", "status_url", "next_url", "{result.", "{seen.", "'url'")
    ),
    "R18": lambda c, raw: "next_url" in str(raw) or "pages" in str(raw) or "'location': 'next'" in str(raw),
    "R19": lambda c, raw: bool(c.params) or "|path" in str(raw) or "{job_id}" in str(raw["status"].get("url")),
    "R20": lambda c, raw: raw["status"].get("method") in ("POST", "HEAD"),
    "R21": lambda c, raw: len(c.steps) > 1 or "result" in raw,
    "R22": lambda c, raw: bool(raw["status"].get("headers")),
    "R23": lambda c, raw: raw["credential"]["kind"] != "bearer" or bool(c.bare_origins),
    "R24": lambda c, raw: "format" in str(raw["status"]) + str(raw["state"]) + str(raw.get("result")),
    "R26": lambda c, raw: bool({"min_delay", "max_interval", "first_delay"} & set(raw["schedule"])),
    "R27": lambda c, raw: "long_poll" in raw,
    "R28": lambda c, raw: "settle" in raw,
    "R29": lambda c, raw: "max_interval" in raw["schedule"] or "query" in raw["status"] or "next_url" in str(raw),
    "R30": lambda c, raw: bool(c.expiries or c.policy.retention or c.retention_note),
    "R31": lambda c, raw: "not_found" in raw or "not_found" in str(raw.get("rules")),
    "R32": lambda c, raw: "result" in raw,
    "R33": lambda c, raw: c.error.code is not None,
    "R34": lambda c, raw: c.progress is not None,
    "R35": lambda c, raw: c.policy.cancel is not None,
    "R36": lambda c, raw: c.submission is not None and c.submission.has_key,
    "R37": lambda c, raw: c.request_id_header is not None or c.request_id_path is not None,
    "R38": lambda c, raw: "scopes" in raw.get("caps", {}),
    "R39": lambda c, raw: "batch" in raw["status"] or "item" in raw["status"],
}
"""How a need shows in a contract. R07, R08, R14 and R25 show in what it reads: test_states.py, `Retry-After` always."""


@pytest.mark.rule("B1")
@pytest.mark.parametrize("api", BY_API)
def test_it_reads_without_a_finding(api: Api) -> None:
    known = {state.verdict.value for state in api.states if not (state.unconfirmed or api.deviation(state))}
    absent = {f"nothing means {name};" for name in ("waiting", "succeeded", "failed") if name not in known}
    findings = [one for one in check(contract_of(api)) if one.level == "warning"]
    assert [str(one) for one in findings if not any(one.message.startswith(text) for text in absent)] == []
    contract = contract_of(api)
    limits, most = contract.policy.default, contract.policy.ceiling
    assert None not in (limits.deadline, limits.max_status_requests, most.deadline, most.max_status_requests)
    assert None not in (limits.max_transport_failures, limits.max_rate_limited)
    assert contract.policy.extend
    assert len(text(api.contract).splitlines()) <= MAX_LINES


@pytest.mark.rule("S2")
@pytest.mark.parametrize("api", BY_API)
def test_it_says_never_where_the_api_has_no_such_state_and_nowhere_else(api: Api) -> None:
    said = {state.verdict.value for state in api.states}
    absent = {name for name in ("waiting", "failed") if name not in said}
    never = contract_of(api).table.never
    assert set(never) == absent
    assert all(re.search(r"\(.+\)$", evidence) for evidence in never.values()), "names no source"


@pytest.mark.rule("X7")
@pytest.mark.parametrize("api", BY_API)
def test_it_names_its_sources_and_what_nobody_confirmed(api: Api) -> None:
    contract, source = contract_of(api), text(api.contract)
    assert set(api.raw["sources"]) <= set(contract.sources)
    header = source.partition("schema = 1")[0]
    assert re.search(r"^# Documentation: https://", header, re.MULTILINE)
    assert re.search(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}", header)
    said = re.search(r"^# .*Unconfirmed: (.+)$", header, re.MULTILINE)
    assert said is not None
    assert (said[1].strip(". ") == "nothing") is not unconfirmed(api.raw)
    assert contract.tested_live is not None
    assert contract.tested_live == "no" or re.search(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}", contract.tested_live)
    if contract.tested_live == "no":
        assert "tried on" not in (contract.evidence or "").replace("not tried on", "")


@pytest.mark.rule("B1")
@pytest.mark.parametrize("api", BY_API)
def test_its_deadline_rests_on_something_and_retention_is_said(api: Api) -> None:
    contract, kept = contract_of(api), api.raw["expiry"]["retention"]
    assert re.match(r"(?:cost of delay|retention|decide-by): .{20,}", contract.deadline_basis)
    assert contract.policy.retention or contract.retention_note, "say retention, or that none is documented"
    if isinstance(kept, dict):
        assert "unconfirmed" in (contract.retention_note or "")


@pytest.mark.parametrize("api", BY_API)
def test_its_tables_stand_in_the_order_of_the_catalogue(api: Api) -> None:
    tops = re.findall(r"^\[{1,2}([a-z_]+)", text(api.contract), re.MULTILINE)
    places = [ORDER.index(top) for top in tops]
    assert places == sorted(places), tops


@pytest.mark.parametrize("api", BY_API)
def test_every_need_of_the_api_is_used_or_its_absence_has_a_reason(api: Api) -> None:
    contract, raw, reasons = contract_of(api), document(api.contract), api.extra.get("not_used", {})
    for need in api.raw["requires"]:
        if need in reasons:
            assert len(reasons[need]) > 30
        elif need in USES:
            assert USES[need](contract, raw), f"{need} is not used; use it, or say why not in extra/{api.id}.json"
    assert set(reasons) <= set(api.raw["requires"])


@pytest.mark.rule("K5")
@pytest.mark.parametrize("api", BY_API)
def test_its_credential_is_of_the_documented_kind(api: Api) -> None:
    contract, fact = contract_of(api), api.raw["auth"]
    if isinstance(fact, str) and fact.startswith("Authorization: Bearer") and " plus " not in fact:
        assert contract.credential_kind == "bearer"
    if isinstance(fact, str) and fact.startswith("Authorization: Basic"):
        assert contract.credential_kind == "basic"
    assert (contract.credential_kind == "none") <= (not isinstance(fact, str) or "none" in fact)
