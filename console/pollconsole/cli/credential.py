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
from pollconsole.cli.values import MAX_BECAUSE, MAX_URL, Text, caller_option
from pollcore.facts import BUYS_BEARER, CredentialMode, Refused, Secret

MAX_SECRET: Final = 1_000
"""Characters; what every keyring stores in one entry."""
LONG: Final = {"refresh": 4_000, "sigv4": 4_000}
"""Kinds whose secret is kept in several entries."""
KEY_FILES: Final = ("google", "github-app")
MAX_KEY_FILE: Final = 16_000
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
    """`bearer`, `basic`, `header:N`, `header:N,M`, `query:N`, `sigv4` and those that buy tokens, as (kind, names)."""

    def _check(self, value: str) -> Any:
        kind, colon, rest = value.partition(":")
        names = tuple(rest.split(",")) if colon else ()
        if kind in ("bearer", "basic", "sigv4", *BUYS_BEARER) and not colon:
            return kind, names
        if kind == "header" and 1 <= len(names) <= 2 and all(_HEADER.fullmatch(name) for name in names):
            return kind, names
        if kind == "query" and len(names) == 1 and _QUERY.fullmatch(names[0]):
            return kind, names
        raise ValueError(
            "write bearer, basic, header:NAME, header:NAME,NAME, query:NAME, sigv4, "
            "oauth2, refresh, google or github-app"
        )


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
    "pollconsole credential set lake --origin https://lake.example --kind oauth2 --token-url https://lake.example/token",
    short_help="Store or replace a secret.",
)
@click.argument("name", type=Name())
@click.option("--origin", "origins", type=Text(MAX_URL), multiple=True, required=True, metavar="URL",
              help="The only places it may be sent to; repeat.")  # fmt: skip
@click.option("--kind", type=Kind(), required=True, metavar="KIND",
              help="bearer, basic, header:N[,M], query:N, sigv4, oauth2, refresh, google, github-app.")  # fmt: skip
@click.option("--token-url", type=Text(MAX_URL), metavar="URL", help="Where oauth2 and refresh buy their tokens.")
@click.option("--scope", type=Text(1_000), metavar="TEXT",
              help="What the tokens may do; for github-app APP_ID/INSTALLATION_ID.")  # fmt: skip
@click.option("--client-auth", type=click.Choice(["basic", "form"]), help="How oauth2 and refresh prove who asks.")
@pass_common
def set_(
    common: Common,
    name: str,
    origins: tuple[str, ...],
    kind: tuple[str, tuple[str, ...]],
    token_url: str | None,
    scope: str | None,
    client_auth: str | None,
) -> None:
    """Store a secret, or replace it; changing an origin or kind always demands the secret again.

    The secret is asked for without echo, or read as the one line of standard input (for header:N,M two lines). It is
    never an argument: others could read it in the list of processes. For basic it is USER:PASSWORD.

    The mode of a stored credential stays as it is, also under other origins, and a credential that takes the name of a
    removed one begins with that one's mode: 'pollconsole credential mode' changes it.
    """
    calls.harden(common)
    kind = _with_seller(kind, token_url, scope, client_auth)
    secret = read_key(kind[0]) if kind[0] in KEY_FILES else read_secret(_lines(kind), LONG.get(kind[0], MAX_SECRET))

    async def body(core: bridge.Core) -> list[dict[str, Any]]:
        await bridge.set_credential(core, name, kind=kind[0], names=kind[1], origins=origins, secret=secret)
        return await bridge.credentials(core)

    stored = calls.with_core(common, body, makes=True)
    mine = [view for view in stored if view["name"] == name]
    if common.json:
        out.document({"credentials": mine})
    else:
        out.text(_table(mine))


def _with_seller(
    kind: tuple[str, tuple[str, ...]], token_url: str | None, scope: str | None, client_auth: str | None
) -> tuple[str, tuple[str, ...]]:
    """The kind with where its tokens are bought. Raises Refused: an option that this kind does not have."""
    if kind[0] in BUYS_BEARER:
        return kind[0], bridge.seller_names(kind[0], url=token_url, client_auth=client_auth, scope=scope)
    if token_url or scope or client_auth:
        raise Refused(
            f"--token-url, --scope and --client-auth belong to the kinds {', '.join(BUYS_BEARER)}", code="kind"
        )
    return kind


def _lines(kind: tuple[str, tuple[str, ...]]) -> int:
    return 2 if kind[0] == "refresh" else len(kind[1]) if kind[0] == "header" else 1


def read_key(kind: str) -> Secret:
    """A private key's file from standard input; nobody types one. Raises Refused without quoting anything of it."""
    if sys.stdin is None or sys.stdin.isatty():
        raise Refused(f"kind {kind}: give the key's file on standard input: ... < key-file", code="secret")
    raw = sys.stdin.buffer.read(MAX_KEY_FILE + 1)
    if not raw or len(raw) > MAX_KEY_FILE or not raw.isascii():
        raise Refused(f"kind {kind}: the key's file has 1-{MAX_KEY_FILE} bytes of ASCII text", code="secret")
    return Secret(raw.decode("ascii"))


def read_secret(lines: int = 1, most: int = MAX_SECRET) -> Secret:
    """From a hidden prompt, or stdin when it is no terminal. Raises Refused without quoting anything of it."""
    if sys.stdin is not None and sys.stdin.isatty():
        asked = [
            click.prompt("Secret" if lines == 1 else f"Secret {n + 1} of {lines}", hide_input=True, err=True, type=str)
            for n in range(lines)
        ]
        text = "\n".join(asked)
    else:
        stream = getattr(sys.stdin, "buffer", None)
        raw = b"" if stream is None else stream.read(lines * (most + 2) + 1)
        if not raw.isascii():
            raise Refused("the secret holds characters beyond ASCII; HTTP headers carry none", code="secret")
        text = raw.decode("ascii").removesuffix("\n").removesuffix("\r").replace("\r\n", "\n")
    parts = text.split("\n")
    if len(parts) != lines or not all(parts):
        want = "one line" if lines == 1 else f"{lines} lines"
        raise Refused(f"the secret must be {want}, not empty, on standard input or at the prompt", code="secret")
    for part in parts:
        if len(part) > most:
            raise Refused(f"the secret is longer than the {most} characters that every keyring keeps", code="secret")
        if not part.isascii() or not part.isprintable() or part != part.strip():
            raise Refused("the secret has spaces at its ends, or characters that a header cannot carry", code="secret")
    return Secret(text)


@command("list", "pollconsole credential list", short_help="Names, kinds, origins; never a secret.")
@pass_common
def list_(common: Common) -> None:
    """List stored credentials: names, kinds, origins, modes.

    Secrets are never shown.
    """

    async def body(core: bridge.Core) -> list[dict[str, Any]]:
        return await bridge.credentials(core)

    found = calls.with_core(common, body)
    if common.json:
        out.document({"credentials": found})
    elif found:
        out.text(_table(found))
        for one in (live for view in found for live in view["sessions"]):
            left = f"{one['calls_left']} of {one['calls']} calls left"
            out.text(f"session of {one['credential']} for {one['run']}: until {one['until']}, {left}")
    else:
        out.note("no credentials; 'pollconsole credential set' stores one")


@command("remove", "pollconsole credential remove acme-key", short_help="Forget a secret.")
@click.argument("name", type=Name())
@pass_common
def remove(common: Common, name: str) -> None:
    """Remove a secret from the keyring.

    Operations that need it stop with a question.
    """

    async def body(core: bridge.Core) -> None:
        await bridge.remove_credential(core, name)

    calls.with_core(common, body)
    if common.json:
        out.document({"removed": name})
    else:
        out.text(f"{name}: removed from the keyring")


@command(
    "mode",
    "pollconsole credential mode acme-key per_call",
    "pollconsole credential mode acme-key standing --because 'the nightly batch asks 400 times'",
    short_help="How often an operator is asked.",
)
@click.argument("name", type=Name())
@click.argument("mode", type=click.Choice([mode.value for mode in CredentialMode]))
@click.option("--because", type=Text(MAX_BECAUSE), metavar="TEXT", help="Why; shown to the operator who decides.")
@caller_option
@pass_common
def mode_(common: Common, name: str, mode: str, because: str | None, caller: str | None) -> None:
    """Change how often the use of a credential is asked for: standing, per_session, per_call.

    Towards per_call it changes at once. Away from it is new authority: the command only asks, and an operator decides
    in the console; until then the mode stays. Asked again, it is the same question; another mode takes its place.
    'pollconsole reject ID' takes it back.
    """

    async def body(core: bridge.Core) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
        by = bridge.operator_name(core, caller)
        asked = await bridge.credential_mode(core, name, CredentialMode(mode), by, because)
        return asked, await bridge.credentials(core)

    asked, stored = calls.with_core(common, body)
    mine = [view for view in stored if view["name"] == name]
    if common.json:
        out.document({"credentials": mine, "asked": asked})
    else:
        out.text(_table(mine))
    if asked is not None:
        out.note(f"asked ({asked['id']}); an operator decides in the console, until then the mode stays as it is")


@command(
    "end-session",
    "pollconsole credential end-session acme-key --because 'the night batch is through'",
    short_help="End a session before its time.",
)
@click.argument("name", type=Name())
@click.option("--because", type=Text(MAX_BECAUSE), required=True, metavar="TEXT", help="Why; goes into the audit.")
@caller_option
@pass_common
def end_session(common: Common, name: str, because: str, caller: str | None) -> None:
    """End the sessions of a per_session credential, of every run of the core; its next request asks again.

    This lowers authority, so that anyone may do it. Sessions also end with their time, their calls and their run.
    """

    async def body(core: bridge.Core) -> int:
        await bridge.known_credential(core, name)
        return int(await core.actions.end_session(name, because, bridge.operator_name(core, caller)))

    ended = calls.with_core(common, body)
    if common.json:
        out.document({"credential": name, "ended": ended})
    elif ended:
        out.text(f"{name}: {ended} session{'s' if ended != 1 else ''} ended")
    else:
        out.note(f"{name}: no session was live")


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


for _command in (set_, list_, remove, mode_, end_session):
    credential.add_command(_command)
