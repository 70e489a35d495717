"""The one door to the core: everything of pollcore but its facts is reached through here.

Job: the names that command line and screens use. Must not know: arguments, output, screens. Nothing of the core is
imported before one of these functions is called, so that help and completion stay quick.
"""

from typing import TYPE_CHECKING

from pollconsole.bridge.contracts import check_contract, explain, provider, providers
from pollconsole.bridge.door import (
    config,
    harden,
    home_is_named,
    home_path,
    missing_home,
    parse_span,
    with_core,
    without_store,
)
from pollconsole.bridge.health import doctor_facts, facts_without_a_store, home_faults, store_path
from pollconsole.bridge.keeping import kept_with, lost_key
from pollconsole.bridge.keys import (
    check_credential,
    credential_mode,
    credentials,
    memory_keyring,
    remove_credential,
    set_credential,
)
from pollconsole.bridge.pauses import Paused, known_provider, paused_until, pauses, stopped_by
from pollconsole.bridge.records import (
    find,
    operations,
    operator_name,
    questions,
    report,
    row,
    submit_spec,
    whole,
    whole_with_card,
)
from pollconsole.bridge.story import story

if TYPE_CHECKING:
    from pollcore.assembly import Core
    from pollcore.contract import Contract
    from pollcore.controller import Controller
    from pollcore.ports import Filter

__all__ = [
    "memory_keyring",
    "Contract",
    "Controller",
    "Core",
    "Filter",
    "Paused",
    "check_contract",
    "check_credential",
    "config",
    "credential_mode",
    "credentials",
    "doctor_facts",
    "explain",
    "facts_without_a_store",
    "find",
    "harden",
    "home_faults",
    "home_is_named",
    "home_path",
    "kept_with",
    "known_provider",
    "lost_key",
    "missing_home",
    "operations",
    "operator_name",
    "parse_span",
    "paused_until",
    "pauses",
    "provider",
    "providers",
    "questions",
    "remove_credential",
    "report",
    "row",
    "set_credential",
    "stopped_by",
    "store_path",
    "story",
    "submit_spec",
    "whole",
    "whole_with_card",
    "with_core",
    "without_store",
]
