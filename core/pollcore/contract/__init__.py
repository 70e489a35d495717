"""Provider contracts: a TOML text becomes a frozen contract, requests come out of it. No I/O.

Job: the public names of this package. Must not know: files (adapters read them), answers (`pollcore.reading`).
"""

from pollcore.contract.checks import Finding, budget_warnings, check
from pollcore.contract.instances import from_snapshot, instance
from pollcore.contract.model import Contract
from pollcore.contract.origins import normalise_origin
from pollcore.contract.parse import parse
from pollcore.contract.schema import json_schema

__all__ = [
    "Contract",
    "Finding",
    "budget_warnings",
    "check",
    "from_snapshot",
    "instance",
    "json_schema",
    "normalise_origin",
    "parse",
]
