"""The one door to the core: everything of pollcore but its facts is reached through here.

Job: the names that command line and screens use. Must not know: arguments, output, screens. Nothing of the core is
imported before one of these functions is called, so that help and completion stay quick.
"""

from typing import TYPE_CHECKING

from pollconsole.bridge.contracts import check_contract, explain, provider, providers
from pollconsole.bridge.door import config, home_path, parse_span, with_core
from pollconsole.bridge.keys import (
    credential_mode,
    credentials,
    doctor_facts,
    remove_credential,
    set_credential,
)
from pollconsole.bridge.records import (
    find,
    operations,
    operator_name,
    questions,
    report,
    row,
    story,
    submit_spec,
    whole,
)

if TYPE_CHECKING:
    from pollcore.assembly import Core
    from pollcore.contract import Contract
    from pollcore.controller import Controller
    from pollcore.ports import Filter

__all__ = [
    "Contract",
    "Controller",
    "Core",
    "Filter",
    "check_contract",
    "config",
    "credential_mode",
    "credentials",
    "doctor_facts",
    "explain",
    "find",
    "home_path",
    "operations",
    "operator_name",
    "parse_span",
    "provider",
    "providers",
    "questions",
    "remove_credential",
    "report",
    "row",
    "set_credential",
    "story",
    "submit_spec",
    "whole",
    "with_core",
]
