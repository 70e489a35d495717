"""What the shell found out before a card is drawn.

Job: one frozen value with every fact that choices depend on and the record does not hold. Must not know: how any of it
was found (files, keyring, store), and no secret.
"""

from __future__ import annotations

import msgspec

from pollcore.facts import CredentialMode, Instant, Limits, Memory, Observation, Policy, Request


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
    session_minutes: int = 480
    session_calls: int = 200


class ModeChange(msgspec.Struct, frozen=True, kw_only=True):
    """G6: a credential's mode that the command line asked to loosen."""

    credential: str
    before: CredentialMode
    after: CredentialMode


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
    console_url: str | None = None
    """The provider's own console for this job, from the contract (E9)."""
    near_match: str | None = None
    """S2: the nearest state that the contract knows; a hint to the human only."""
    allow_http: bool = False
    use: CredentialUse | None = None
    mode: ModeChange | None = None
    contract_unseen: bool = False
    """G5: the contract file is new or changed and no operator has looked at it."""
