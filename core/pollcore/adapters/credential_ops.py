"""What `credential set|list|remove|mode` do: plain functions over keyring and metadata.

Job: check what an operator enters, store it so that a secret never stands under origins that it was not entered for.
Must not know: prompts, exit codes, keyring libraries, SQL.
Source: spec K1, K3, K5, G2, G6.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec

from pollcore.adapters.address import parse_address
from pollcore.adapters.credentials import LONG, MAX_LONG, CredentialMeta, delete_secret, entry_name, write_secret
from pollcore.adapters.fill import OURS
from pollcore.adapters.keyring_store import MAX_VALUE, Vault
from pollcore.adapters.pinned import SEPARATOR
from pollcore.adapters.token_kinds import Seller, checked_secret
from pollcore.facts import BUYS_BEARER, CredentialMode, Instant, NotFound, Refused, Secret
from pollcore.ports import CredentialInfo

KINDS: Final = ("bearer", "basic", "header", "query", "sigv4", *BUYS_BEARER)
MAX_ORIGINS: Final = 16
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}", re.ASCII)
_QUERY_NAME: Final = re.compile(r"[A-Za-z0-9_.~\[\]-]{1,128}", re.ASCII)
_PRINTABLE: Final = re.compile(r"[!-~](?:[ !-~]*[!-~])?")


async def set_credential(
    vault: Vault,
    meta: CredentialMeta,
    *,
    name: str,
    kind: str,
    names: tuple[str, ...] = (),
    origins: Sequence[str],
    secret: Secret | None,
    now: Instant,
    begin: Callable[[], Awaitable[None]] | None = None,
) -> CredentialInfo:
    """Store a credential or replace it; its secret is demanded every time. A mode that is set already stays, also
    when kind or origins change, and a new credential begins with the mode that a removed one of its name had (G2).

    Args:
        origins: URLs without a path; kept as `scheme://host:port`.
        secret: For kind header one line per header; for kind basic `user:password`.
        begin: awaited once nothing is refused any more, before the first write.

    Raises:
        Refused: a value that cannot be used. CredentialUnavailable: the keyring. Stale: changed meanwhile, run again.
    """
    if not _NAME.fullmatch(name):
        raise Refused("a credential's name is 1-64 ASCII letters, digits, '.', '_' and '-'", code="credential")
    check_kind(kind, names)
    pinned = _origins(origins)
    if secret is None:
        raise Refused(f"credential {name}: enter the secret again; it is bound to its origins", code="secret")
    kept = _checked_secret(kind, names, secret.reveal())
    if kind in BUYS_BEARER and parse_address(Seller(*names).url).origin not in pinned:
        raise Refused("the token endpoint is not among the origins; name it with --origin, too", code="origin")
    former = await meta.get(name)
    mode = former.mode if former else await meta.left_mode(name) or CredentialMode.STANDING
    info = CredentialInfo(name=name, kind=kind, names=names, origins=pinned, mode=mode, created_at=now)
    if begin is not None:
        await begin()
    # first the entry, then the row, then the former entry: at no moment does a secret stand under origins not its own
    await write_secret(vault, info, kept)
    await meta.put(info, former)
    if former is not None and entry_name(former) != entry_name(info):
        await delete_secret(vault, former)
    return info


async def list_credentials(meta: CredentialMeta) -> Sequence[CredentialInfo]:
    """All, by name; never a value."""
    return await meta.list()


async def remove_credential(vault: Vault, meta: CredentialMeta, name: str) -> None:
    """Delete secret and row. Raises NotFound, CredentialUnavailable (then nothing was removed)."""
    info = await existing(meta, name)
    await delete_secret(vault, info)
    await meta.remove(name)


async def change_mode(meta: CredentialMeta, name: str, mode: CredentialMode) -> CredentialInfo:
    """Set the mode towards `per_call`; nothing here ever sets a less strict one (G2: that takes a grant).

    Raises:
        NotFound. Refused, code `mode_needs_grant`: less strict than now. Stale: changed meanwhile, run again.
    """
    info = await existing(meta, name)
    if mode is info.mode:
        return info
    if mode.is_looser_than(info.mode):
        raise Refused(
            f"credential {name}: from {info.mode} to {mode} is new authority; an operator grants it in the console",
            code="mode_needs_grant",
            name=name,
            mode=mode,
        )
    changed = msgspec.structs.replace(info, mode=mode)
    await meta.put(changed, info)
    return changed


async def existing(meta: CredentialMeta, name: str) -> CredentialInfo:
    """What may be known of a stored credential. Raises NotFound with near names."""
    info = await meta.get(name)
    if info is None:
        near = difflib.get_close_matches(name, [row.name for row in await meta.list()], n=3)
        shown = name if _NAME.fullmatch(name) else "of that name"
        raise NotFound(
            f"no credential {shown}"
            + (f"; near: {', '.join(near)}" if near else "; 'pollconsole credential list' shows what is stored")
        )
    return info


def check_kind(kind: str, names: tuple[str, ...]) -> None:
    if kind not in KINDS:
        known = "bearer, basic, header:NAME, header:NAME,NAME, query:NAME, sigv4, oauth2, refresh, google or github-app"
        raise Refused(f"a credential's kind is {known}", code="kind")
    if kind in BUYS_BEARER:
        if len(names) != len(Seller._fields):
            raise Refused(f"kind {kind} needs the address that sells tokens (--token-url)", code="kind")
        return
    least, most = {"header": (1, 2), "query": (1, 1)}.get(kind, (0, 0))
    if not least <= len(names) <= most or len({name.lower() for name in names}) != len(names):
        raise Refused(f"kind {kind} takes {least}-{most} names, each once", code="kind")
    pattern = _QUERY_NAME if kind == "query" else _TOKEN
    if not all(pattern.fullmatch(name) and name.lower() not in OURS for name in names):
        raise Refused(f"kind {kind}: not a name that can be sent", code="kind")


def _origins(urls: Sequence[str]) -> tuple[str, ...]:
    if not 1 <= len(urls) <= MAX_ORIGINS:
        raise Refused(f"a credential is pinned to 1-{MAX_ORIGINS} origins", code="origin")
    found = []
    for url in urls:
        try:
            address = parse_address(url)
        except ValueError as error:
            raise Refused(f"--origin: {error}", code="origin") from None
        if address.target != "/":
            raise Refused("--origin: scheme, host and port alone, without path and query", code="origin")
        found.append(address.origin)
    return tuple(sorted(set(found)))


def _checked_secret(kind: str, names: tuple[str, ...], value: str) -> str:
    """The secret as it is kept. Refuse what could not be sent; the text never quotes it."""
    most = MAX_LONG if kind in LONG else MAX_VALUE
    if not 1 <= len(value) <= most:
        raise Refused(f"a secret of kind {kind} has 1-{most} characters (limit of the smallest keyring)", code="secret")
    if kind in BUYS_BEARER:
        return checked_secret(kind, value)
    lines = value.split(SEPARATOR) if kind == "header" else [value]
    if kind == "header" and len(lines) != len(names):
        raise Refused(f"the secret has {len(lines)} lines, the kind has {len(names)} headers", code="secret")
    if not all(_PRINTABLE.fullmatch(line) for line in lines):
        raise Refused("a secret is printable ASCII without spaces at its ends", code="secret")
    if kind == "basic" and ":" not in value:
        raise Refused("kind basic: the secret is user:password", code="secret")
    if kind == "sigv4" and not 2 <= len(value.split(":")) <= 3:
        raise Refused("kind sigv4: the secret is ACCESS_KEY_ID:SECRET_ACCESS_KEY[:SESSION_TOKEN]", code="secret")
    return value
