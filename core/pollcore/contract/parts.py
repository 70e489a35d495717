"""The parts that a contract is made of: frozen, compiled, without TOML.

Job: the shapes. Must not know: how they are read from a file, how answers are judged.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from pollcore.contract.bodies import BodyTemplate
from pollcore.contract.expressions import Expression
from pollcore.contract.patterns import Pattern
from pollcore.contract.templates import TextTemplate, UrlTemplate
from pollcore.facts import StopDetail, Verdict


class Unit(StrEnum):
    """How a time in an answer is written. Spans count from the answer, dates from the answer's `Date` (T3)."""

    MILLISECONDS = "milliseconds"
    SECONDS = "seconds"
    MINUTES = "minutes"
    UNIX_SECONDS = "unix_seconds"
    UNIX_MILLISECONDS = "unix_milliseconds"
    ISO = "iso"
    HTTP_DATE = "http_date"


class Hint(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """R25: one field that says when to ask again. *cap* in ms; None: only `max_hint` holds."""

    name: str
    path: Expression
    unit: Unit
    when: Expression | None = None
    cap: int | None = None


class Expiry(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """R30: when the provider drops the job (*of* `job`) or its result. Spans count from *anchor*."""

    path: Expression
    unit: Unit
    of: str = "job"
    anchor: Expression | None = None
    """An ISO time in the answer; None: the operation's `started_at`."""


class Meaning(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What one state value or rule says."""

    verdict: Verdict
    where: str
    """`states.waiting` or `rules[3]`, for explanations."""
    cancelling: bool = False
    not_found: bool = False
    detail: StopDetail | None = None
    explanation: str | None = None
    qualifiers: tuple[str, ...] = ()
    limit: int | None = None
    """Stops as unknown when seen this many times in a row (B4)."""
    seen: bool | None = None
    """Whether it proves that the provider knows the job; None: by the HTTP status."""


class PatternState(msgspec.Struct, frozen=True, eq=False):
    pattern: Pattern
    meaning: Meaning


class StateTable(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Value -> meaning, by exact type and spelling. *texts* folded when *fold_case*; *others* keyed by JSON text."""

    value: Expression | None = None
    texts: dict[str, Meaning] = {}
    others: dict[str, Meaning] = {}
    absent: Meaning | None = None
    patterns: tuple[PatternState, ...] = ()
    fold_case: bool = False
    statuses: frozenset[int] = frozenset({200, 201, 202})
    body_format: str = "json"
    """`json`, `any` (JSON if it is, else absent), `none` (never read)."""
    empty_body: str = "unreadable"
    """Or `absent`."""
    unreadable_2xx: str = "integration_failure"
    unknown_limit: int | None = None
    shown: tuple[str, ...] = ()
    """Every listed value as displayed; text ones serve near matches."""
    never: dict[str, str] = {}
    """`waiting`, `failed` -> the author's evidence that no answer of this API ever says so."""


class Rule(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """R01: the first rule that holds decides. None meaning: its state goes to the table."""

    label: str
    statuses: frozenset[int] | None = None
    """None: the statuses whose body is read."""
    step: str | None = None
    when: Expression | None = None
    state: str | None = None
    state_from: Expression | None = None
    meaning: Meaning | None = None
    explanation_from: Expression | None = None
    needs_body: bool = False
    needs_item: bool = False
    of_the_job: bool = False
    """It reads something of this very job: its entry, or what was submitted."""


class Required(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """S4: one field without which success does not count."""

    name: str
    path: Expression
    type: str | None = None
    format: str | None = None
    pattern: Pattern | None = None
    hosts: tuple[str, ...] = ()


class Qualifier(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    name: str
    when: Expression


class Success(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    permits: str = "fetch_result"
    requires: tuple[Required, ...] = ()
    forbids: tuple[Expression, ...] = ()
    fields: tuple[tuple[str, Expression], ...] = ()
    qualifiers: tuple[Qualifier, ...] = ()


class NotFoundRules(msgspec.Struct, frozen=True, kw_only=True):
    """R31, H4. Spans in ms."""

    statuses: frozenset[int] = frozenset({404})
    grace: int = 0
    once_seen: str = "integration_failure"
    confirms_cancel: bool = False


class Identity(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    job_id: Expression | None = None
    account: Expression | None = None
    attempt: Expression | None = None
    steps: frozenset[str] = frozenset()
    """Whose answers repeat them; empty: every step's, but for children."""


class ErrorFields(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    message: Expression | None = None
    code: Expression | None = None
    retryable: Expression | None = None


class Progress(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    value: Expression
    total: Expression | None = None


class Redirect(msgspec.Struct, frozen=True, kw_only=True):
    """H2: these statuses mean success, the result is at `Location`, under this field name."""

    statuses: frozenset[int]
    field: str = "location"
    state: str = "redirected"
    hosts: tuple[str, ...] = ()


class BodyFormat(msgspec.Struct, frozen=True, kw_only=True):
    """R24: how the body of an answer is written. *lists*: XML elements that are lists even when they come once."""

    name: str = "json"
    lists: frozenset[str] = frozenset()


JSON: Final = BodyFormat()


class ItemPlan(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """R39: where this job's own entry lies in an answer about several jobs.

    *entries*: a list, or a table by job id. *job_id*: over `item`; None: the table's keys are the ids.
    """

    entries: Expression
    job_id: Expression | None = None


class EachPlan(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """R21: a step that is asked once for each child that the step before it lists.

    *children*: over that step's answer, their ids or addresses. *together*: `all`, `any`, `worst`. *lister*: the step
    that lists them, where every round begins.
    """

    children: Expression
    most: int
    together: str = "worst"
    lister: str = "status"


class RequestPlan(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One request to render. *use_provider_url*: never, prefer or require the status URL that was handed over."""

    key: str
    """Which table of the contract: `status`, `cancel` ..."""
    method: str
    url: UrlTemplate | None
    query: tuple[tuple[str, TextTemplate], ...] = ()
    headers: tuple[tuple[str, TextTemplate], ...] = ()
    fixed_headers: tuple[tuple[str, str], ...] | None = None
    body: BodyTemplate | None = None
    form: tuple[tuple[str, TextTemplate], ...] = ()
    credential: bool = True
    use_provider_url: str = "never"
    total_ms: int = 30_000
    format: BodyFormat = JSON


class BatchPlan(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """R39: one status request for at most *most* operations.

    *gather*: ms that a due operation waits for company. *joined*: somewhere the ids are one text, with *separator*
    between them; *raw*: somewhere that text is not encoded; *within*: somewhere it is a piece of a text with a syntax
    of its own, `quoted` or `bare`, else "". *request*: the status request with the parts that name `{job_ids}`.
    """

    most: int
    gather: int
    separator: str
    joined: bool
    request: RequestPlan
    raw: bool = False
    within: str = ""


class Step(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """R21: one request of the chain. *then*: (expression, next step, at once) tried in order after its answer."""

    name: str
    request: RequestPlan
    remember: tuple[tuple[str, Expression], ...] = ()
    next_url: Expression | None = None
    then: tuple[tuple[Expression, str, bool], ...] = ()
    location: str = "check"
    item: ItemPlan | None = None
    each: EachPlan | None = None
    batch: BatchPlan | None = None


class Pages(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """R32: where a page of the result says that there is another. *next*: its address; or *token*: what goes into the
    query *parameter*, or the top-level *field* of the JSON body, of the next request."""

    most: int
    next: Expression | None = None
    token: Expression | None = None
    parameter: str | None = None
    field: str | None = None


class CancelPlan(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """R35: the request and how its answer is read; what the card says is in the policy."""

    request: RequestPlan
    done_statuses: frozenset[int]
    refused_statuses: frozenset[int]
    done_when: Expression | None = None
    refused_when: Expression | None = None
    leads_to: str | None = None
    by_step: dict[str, RequestPlan] = {}
    """Step of the chain -> the request that cancels in it."""
    force: CancelPlan | None = None
    """The stronger one that may follow this one when it did not end the job; itself has none."""
    available_at: Expression | None = None
    """Of a stronger one: where a status answer names the time from which on it may be sent, written as *unit*."""
    unit: Unit = Unit.ISO


class SubmissionAnswer(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """R16, H1: where job id, status URL and further parameters are in the answer to a submission."""

    statuses: frozenset[int]
    job_id: Expression | None = None
    job_id_pattern: Pattern | None = None
    status_url: Expression | None = None
    status_url_is: str = "status"
    params: tuple[tuple[str, Expression], ...] = ()
    reads_state: bool = True
    format: BodyFormat = JSON


class Submission(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    request: RequestPlan | None = None
    answer: SubmissionAnswer | None = None
    key_header: str | None = None
    key_query: str | None = None
    has_key: bool = False
    key_max_length: int | None = None
    key_lifetime: int | None = None
    on_repeat: str | None = None


class Param(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One declared parameter of a submission."""

    name: str
    required: bool = False
    default: str | int | float | bool | None = None
    pattern: Pattern | None = None
    about: str | None = None
