"""Contracts and configured instances: list, show, check.

Job: contracts -> documents. Must not know: output; it sends nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from pollconsole import documents, words
from pollcore.facts import Refused

if TYPE_CHECKING:
    from pollcore.assembly import Core
    from pollcore.contract import Contract
    from pollcore.ports import ContractKnown


Known = Mapping[str, "ContractKnown"]
"""By digest: what operators said and saw of contracts."""


async def contracts_known(core: Core) -> Known:
    """What operators said and saw of every contract that can be used, from the store."""
    digests = []
    for name in core.contracts.names():
        try:
            digests.append(core.contracts.find(name).digest)
        except Refused:
            continue
    return await core.store.contracts_known(digests)


def providers(core: Core, known: Known | None = None) -> list[dict[str, Any]]:
    """Contracts and configured instances by name; an instance covers a contract of its name.

    *source*: a path, `shipped` or `config.toml`. *shadows*: a shipped contract of that name is not used. *error*: why
    it cannot be used. *marks*: tried, seen and decided, by *known*; without it, as far as the contract itself tells.
    """
    found: dict[str, dict[str, Any]] = {}
    for file in core.contracts.listing():
        view = {"name": file.name, "contract": file.name, "source": file.source, "shadows": file.shadows}
        found[file.name] = {**view, **_usable(core, file.name, known)}
    for name, instance in core.config.providers.items():
        view = {"name": name, "contract": instance.contract, "source": "config.toml", "shadows": False}
        found[name] = {**view, **_usable(core, name, known)}
    return [found[name] for name in sorted(found)]


def _usable(core: Core, name: str, known: Known | None) -> dict[str, Any]:
    try:
        contract = core.contracts.find(name)
    except Refused as error:
        return {
            "title": None,
            "base_url": None,
            "allow_http": False,
            "error": words.sentence(str(error)),
            "marks": None,
        }
    return {
        "title": contract.title,
        "base_url": contract.base_url,
        "allow_http": contract.allow_http,
        "error": None,
        "marks": marks(contract, known),
    }


def marks(contract: Contract, known: Known | None) -> dict[str, Any]:
    """X7, G5: who tried the contract, who looked at it, what its status requests are and who said so."""
    from pollcore.adapters.contract_files import is_shipped

    said = None if known is None else known.get(contract.digest)
    use = said.use if said is not None else None
    view = documents.marks(contract, said)
    if use is not None:
        view["first_use"] = use.value
    elif contract.asks_first_use:
        view["first_use"] = None if known is None else "undecided"
    else:
        view["first_use"] = "action" if contract.observation == "action" else "not_asked"
    view["shipped"] = is_shipped(contract.snapshot_text)
    view["seen"] = None if known is None else view["seen_at"] is not None
    return view


def provider(core: Core, name: str, known: Known | None = None) -> dict[str, Any]:
    """One contract under the settings of its instance. Raises NotFound, ContractError."""
    contract = core.contracts.find(name)
    view = {"name": name, **_document(contract), "marks": marks(contract, known)}
    return {**view, "text": contract.snapshot_text}


def _document(contract: Contract) -> dict[str, Any]:
    from pollcore.contract.digest import digest_of

    return documents.contract(contract, digest_of(contract.snapshot_text, {}))


def check_contract(text: str, filename: str) -> dict[str, Any]:
    """A contract's text: what it says, and what is doubtful in it. Raises ContractError with file, line and key."""
    from pollcore.contract import check, parse

    contract = parse(text, filename)
    found = check(contract)
    return {
        "file": filename,
        "findings": [words.sentence(f"{filename}:{'' if finding.line else ' '}{finding}") for finding in found],
        "found": [msgspec.structs.asdict(finding) for finding in found],
        "warnings": sum(finding.level == "warning" for finding in found),
        **_document(contract),
    }


def contract_schema() -> dict[str, Any]:
    """JSON Schema of contract files, for editors."""
    from pollcore.contract import json_schema

    return json_schema()
