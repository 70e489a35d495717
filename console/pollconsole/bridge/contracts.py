"""Contracts and configured instances: list, show, check, explain.

Job: contracts -> documents. Must not know: output; it sends nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from pollconsole import documents, words
from pollcore.facts import Answer, Refused

if TYPE_CHECKING:
    from pollcore.assembly import Core
    from pollcore.contract import Contract
    from pollcore.facts import Operation


def providers(core: Core) -> list[dict[str, Any]]:
    """Contracts and configured instances by name; an instance covers a contract of its name.

    *source*: a path, `shipped` or `config.toml`. *shadows*: a shipped contract of that name is not used. *error*: why
    it cannot be used.
    """
    found: dict[str, dict[str, Any]] = {}
    for file in core.contracts.listing():
        view = {"name": file.name, "contract": file.name, "source": file.source, "shadows": file.shadows}
        found[file.name] = {**view, **_usable(core, file.name)}
    for name, instance in core.config.providers.items():
        view = {"name": name, "contract": instance.contract, "source": "config.toml", "shadows": False}
        found[name] = {**view, **_usable(core, name)}
    return [found[name] for name in sorted(found)]


def _usable(core: Core, name: str) -> dict[str, Any]:
    try:
        contract = core.contracts.find(name)
    except Refused as error:
        return {"title": None, "base_url": None, "allow_http": False, "error": words.sentence(str(error))}
    return {
        "title": contract.title,
        "base_url": contract.base_url,
        "allow_http": contract.allow_http,
        "error": None,
    }


def provider(core: Core, name: str) -> dict[str, Any]:
    """One contract under the settings of its instance. Raises NotFound, ContractError."""
    contract = core.contracts.find(name)
    return {"name": name, **documents.contract(contract), "text": contract.snapshot_text}


def check_contract(text: str, filename: str) -> dict[str, Any]:
    """A contract's text: what it says, and what is doubtful in it. Raises ContractError with file, line and key."""
    from pollcore.contract import check, parse

    contract = parse(text, filename)
    findings = [words.sentence(f"{filename}:{finding}") for finding in check(contract)]
    return {"file": filename, "findings": findings, **documents.contract(contract)}


def explain(
    core: Core, name: str, text: str | None, answer: Answer, job_id: str, params: Mapping[str, str]
) -> dict[str, Any]:
    """How *answer* would be read by a contract and decided, for a fresh operation just under way.

    Args:
        text: the contract's text when *name* is a file.

    Raises NotFound, ContractError.
    """
    from pollcore import decide, reading
    from pollcore.contract import parse
    from pollcore.views import result_view

    contract = core.contracts.find(name) if text is None else parse(text, name)
    now = core.clock.now()
    timed = msgspec.structs.replace(answer, sent_at=now.wall, answered_at=now.wall)
    operation = documents.example_operation(contract, now, job_id, params)
    read = reading.explain(contract, operation, timed, now, _asked(contract, operation))
    seen = read.observation
    decision = decide.decide(operation, seen, policy=contract.policy, now=now, draw=0.5)
    why = {"rule": read.rule, "read": [f"{path}: {value}" for path, value in read.read], "body_fault": read.body_fault}
    view = documents.observation(seen)
    if seen.result is not None:
        view["result"] = result_view(seen.result, reveal=False)
    return {"contract": contract.name, **why, "observation": view, "decision": documents.decision(decision, now.wall)}


def _asked(contract: Contract, operation: Operation) -> str:
    """The URL that would have been asked: relative links of the answer resolve against it, as in the core."""
    from pollcore.contract import requests

    try:
        return requests.status_request(contract, operation, None).url
    except Refused:
        return contract.base_url or next(iter(contract.request_origins), "")
