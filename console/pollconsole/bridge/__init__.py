"""The one door to the core: everything of pollcore but its facts is reached through here.

Job: the names that command line and screens use. Must not know: arguments, output, screens. Nothing of the core is
imported before one of these functions is called, so that help and completion stay quick.
"""

from typing import TYPE_CHECKING

from pollconsole.bridge.approval_views import AskedFor, asked_for
from pollconsole.bridge.archive import archived_before
from pollconsole.bridge.authoring import impact, refuse_untriable, try_provider
from pollconsole.bridge.beginning import begin, proposed, text_of_new
from pollconsole.bridge.chain_state import ChainState, audit_trouble, chain_state, compare_anchor
from pollconsole.bridge.contract_views import (
    ContractText,
    ContractView,
    contract_seen,
    contract_text,
    contract_views,
)
from pollconsole.bridge.contracts import (
    check_contract,
    contract_schema,
    contracts_known,
    explain,
    provider,
    providers,
)
from pollconsole.bridge.credential_views import CredentialView, LiveSession, credential_views, end_sessions
from pollconsole.bridge.door import (
    config,
    first_rows,
    harden,
    home_is_named,
    home_path,
    missing_home,
    parse_listen,
    parse_span,
    watch_loop,
    with_core,
    without_store,
)
from pollconsole.bridge.handover import handover
from pollconsole.bridge.health import doctor_facts, facts_without_a_store, home_faults, store_path
from pollconsole.bridge.keeping import kept_with, lost_key
from pollconsole.bridge.keys import (
    check_credential,
    credential_mode,
    credentials,
    known_credential,
    memory_keyring,
    remove_credential,
    seller_names,
    set_credential,
)
from pollconsole.bridge.outside import (
    beside,
    missing_extras,
    notice_addresses,
    remove_notice_address,
    set_notice_address,
    test_notice_address,
)
from pollconsole.bridge.pauses import Paused, known_provider, pauses, stopped_by
from pollconsole.bridge.records import (
    find,
    operations,
    operator_name,
    questions,
    questions_in_order,
    reject_question,
    row,
    submit_spec,
    whole,
    whole_with_card,
)
from pollconsole.bridge.settings import Setting, Settings, home_source, settings
from pollconsole.bridge.story import event_view, latest, story, story_lines
from pollconsole.bridge.verification import Verification, verification

if TYPE_CHECKING:
    from pollcore.assembly import Core
    from pollcore.controller import Controller

__all__ = [
    "archived_before",
    "begin",
    "beside",
    "missing_extras",
    "notice_addresses",
    "remove_notice_address",
    "set_notice_address",
    "test_notice_address",
    "handover",
    "asked_for",
    "memory_keyring",
    "AskedFor",
    "ChainState",
    "ContractText",
    "ContractView",
    "CredentialView",
    "LiveSession",
    "Setting",
    "Settings",
    "Verification",
    "audit_trouble",
    "chain_state",
    "compare_anchor",
    "contract_schema",
    "contract_seen",
    "contract_text",
    "contract_views",
    "credential_views",
    "end_sessions",
    "home_source",
    "impact",
    "latest",
    "settings",
    "verification",
    "Controller",
    "Core",
    "Paused",
    "check_contract",
    "check_credential",
    "config",
    "contracts_known",
    "credential_mode",
    "credentials",
    "doctor_facts",
    "event_view",
    "explain",
    "facts_without_a_store",
    "find",
    "first_rows",
    "harden",
    "home_faults",
    "home_is_named",
    "home_path",
    "kept_with",
    "known_credential",
    "known_provider",
    "lost_key",
    "missing_home",
    "operations",
    "operator_name",
    "parse_listen",
    "parse_span",
    "pauses",
    "proposed",
    "provider",
    "providers",
    "questions",
    "questions_in_order",
    "reject_question",
    "refuse_untriable",
    "remove_credential",
    "row",
    "seller_names",
    "set_credential",
    "stopped_by",
    "store_path",
    "story",
    "story_lines",
    "submit_spec",
    "text_of_new",
    "try_provider",
    "whole",
    "whole_with_card",
    "watch_loop",
    "with_core",
    "without_store",
]
