"""Which keys each table of a contract may hold, and of which kind.

Job: table path -> its keys, so that a misspelt key is told before anything else that is wrong with its table (a typo in
`value` must not read as a missing value), and what editors are told of them (`schema.py`). Must not know: what a key
means. Tables whose keys the author names himself (`headers`, `fields` ...) are not listed. Source: docs/contracts.md.
"""

from __future__ import annotations

from typing import Final

from pollcore.contract.lines import Path

ANY: Final = "*"
"""Stands in a path for a number of an array of tables, or for a name that the author chose."""

_REQUEST: Final = (
    "method:GET|HEAD|POST|PUT|PATCH|DELETE url query:pairs headers:pairs body:any form:pairs credential:flag "
    "provider_url:never|prefer|require total:span format:json|ndjson|xml|form|text lists:texts"
)
_CANCEL: Final = (
    f"{_REQUEST} consequences confirm:table allowed_states:texts irreversible:flag best_effort:flag leads_to source "
    "done_when:expr refused_when:expr done_statuses:statuses refused_statuses:statuses by_step:tables"
)
_STEP: Final = f"{_REQUEST} location:check|ignore|next next_url:expr remember:exprs_by_name then:tables item:table"
_LIMITS: Final = "deadline:span max_status_requests:whole max_transport_failures:whole max_rate_limited:whole"
_UNIT: Final = "unit:milliseconds|seconds|minutes|unix_seconds|unix_milliseconds|iso|http_date"
_QUALIFIER: Final = "partial|empty|did_not_run"
_ENDS: Final = "waiting|cancelling|succeeded|failed|cancelled|expired|needs_human"
_CATEGORIES: Final = (
    f"{_ENDS}|unknown|not_found|transport_failure|rate_limited|quota_exhausted|denied|integration_failure"
)

_WRITTEN: Final[dict[tuple[str, ...], str]] = {
    (): "schema:schema name title notes sources:texts tested_live account base_url requires_base_url:flag "
    "origins:origins urls:tables_by_name console_url credential:table params:tables_by_name status:table steps:tables "
    "state:table states:table rules:tables success:table error:table needs_human:table identity:table progress:table "
    "request_id:table redirect:table not_found:table forbidden:table settle:table schedule:table hints:tables "
    "expiry:tables long_poll:table caps:table limits:table cancel:table result:table submission:table",
    ("urls", ANY): "about default",
    ("credential",): "kind:none|bearer|basic|header|query|sigv4 names:texts optional:flag "
    "least_mode:standing|per_session|per_call reveals session_minutes:whole session_calls:whole",
    ("params", ANY): "required:flag default:scalar pattern about",
    ("status",): f"{_STEP} observation:read_only|action evidence batch:table",
    ("steps", ANY): f"{_STEP} name each:table",
    ("status", "item"): "entries:expr job_id:expr",
    ("status", "batch"): "max:whole gather:span separator url query:pairs body:any",
    ("steps", ANY, "item"): "entries:expr job_id:expr",
    ("steps", ANY, "each"): "children:expr most:whole together:all|any|worst",
    ("status", "then", ANY): "when:expr step at_once:flag",
    ("steps", ANY, "then", ANY): "when:expr step at_once:flag",
    ("state",): "value:expr fold_case:flag statuses:statuses format:json|any|none empty_body:unreadable|absent "
    "unreadable_2xx:integration_failure|transport_failure unknown_limit:whole",
    ("states",): " ".join(f"{name}:states" for name in _ENDS.split("|")) + " never:table",
    ("states", "never"): "waiting failed",
    ("states", ANY, ANY): f"value:any pattern absent:flag explanation qualifier:{_QUALIFIER} limit:whole",
    ("rules", ANY): f"name when:expr status:statuses step state state_from:expr category:{_CATEGORIES} detail "
    f"explanation explanation_from:expr qualifier:{_QUALIFIER} limit:whole seen:flag",
    ("success",): "permits requires:tables forbids:exprs fields:exprs_by_name qualifiers:tables",
    ("success", "requires", ANY): "path:expr name type:string|integer|number|boolean|array|object "
    "format:url|uuid|date-time|integer-text pattern hosts:texts",
    ("success", "qualifiers", ANY): f"name:{_QUALIFIER} when:expr",
    ("error",): "code:expr message:expr retryable:expr",
    ("needs_human",): "explanation:expr",
    ("identity",): "job_id:expr account:expr attempt:expr steps:texts",
    ("progress",): "value:expr total:expr",
    ("request_id",): "header path:expr",
    ("redirect",): "statuses:statuses field state hosts:texts",
    ("not_found",): "statuses:statuses grace_seconds:span once_seen:integration_failure|expired confirms_cancel:flag",
    ("forbidden",): "grace_seconds:span max_requests:whole",
    ("settle",): "delay:span",
    ("schedule",): "base_delay:span max_delay:span min_delay:span first_delay:span expected_duration:span "
    "rate_limit_factor:number rate_limit_max_delay:span max_hint:span max_interval:span guidance_spread:number",
    ("hints", ANY): f"name path:expr {_UNIT} when:expr cap:span",
    ("expiry", ANY): f"path:expr {_UNIT} of:job|result anchor:expr",
    ("long_poll",): "parameter wait:span max:span unit:seconds|milliseconds|span timeout_statuses:statuses",
    ("caps",): "concurrency:whole per_minute:whole scopes:tables",
    ("caps", "scopes", ANY): "scope:provider|account|credential|route requests:whole per:span step",
    ("limits",): "deadline_basis retention:span retention_note extend:tables max_extensions:whole hold:span "
    "max_holds:whole default:table max:table",
    ("limits", "default"): _LIMITS,
    ("limits", "max"): _LIMITS,
    ("limits", "extend", ANY): "minutes:whole checks:whole transport_failures:whole rate_limited:whole",
    ("cancel",): f"{_CANCEL} force:table",
    ("cancel", "by_step", ANY): f"{_REQUEST} step",
    ("cancel", "confirm"): "minutes:whole checks:whole",
    ("cancel", "force"): f"{_CANCEL} after:span available_at:expr unit:iso|http_date|unix_seconds|unix_milliseconds "
    "needs_accepted:flag",
    ("cancel", "force", "by_step", ANY): f"{_REQUEST} step",
    ("cancel", "force", "confirm"): "minutes:whole checks:whole",
    ("result",): f"{_REQUEST} pages:table",
    ("result", "pages"): "next:expr token:expr parameter field most:whole",
    ("submission",): f"{_REQUEST} idempotency:table answer:table",
    ("submission", "answer"): "statuses:statuses job_id:expr job_id_pattern status_url:expr "
    "status_url_is:status|result|becomes_result params:exprs_by_name reads_state:flag "
    "format:json|ndjson|xml|form|text lists:texts",
    ("submission", "idempotency"): "header query max_length:whole lifetime:span on_repeat:same_job|conflict",
}
"""Path -> keys, each with its kind after a colon (without: a text). Kinds with `|` list the words that are allowed."""
KINDS: Final[dict[tuple[str, ...], dict[str, str]]] = {
    path: {key: kind or "text" for key, _, kind in (word.partition(":") for word in text.split())}
    for path, text in _WRITTEN.items()
}
KEYS: Final[dict[tuple[str, ...], frozenset[str]]] = {path: frozenset(kinds) for path, kinds in KINDS.items()}

_NAMED: Final = frozenset({"urls", "params", "states"})
"""Tables of tables whose entries are all of one kind, whatever they are called."""


def pattern_of(path: Path) -> tuple[str, ...]:
    """The path as KEYS writes it."""
    if path in KEYS:
        return tuple(map(str, path))
    parts = [ANY if isinstance(part, int) else part for part in path]
    if len(parts) > 1 and parts[0] in _NAMED:
        parts[1] = ANY
    return tuple(parts)


def keys_of(path: Path) -> frozenset[str] | None:
    """The keys that the table at *path* may hold; None: its author names them."""
    return KEYS.get(pattern_of(path))
