"""`credential set|list|remove|mode`: names, kinds and origins of secrets; the secret itself passes through once.

Job: take a secret from a hidden prompt or stdin, never from an argument or the environment, and hand it to the core.
Must not know: the keyring, how secrets are sent. Source: spec K1, K3, K5, G6.
"""

from __future__ import annotations

import re
import sys
from typing import Any, Final

import click

from pollconsole import bridge, words
from pollconsole.cli import calls, out
from pollconsole.cli.base import Common, LazyGroup, command, pass_common
from pollconsole.cli.values import MAX_URL, Text
from pollcore.facts import CredentialMode, Refused, Secret

MAX_SECRET: Final = 1_000
"""Characters; what every keyring stores in one entry."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}", re.ASCII)
_QUERY = re.compile(r"[A-Za-z0-9_.~-]{1,100}", re.ASCII)


class Name(Text):
    """A credential's name: ASCII, so that no look-alike letters pass for another one."""

    def _check(self, value: str) -> str:
        if not _NAME.fullmatch(value):
            raise ValueError("a credential's name is 1-64 letters, digits, '.', '_' and '-'")
        return value


class Kind(Text):
    """`bearer`, `basic`, `header:N`, `header:N,M`, `query:N` as (kind, names)."""

    def _check(self, value: str) -> Any:
        kind, colon, rest = value.partition(":")
        names = tuple(rest.split(",")) if colon else ()
        if kind in ("bearer", "basic") and not colon:
            return kind, names
        if kind == "header" and 1 <= len(names) <= 2 and all(_HEADER.fullmatch(name) for name in names):
            return kind, names
        if kind == "query" and len(names) == 1 and _QUERY.fullmatch(names[0]):
            return kind, names
        raise ValueError("write bearer, basic, header:NAME, header:NAME,NAME or query:NAME")


@click.group(
    "credential",
    cls=LazyGroup,
    short_help="Secrets in the OS keyring.",
    examples=("pollconsole credential set acme-key --origin https://api.acme.example --kind bearer",),
)
def credential() -> None:
    """Secrets of providers: kept in the OS keyring, pinned to origins, never shown."""


@command(
    "set",
    "pollconsole credential set acme-key --origin https://api.acme.example --kind bearer",
    "pass show acme | pollconsole credential set acme-key --origin https://api.acme.example --kind header:X-Api-Key",
    short_help="Store or replace a secret.",
)
@click.argument("name", type=Name())
@click.option("--origin", "origins", type=Text(MAX_URL), multiple=True, required=True, metavar="URL",
              help="The only places it may be sent to; repeat.")  # fmt: skip
@click.option("--kind", type=Kind(), required=True, metavar="KIND", help="bearer, basic, header:N[,M], query:N.")
@pass_common
def set_(common: Common, name: str, origins: tuple[str, ...], kind: tuple[str, tuple[str, ...]]) -> None:
    """Store a secret, or replace it; changing an origin or kind always demands the secret again.

    The secret is asked for without echo, or read as the one line of standard input (for header:N,M two lines). It is
    never an argument: others could read it in the list of processes. For basic it is USER:PASSWORD.
    """
    secret = read_secret(lines=max(1, len(kind[1])))

    async def body(core: bridge.Core) -> list[dict[str, Any]]:
        await bridge.set_credential(core, name, kind=kind[0], names=kind[1], origins=origins, secret=secret)
        return await bridge.credentials(core)

    stored = calls.with_core(common, body, makes=True)
    mine = [view for view in stored if view["name"] == name]
    if common.json:
        out.document({"credentials": mine})
    else:
        out.text(_table(mine))


def read_secret(lines: int = 1) -> Secret:
    """From a hidden prompt, or stdin when it is no terminal. Raises Refused without quoting anything of it."""
    if sys.stdin is not None and sys.stdin.isatty():
        asked = [
            click.prompt("Secret" if lines == 1 else f"Secret {n + 1} of {lines}", hide_input=True, err=True, type=str)
            for n in range(lines)
        ]
        text = "\n".join(asked)
    else:
        stream = getattr(sys.stdin, "buffer", None)
        raw = b"" if stream is None else stream.read(lines * (MAX_SECRET + 2) + 1)
        if not raw.isascii():
            raise Refused("the secret holds characters beyond ASCII; HTTP headers carry none", code="secret")
        text = raw.decode("ascii").removesuffix("\n").removesuffix("\r").replace("\r\n", "\n")
    parts = text.split("\n")
    if len(parts) != lines or not all(parts):
        want = "one line" if lines == 1 else f"{lines} lines"
        raise Refused(f"the secret must be {want}, not empty, on standard input or at the prompt", code="secret")
    for part in parts:
        if len(part) > MAX_SECRET:
            raise Refused(
                f"the secret is longer than the {MAX_SECRET} characters that every keyring keeps", code="secret"
            )
        if not part.isascii() or not part.isprintable() or part != part.strip():
            raise Refused("the secret has spaces at its ends, or characters that a header cannot carry", code="secret")
    return Secret(text)


@command("list", "pollconsole credential list", short_help="Names, kinds, origins; never a secret.")
@pass_common
def list_(common: Common) -> None:
    """List stored credentials: names, kinds, origins, modes. Secrets are never shown."""

    async def body(core: bridge.Core) -> list[dict[str, Any]]:
        return await bridge.credentials(core)

    found = calls.with_core(common, body)
    if common.json:
        out.document({"credentials": found})
    elif found:
        out.text(_table(found))
    else:
        out.note("no credentials; 'pollconsole credential set' stores one")


@command("remove", "pollconsole credential remove acme-key", short_help="Forget a secret.")
@click.argument("name", type=Name())
@pass_common
def remove(common: Common, name: str) -> None:
    """Remove a secret from the keyring. Operations that need it stop with a question."""

    async def body(core: bridge.Core) -> None:
        await bridge.remove_credential(core, name)

    calls.with_core(common, body)
    if common.json:
        out.document({"removed": name})
    else:
        out.text(f"{name}: removed from the keyring")


@command("mode", "pollconsole credential mode acme-key per_call", short_help="How often an operator is asked.")
@click.argument("name", type=Name())
@click.argument("mode", type=click.Choice([mode.value for mode in CredentialMode]))
@pass_common
def mode_(common: Common, name: str, mode: str) -> None:
    """Change how often the use of a credential is asked for: standing, per_session, per_call.

    Towards per_call it changes at once. Away from it is new authority: refused, in this version by the console, too.
    """

    async def body(core: bridge.Core) -> list[dict[str, Any]]:
        await bridge.credential_mode(core, name, CredentialMode(mode))
        return await bridge.credentials(core)

    mine = [view for view in calls.with_core(common, body) if view["name"] == name]
    if common.json:
        out.document({"credentials": mine})
    else:
        out.text(_table(mine))


def _table(found: list[dict[str, Any]]) -> str:
    rows = [
        (
            str(view["name"]),
            ":".join([str(view["kind"]), *([",".join(view["names"])] if view.get("names") else [])]),
            str(view["mode"]),
            ", ".join(view["origins"]),
            str(view.get("last_used_at") or words.NOTHING),
        )
        for view in found
    ]
    return words.table(("CREDENTIAL", "KIND", "MODE", "ORIGINS", "LAST USED"), rows, limits=(64, 64, 0, 200, 0))


for _command in (set_, list_, remove, mode_):
    credential.add_command(_command)
