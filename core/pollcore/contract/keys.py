"""Which keys each table of a contract may hold.

Job: table path -> its keys, so that a misspelt key is told before anything else that is wrong with its table (a typo in
`value` must not read as a missing value). Must not know: what a key means, values. Tables whose keys the author names
himself (`params`, `headers`, `fields` ...) are not listed. Source: docs/contracts.md.
"""

from __future__ import annotations

from typing import Final

from pollcore.contract.lines import Path

ANY: Final = "*"
"""Stands in a path for a number of an array of tables, or for a name that the author chose."""

_REQUEST: Final = "method url query headers body form credential provider_url total"
_STEP: Final = f"{_REQUEST} location next_url remember then"
_LIMITS: Final = "deadline max_status_requests max_transport_failures max_rate_limited"

_WRITTEN: Final[dict[tuple[str, ...], str]] = {
    (): "schema name title notes sources tested_live account base_url requires_base_url origins urls console_url "
    "credential params status steps state states rules success error needs_human identity progress request_id redirect "
    "not_found forbidden settle schedule hints expiry long_poll caps limits cancel result submission",
    ("urls", ANY): "about default",
    ("credential",): "kind names optional least_mode",
    ("params", ANY): "required default pattern about",
    ("status",): f"{_STEP} observation evidence format batch",
    ("steps", ANY): f"{_STEP} name each",
    ("status", "then", ANY): "when step at_once",
    ("steps", ANY, "then", ANY): "when step at_once",
    ("state",): "value fold_case statuses format empty_body unreadable_2xx unknown_limit",
    ("states",): "waiting cancelling succeeded failed cancelled expired needs_human",
    ("states", ANY, ANY): "value pattern absent explanation qualifier limit",
    ("rules", ANY): "name when status step state state_from category detail explanation explanation_from qualifier "
    "limit seen",
    ("success",): "permits requires forbids fields qualifiers",
    ("success", "requires", ANY): "path name type format pattern hosts",
    ("success", "qualifiers", ANY): "name when",
    ("error",): "code message retryable",
    ("needs_human",): "explanation",
    ("identity",): "job_id account attempt",
    ("progress",): "value total",
    ("request_id",): "header path",
    ("redirect",): "statuses field state hosts",
    ("not_found",): "statuses grace_seconds once_seen confirms_cancel",
    ("forbidden",): "grace_seconds max_requests",
    ("settle",): "delay",
    ("schedule",): "base_delay max_delay min_delay first_delay expected_duration rate_limit_factor "
    "rate_limit_max_delay max_hint max_interval guidance_spread",
    ("hints", ANY): "name path unit when cap",
    ("expiry", ANY): "path unit of anchor",
    ("long_poll",): "parameter wait max unit timeout_statuses",
    ("caps",): "concurrency per_minute scopes",
    ("limits",): "deadline_basis retention retention_note extend max_extensions hold max_holds default max",
    ("limits", "default"): _LIMITS,
    ("limits", "max"): _LIMITS,
    ("limits", "extend", ANY): "minutes checks transport_failures rate_limited",
    ("cancel",): f"{_REQUEST} consequences confirm allowed_states irreversible best_effort leads_to source done_when "
    "refused_when done_statuses refused_statuses",
    ("cancel", "confirm"): "minutes checks",
    ("result",): f"{_REQUEST} pages",
    ("submission",): f"{_REQUEST} idempotency answer",
    ("submission", "answer"): "statuses job_id job_id_pattern status_url status_url_is params reads_state",
    ("submission", "idempotency"): "header query max_length lifetime on_repeat",
}
KEYS: Final[dict[tuple[str, ...], frozenset[str]]] = {path: frozenset(text.split()) for path, text in _WRITTEN.items()}

_NAMED: Final = frozenset({"urls", "params", "states"})
"""Tables of tables whose entries are all of one kind, whatever they are called."""


def pattern_of(path: Path) -> tuple[str, ...]:
    """The path as KEYS writes it."""
    parts = [ANY if isinstance(part, int) else part for part in path]
    if len(parts) > 1 and parts[0] in _NAMED:
        parts[1] = ANY
    return tuple(parts)


def keys_of(path: Path) -> frozenset[str] | None:
    """The keys that the table at *path* may hold; None: its author names them."""
    return KEYS.get(pattern_of(path))
