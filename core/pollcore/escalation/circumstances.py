"""What the shell found out before a card is drawn.

Job: one frozen value with every fact that choices depend on and the record does not hold. Must not know: how any of it
was found (files, keyring, store), and no secret.
"""

from __future__ import annotations

import msgspec

from pollcore.facts import (
    SESSION_CALLS,
    SESSION_MINUTES,
    ContractUse,
    CredentialMode,
    Instant,
    Limits,
    Memory,
    Observation,
    Policy,
    Request,
)


class ChangedContract(msgspec.Struct, frozen=True, kw_only=True):
    """The contract file (with instance settings) differs from what the operation runs under (S8)."""

    digest: str
    diff: str
    """The difference, for the card; shown whole (G4)."""
    knows_state: bool = False
    """Under the new file the last state is listed."""
    has_stored_answer: bool = False
    """A stored last answer can be read again; False: adopting means one more counted check."""
    reads_as: Observation | None = None
    """What the stored answer says under the new file; None: not tried."""
    memory: Memory | None = None
    """What is remembered of the job after that reading."""
    policy: Policy | None = None
    """The new file's numbers: adopting is carried out under them."""
    origins_added: tuple[str, ...] = ()


class CredentialUse(msgspec.Struct, frozen=True, kw_only=True):
    """G7: what a call or session approval would let out. Never the value."""

    request: Request | None = None
    """The exact request that waits for approval."""
    purpose: str = "status request"
    reveals: str | None = None
    """What the answer can reveal, by the contract."""
    scope: str | None = None
    """Origins that the credential is pinned to, as one text."""
    session_minutes: int = SESSION_MINUTES
    session_calls: int = SESSION_CALLS
    for_purpose: str = "status"
    """`status`, `fetch_result`, `cancel`, `force_cancel` or `resubmit`: what the leave serves, and nothing else."""
    mode: CredentialMode | None = None
    """The mode in force for it; None: it goes without a credential."""
    credential: str | None = None
    number: int = 0
    """Requests counted so far, this one included (an action is not counted)."""
    of: int = 0
    digest: str | None = None
    """Of the exact request (`approvals.call_digest`), or of the session; None: nothing could be approved."""
    binding: str | None = None
    """Digest of the credential as it is now."""
    owner: str | None = None
    """The run of the core that a session would be for."""
    problem: str | None = None
    """Why the request cannot be shown, so that nothing can be approved."""


class ModeChange(msgspec.Struct, frozen=True, kw_only=True):
    """G6: a credential's mode that the command line asked to loosen."""

    credential: str
    before: CredentialMode
    after: CredentialMode
    kind: str = ""
    origins: tuple[str, ...] = ()
    """Where the credential may be sent, as it was asked."""
    problem: str | None = None
    """Why it can no longer be approved: the credential changed since it was asked."""


class FirstUse(msgspec.Struct, frozen=True, kw_only=True):
    """X7: what a contract says of its own status requests, and what was decided of it meanwhile."""

    observation: str | None = None
    evidence: str | None = None
    tested_live: str | None = None
    sources: tuple[str, ...] = ()
    asks_by: str | None = None
    """Method and address of the status request of this operation, its query masked."""
    decided: ContractUse | None = None
    """The contract's answer, where another operation's question was answered already."""


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """Facts beside the record. Every default means: not so, or not known; none of them offers more."""

    changed_contract: ChangedContract | None = None
    other_credentials: tuple[str, ...] = ()
    """Names of credentials for the same account and origins, the present one left out."""
    secret_rotated: bool = False
    """The stored secret's keyed digest differs from the refused one's (K5)."""
    keyring_reads: bool = False
    keyring_problem: str | None = None
    unvalidated_result: bool = False
    """The last answer held a result that failed validation."""
    resubmit_possible: bool = False
    """The contract has an idempotency key and a submission template (E6)."""
    fingerprint_matches: bool = False
    """The template's fingerprint equals the stored one."""
    resubmit_limits: Limits | None = None
    """Limits of the new operation; None: the contract's defaults."""
    cooldown_until: Instant | None = None
    """T8: shared cool-down of this provider, account and credential."""
    cancel_sent_at: Instant | None = None
    cancel_outcome: str | None = None
    cancels_taken: tuple[tuple[Instant, str], ...] = ()
    """(sent at, outcome) of the ordinary cancels that the provider may have taken: accepted, unknown, or recorded and
    not answered; oldest first. One that was refused did nothing."""
    force_sent_at: Instant | None = None
    force_outcome: str | None = None
    """Of the last force-cancel (R35)."""
    force_available_at: Instant | None = None
    """From when on the provider's last answer permits one; None: it names no time."""
    console_url: str | None = None
    """The provider's own console for this job, from the contract (E9)."""
    near_match: str | None = None
    """S2: the nearest state that the contract knows; a hint to the human only."""
    allow_http: bool = False
    use: CredentialUse | None = None
    """The request, or the session, that the open question is about."""
    cancel_use: CredentialUse | None = None
    """The cancel's own request, where its credential is not standing: the grant of the cancel is its approval."""
    force_use: CredentialUse | None = None
    """The same of the force-cancel."""
    resubmit_use: CredentialUse | None = None
    mode: ModeChange | None = None
    first_use: FirstUse | None = None
    contract_unseen: bool = False
    """G5: the contract file is new or changed and no operator has looked at it."""
