"""The one door to the core: everything of pollcore but its facts is reached through here.

Job: the names that command line and screens use. Must not know: arguments, output, screens. Nothing of the core is
imported before one of these functions is called, so that help and completion stay quick; and no file of this package
but `door` before one of its names is asked for, so that a console shows rows sooner.
"""
# ruff: noqa: I001 - one import for each file, "as" because every name is handed on

import importlib
from typing import TYPE_CHECKING, Any, Final

from pollconsole.bridge.door import (
    config as config,
    first_rows as first_rows,
    harden as harden,
    home_is_named as home_is_named,
    home_path as home_path,
    missing_home as missing_home,
    parse_listen as parse_listen,
    parse_span as parse_span,
    watch_loop as watch_loop,
    with_core as with_core,
    without_store as without_store,
)

if TYPE_CHECKING:
    from pollconsole.bridge.approval_views import AskedFor as AskedFor, asked_for as asked_for
    from pollconsole.bridge.archive import archived_before as archived_before
    from pollconsole.bridge.authoring import (
        impact as impact,
        refuse_untriable as refuse_untriable,
        try_provider as try_provider,
    )
    from pollconsole.bridge.beginning import begin as begin, proposed as proposed, text_of_new as text_of_new
    from pollconsole.bridge.chain_views import (
        ChainState as ChainState,
        audit_trouble as audit_trouble,
        chain_state as chain_state,
        compare_anchor as compare_anchor,
    )
    from pollconsole.bridge.contract_view import (
        ContractText as ContractText,
        ContractView as ContractView,
        contract_seen as contract_seen,
        contract_text as contract_text,
        contract_views as contract_views,
    )
    from pollconsole.bridge.contracts import (
        check_contract as check_contract,
        contract_schema as contract_schema,
        contracts_known as contracts_known,
        provider as provider,
        providers as providers,
    )
    from pollconsole.bridge.credential_view import (
        CredentialView as CredentialView,
        LiveSession as LiveSession,
        credential_views as credential_views,
        end_sessions as end_sessions,
    )
    from pollconsole.bridge.explaining import explain as explain
    from pollconsole.bridge.handing_over import handover as handover
    from pollconsole.bridge.health import (
        doctor_facts as doctor_facts,
        facts_without_a_store as facts_without_a_store,
        home_faults as home_faults,
        key_file_named as key_file_named,
        settings_faults as settings_faults,
        stays_open as stays_open,
        store_path as store_path,
    )
    from pollconsole.bridge.keeping import kept_with as kept_with, lost_key as lost_key
    from pollconsole.bridge.keys import (
        check_credential as check_credential,
        credential_mode as credential_mode,
        credentials as credentials,
        known_credential as known_credential,
        memory_keyring as memory_keyring,
        remove_credential as remove_credential,
        seller_names as seller_names,
        set_credential as set_credential,
    )
    from pollconsole.bridge.outside import (
        beside as beside,
        missing_extras as missing_extras,
        notice_addresses as notice_addresses,
        remove_notice_address as remove_notice_address,
        set_notice_address as set_notice_address,
        test_notice_address as test_notice_address,
    )
    from pollconsole.bridge.pausing import (
        Paused as Paused,
        known_provider as known_provider,
        pauses as pauses,
        stopped_by as stopped_by,
    )
    from pollconsole.bridge.records import (
        find as find,
        operations as operations,
        operator_name as operator_name,
        questions as questions,
        questions_in_order as questions_in_order,
        reject_question as reject_question,
        row as row,
        submit_spec as submit_spec,
        whole as whole,
        whole_with_card as whole_with_card,
    )
    from pollconsole.bridge.saved import complete_at as complete_at
    from pollconsole.bridge.setting_views import (
        Setting as Setting,
        Settings as Settings,
        home_source as home_source,
        settings as settings,
    )
    from pollconsole.bridge.story_views import (
        event_view as event_view,
        latest as latest,
        story as story,
        story_lines as story_lines,
    )
    from pollconsole.bridge.user_files import open_plain as open_plain, read_plain as read_plain
    from pollconsole.bridge.verifying import Verification as Verification, verification as verification
    from pollcore.assembly import Core as Core
    from pollcore.controller import Controller as Controller

_LATER: Final = {
    "approval_views": ("AskedFor", "asked_for"),
    "archive": ("archived_before",),
    "authoring": ("impact", "refuse_untriable", "try_provider"),
    "beginning": ("begin", "proposed", "text_of_new"),
    "chain_views": ("ChainState", "audit_trouble", "chain_state", "compare_anchor"),
    "contract_view": ("ContractText", "ContractView", "contract_seen", "contract_text", "contract_views"),
    "contracts": ("check_contract", "contract_schema", "contracts_known", "provider", "providers"),
    "credential_view": ("CredentialView", "LiveSession", "credential_views", "end_sessions"),
    "explaining": ("explain",),
    "handing_over": ("handover",),
    "health": (
        "doctor_facts",
        "facts_without_a_store",
        "home_faults",
        "key_file_named",
        "settings_faults",
        "stays_open",
        "store_path",
    ),
    "keeping": ("kept_with", "lost_key"),
    "keys": (
        "check_credential",
        "credential_mode",
        "credentials",
        "known_credential",
        "memory_keyring",
        "remove_credential",
        "seller_names",
        "set_credential",
    ),
    "outside": (
        "beside",
        "missing_extras",
        "notice_addresses",
        "remove_notice_address",
        "set_notice_address",
        "test_notice_address",
    ),
    "pausing": ("Paused", "known_provider", "pauses", "stopped_by"),
    "records": (
        "find",
        "operations",
        "operator_name",
        "questions",
        "questions_in_order",
        "reject_question",
        "row",
        "submit_spec",
        "whole",
        "whole_with_card",
    ),
    "saved": ("complete_at",),
    "setting_views": ("Setting", "Settings", "home_source", "settings"),
    "story_views": ("event_view", "latest", "story", "story_lines"),
    "user_files": ("open_plain", "read_plain"),
    "verifying": ("Verification", "verification"),
}
"""By file of this package: its names, imported when one of them is first asked for.

No file bears a name that is handed on from here: whoever imports a file puts it here under its own name, and would put
it in that one's place.
"""
_FILE: Final = {name: file for file, names in _LATER.items() for name in names}


if not TYPE_CHECKING:  # a wrong name stays an error of mypy's

    def __getattr__(name: str) -> Any:
        file = _FILE.get(name)
        if file is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(importlib.import_module(f"{__name__}.{file}"), name)
        return found
