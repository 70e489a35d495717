"""A contract under the settings of one configured provider instance.

Job: base URL, further URLs, http permission and account put in; origins and digest follow (S7, H2). Snapshots back to
contracts (S8). Must not know: `config.toml`, credentials, caps (they are outside the digest).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from pollcore.contract.digest import digest_of
from pollcore.contract.model import Contract
from pollcore.contract.origins import is_loopback, normalise_origin
from pollcore.contract.parse import parse
from pollcore.contract.parts import RequestPlan
from pollcore.facts import ContractError, Refused, Snapshot

SETTINGS: Final = ("base_url", "allow_http", "account", "urls")


def instance(
    contract: Contract,
    *,
    base_url: str | None = None,
    allow_http: bool = False,
    account: str | None = None,
    urls: Mapping[str, str] | None = None,
) -> Contract:
    """*contract* as configured. Settings that are not given leave the contract's own.

    Raises:
        Refused: code `instance`: no base URL where one is required, not a URL, an unknown entry of *urls*, or http
            beyond loopback without *allow_http*.
    """
    settings: dict[str, Any] = {}
    if base_url is not None:
        settings["base_url"] = _base(contract, "base_url", base_url, allow_http)
    if urls:
        unknown = sorted(set(urls) - set(contract.url_names))
        if unknown:
            known = ", ".join(contract.url_names) or "none"
            raise _refused(contract, f"urls.{unknown[0]}", f"the contract knows no such URL (known: {known})")
        settings["urls"] = {key: _base(contract, f"urls.{key}", url, allow_http) for key, url in sorted(urls.items())}
    if allow_http:
        settings["allow_http"] = True
    if account is not None:
        settings["account"] = account
    base = settings.get("base_url", contract.base_url)
    if base is None and contract.base_url_required:
        raise _refused(
            contract, "base_url", 'is missing; the contract does not say where the server is: base_url = "https://..."'
        )
    bound = {**contract.urls, **settings.get("urls", {})}
    origins = list(contract.origins)
    if base_url is not None and contract.base_url is not None:
        # the instance's server takes the place of the contract's own
        origins.remove(normalise_origin(contract.base_url))
    origins += [normalise_origin(url) for url in ((base,) if base else ()) + tuple(bound.values())]
    allowed = tuple(dict.fromkeys(origins))
    made = msgspec.structs.replace(
        contract,
        digest=digest_of(contract.snapshot_text, settings),
        settings=settings,
        base_url=base,
        requires_base_url=contract.base_url_required and base is None,
        urls=bound,
        allow_http=allow_http,
        account=account if account is not None else contract.account,
        origins=allowed,
        request_origins=tuple(origin for origin in allowed if "*" not in origin),
    )
    return _without_unaddressed_cancel(made)


def _base(contract: Contract, key: str, text: str, allow_http: bool) -> str:
    url = text.rstrip("/")
    try:
        origin = normalise_origin(url)
    except Refused as error:
        raise _refused(contract, key, str(error)) from None
    if "?" in url:
        raise _refused(contract, key, "has a query; give scheme, host, port and perhaps a path")
    if origin.startswith("http://") and not is_loopback(origin) and not allow_http:
        what = "http beyond this machine sends everything readable; use https, or set allow_http = true for it"
        raise _refused(contract, key, what)
    return url


def _refused(contract: Contract, key: str, what: str) -> Refused:
    return Refused(f"{contract.name}: {key}: {what}", code="instance", key=key)


def _without_unaddressed_cancel(contract: Contract) -> Contract:
    """A cancel whose URL this instance does not know is not offered (E5); without it no stronger one is."""
    plan, policy = contract.cancel, contract.policy
    if plan is None or policy.cancel is None:
        return contract
    if not addressed(contract, plan.request):
        policy = msgspec.structs.replace(policy, cancel=None, force_cancel=None)
    elif plan.force is not None and not addressed(contract, plan.force.request):
        policy = msgspec.structs.replace(policy, force_cancel=None)
    return contract if policy is contract.policy else msgspec.structs.replace(contract, policy=policy)


def addressed(contract: Contract, plan: RequestPlan) -> bool:
    """Whether the base URLs that *plan* starts with are known."""
    names = plan.url.names() if plan.url is not None else frozenset()
    needed = {name.partition(".")[2] for name in names if name.startswith("urls.")}
    return needed <= set(contract.urls) and ("base_url" not in names or contract.base_url is not None)


def from_snapshot(snapshot: Snapshot) -> Contract:
    """The contract as it was at submission.

    Raises:
        ContractError: a newer program wrote it, or text and digest do not belong together.
    """
    try:
        contract = parse(snapshot.text, f"{snapshot.name}.toml")
        settings = {key: value for key, value in snapshot.instance.items() if key in SETTINGS}
        made = instance(contract, **settings) if settings or contract.base_url_required else contract
        made = made if settings else _without_unaddressed_cancel(made)
    except Refused as error:
        raise error if isinstance(error, ContractError) else ContractError(str(error)) from None
    if made.digest != snapshot.digest:
        raise ContractError(f"{snapshot.name}: the stored contract does not match its digest {snapshot.digest[:12]}")
    return made
