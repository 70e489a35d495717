"""The contract as the rest of the core sees it: frozen, compiled, without TOML.

Job: its fields. Must not know: how they are read from a file, how answers are judged.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pollcore.contract.expressions import Expression
from pollcore.contract.parts import (
    CancelPlan,
    ErrorFields,
    Expiry,
    Hint,
    Identity,
    NotFoundRules,
    Pages,
    Param,
    Progress,
    Redirect,
    RequestPlan,
    Rule,
    StateTable,
    Step,
    Submission,
    Success,
)
from pollcore.contract.templates import UrlTemplate
from pollcore.facts import Policy, RateScope, Snapshot, Verdict

NOT_TRIED: Final = frozenset({"", "no", "none", "never"})
"""Texts of `tested_live` that name no live version."""


class Contract(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One provider contract, with the settings of the instance it is used under."""

    name: str
    title: str
    digest: str
    """S7: SHA-256 over the text and the instance settings (caps aside)."""
    filename: str
    snapshot_text: str
    settings: dict[str, Any]
    lines: dict[str, int]
    """Line of each key, dotted, for findings."""

    policy: Policy
    origins: tuple[str, ...]
    """`scheme://host:port`, or `https://*.host:port`: the only places where requests may go (K3)."""
    bare_origins: frozenset[str]
    """Origins that get no credential (R17)."""
    request_origins: tuple[str, ...]
    """The exact ones of *origins*, as requests carry them."""
    base_url: str | None
    requires_base_url: bool
    base_url_required: bool
    urls: dict[str, str]
    url_names: tuple[str, ...]
    allow_http: bool
    account: str | None
    console_url: UrlTemplate | None
    credential_kind: str
    credential_names: tuple[str, ...]
    credential_optional: bool
    reveals: str | None = None
    """G7: what an answer can reveal, in the author's words."""
    params: tuple[Param, ...]

    sources: tuple[str, ...]
    tested_live: str | None
    observation: str | None
    evidence: str | None
    """Why asking changes nothing, in its author's words; this, `sources` and `tested_live` hold no placeholder."""
    deadline_basis: str
    retention_note: str | None
    concurrency: int | None
    per_minute: int | None
    scopes: tuple[RateScope, ...]

    steps: tuple[Step, ...]
    """The first is the status request."""
    table: StateTable
    rules: tuple[Rule, ...]
    needs: frozenset[str] = frozenset()
    """Roots of the scope that expressions of status reading use."""
    prefixes: tuple[tuple[str | int, ...], ...] = ()
    """Paths that the rules read: what an envelope keeps of a large body."""
    kept_headers: frozenset[str] = frozenset()
    """Headers that expressions read: an envelope keeps them."""
    success: Success
    not_found: NotFoundRules
    forbidden_grace: int
    forbidden_max: int
    redirect: Redirect | None
    identity: Identity
    error: ErrorFields
    human_explanation: Expression | None
    progress: Progress | None
    request_id_header: str | None
    request_id_path: Expression | None
    hints: tuple[Hint, ...]
    expiries: tuple[Expiry, ...]
    long_poll_timeouts: frozenset[int]
    cancel: CancelPlan | None
    result: RequestPlan | None
    pages: Pages | None
    submission: Submission | None
    final_states: tuple[str, ...]
    """Every listed final state as displayed (S7: what an operation may expect)."""

    @property
    def meant(self) -> dict[Verdict, str]:
        """Each verdict that a listed state or a rule gives, with the first place that does."""
        table = self.table
        listed = [*table.texts.values(), *table.others.values(), *(one.meaning for one in table.patterns)]
        listed += [table.absent] if table.absent is not None else []
        listed += [rule.meaning for rule in self.rules if rule.meaning is not None]
        return {meaning.verdict: meaning.where for meaning in reversed(listed)}

    @property
    def tried(self) -> bool:
        """Somebody ran it against a live version of the provider: `tested_live` says which; `no`, `never`: nobody."""
        return self.tested_live is not None and self.tested_live.strip().lower() not in NOT_TRIED

    @property
    def asks_first_use(self) -> bool:
        """X7: an operator says once for this digest what its status requests are; False: the contract says it."""
        proved = self.tried and self.evidence is not None
        return self.observation is None or (self.observation == "read_only" and not proved)

    @property
    def snapshot(self) -> Snapshot:
        """S8: what is stored with an operation; `instances.from_snapshot` makes the contract again."""
        return Snapshot(digest=self.digest, name=self.name, text=self.snapshot_text, instance=self.settings)
