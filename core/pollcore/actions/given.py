"""What a submission gives, checked one by one before anything is stored.

Job: refuse what is known to be wrong (a fingerprint that is none, a credential that nobody stored, a status URL outside
the contract, a job id that no address can carry), and name what a repeated submission asked for and does not get.
Must not know: flags, the store's records beyond the one at hand. Source: spec S7, K3, H2, B1.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from typing import TYPE_CHECKING, Any, Final

from pollcore.contract import Contract
from pollcore.contract.origins import covers, is_loopback, normalise_origin
from pollcore.facts import BUYS_BEARER, CredentialUnavailable, Instant, Operation, Refused, StopDetail, iso

if TYPE_CHECKING:
    from pollcore.actions.spec import SubmitSpec
    from pollcore.ports import Credentials

NEAR: Final = 3
"""How many near names a refusal lists."""
_DIGEST: Final = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)
_CONTROL: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
_COUNTED: Final = ("max_status_requests", "max_transport_failures", "max_rate_limited")


def check_fingerprint(text: str | None) -> str | None:
    """The fingerprint in lower case. Raises Refused: no SHA-256 in hex."""
    if text is not None and not _DIGEST.fullmatch(text):
        raise Refused(
            f"--request-fingerprint: its {len(text)} characters are no SHA-256: give 64 hex digits, or leave it out",
            code="fingerprint",
        )
    return None if text is None else text.lower()


def check_job_id(job_id: str) -> None:
    """Raises Refused: an id that no address can carry as one part of its path."""
    if job_id in (".", ".."):
        raise Refused(f'job id "{job_id}" is a relative path: give the id that the provider gave', code="job_id")
    if any(unicodedata.category(character) in _CONTROL for character in job_id):
        raise Refused("the job id holds a control character: give the id that the provider gave", code="job_id")


def check_status_url(contract: Contract, url: str) -> None:
    """Raises Refused: no absolute URL, outside the contract's origins (K3), or http beyond loopback (H2)."""
    try:
        origin = normalise_origin(url)
    except Refused as error:
        raise Refused(f"--status-url: {error}", code="bad_url") from None
    if not any(covers(allowed, origin) for allowed in contract.origins):
        raise Refused(
            f"--status-url: {origin} is none of the contract's origins ({', '.join(contract.origins) or 'none'}); "
            "nothing is sent there: give the address that the provider gave, or mend the contract or its instance",
            code="foreign_origin",
        )
    if origin.startswith("http://") and not is_loopback(origin) and not contract.allow_http:
        raise Refused(
            f"--status-url: {origin} is http beyond this machine: give the https address, or set allow_http = true for "
            "this provider in config.toml",
            code="insecure",
        )


def check_wanted(contract: Contract, name: str, instance: str | None = None) -> None:
    """Raises Refused: the contract asks without a credential. *instance*: whose settings name it; None: the command."""
    if contract.credential_kind == "none":
        way = "leave --credential out" if instance is None else "take the line out"
        raise Refused(
            f"{_named(name, instance)}: the contract {contract.name} asks without a credential; {way}",
            code="credential",
        )


def _named(name: str, instance: str | None) -> str:
    """Where a credential was named: the place to mend."""
    return f"--credential {name}" if instance is None else f'config.toml: [providers.{instance}] credential = "{name}"'


async def check_stored(
    credentials: Credentials, name: str, kind: str | None = None, *, instance: str | None = None
) -> None:
    """For a command, or with *instance* for its settings: raises Refused where no credential of that name is stored
    (with near names; with the absent keyring first, where none can be), or one of another kind than the contract's.

    A library that hands a wait over first and stores the credential later gets the question of K2 instead.
    """
    known = {info.name: info.kind for info in await credentials.known()}
    stored = list(known)
    if name in known:
        _check_kind(name, known[name], kind, instance)
        return
    absent = await _no_keyring(credentials, name)
    if absent is not None:
        raise Refused(f"{_named(name, instance)}: {absent}", code="credential")
    near = difflib.get_close_matches(name, stored, NEAR, 0.6)
    hint = f"did you mean {' or '.join(near)}?" if near else "`pollconsole credential list` shows what is."
    raise Refused(
        f"{_named(name, instance)}: no credential of that name is stored; {hint} "
        f"A new one: `pollconsole credential set {name} --origin URL --kind KIND`",
        code="credential",
    )


async def _no_keyring(credentials: Credentials, name: str) -> str | None:
    """Why a credential that is not stored cannot be stored here, with the way out; None: it can be."""
    try:
        await credentials.info(name)
    except CredentialUnavailable as error:
        return str(error) if error.detail == StopDetail.KEYRING_ABSENT else None
    return None


def _check_kind(name: str, stored: str, wanted: str | None, instance: str | None) -> None:
    """K5: a password is not sent as a token, nor a token as a password."""
    sent = "bearer" if stored in BUYS_BEARER else stored
    if wanted is not None and sent != wanted:
        raise Refused(
            f"{_named(name, instance)}: it is of kind {stored}, the contract sends {wanted}; store one of that kind: "
            f"`pollconsole credential set`",
            code="credential_kind",
        )


def refuse_base_url(provider: str) -> Refused:
    """The refusal of a contract that must be told its server, under a name that tells none."""
    return Refused(
        f"{provider}: the base_url is missing, its contract does not say where the server is: add a table "
        f'[providers.NAME] with contract = "{provider}" and base_url = "https://..." to config.toml; submit to NAME',
        code="base_url",
    )


def differing(existing: Operation, spec: SubmitSpec) -> tuple[str, ...]:
    """B1: what a repeated submission asks for beside the job that the stored operation has otherwise; one warning."""
    found = [
        f"{name} {asked} was asked for, {getattr(existing, name)} holds"
        for name in _COUNTED
        if (asked := getattr(spec, name)) is not None and asked != getattr(existing, name)
    ]
    asked_for: list[tuple[str, Any, Any]] = [
        ("deadline", _deadline(existing, spec), existing.deadline_at),
        ("useful_until", spec.useful_until, existing.useful_until),
        ("started_at", spec.started_at, existing.started_at),
    ]
    for name, asked, holds in asked_for:
        if asked is not None and asked != holds:
            found.append(f"{name} {iso(asked)} was asked for, {'none' if holds is None else iso(holds)} holds")
    for name, said, kept in (
        ("label", spec.label, existing.submitted.label),
        ("caller", spec.caller, existing.submitted.caller),
    ):
        if said is not None and said != kept:
            found.append(f"{name} differs")
    if not found:
        return ()
    return (f"{existing.operation_id} exists with other terms, which stay: {'; '.join(found)}",)


def _deadline(existing: Operation, spec: SubmitSpec) -> Instant | None:
    """A relative one counts from the stored start: the same words again ask for the same."""
    if spec.deadline_ms is not None:
        return Instant(existing.started_at + spec.deadline_ms)
    return spec.deadline_at
