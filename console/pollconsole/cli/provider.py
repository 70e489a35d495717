"""`provider list|show|check|explain`: contracts and configured instances.

Job: read, print. Must not know: the contract language, how answers are judged.
"""

from __future__ import annotations

from typing import Final

import click

from pollconsole import bridge, words
from pollconsole.cli import calls, files, out, present
from pollconsole.cli.base import Common, LazyGroup, command, pass_common
from pollconsole.cli.values import File, Pair, ProviderName, Text

MAX_CONTRACT_BYTES: Final = 256 << 10
"""As for a file in `providers/`: what is checked here can be used there."""


@click.group(
    "provider",
    cls=LazyGroup,
    short_help="Contracts and configured providers.",
    examples=("pollconsole provider list", "pollconsole provider check ./acme.toml"),
)
def provider() -> None:
    """How providers are asked and their answers are read."""


@command("list", "pollconsole provider list --json", short_help="All contracts and configured providers.")
@pass_common
def list_(common: Common) -> None:
    """List contracts and configured providers by name."""
    found = bridge.providers(_settings(common))
    if common.json:
        out.document({"providers": found})
        return
    rows = [(p["name"], p["contract"], p["source"], p["title"] or f"cannot be used: {p['error']}") for p in found]
    out.text(words.table(("PROVIDER", "CONTRACT", "FROM", "TITLE"), rows, limits=(64, 64, 80, 200)))


@command("show", "pollconsole provider show acme", short_help="One contract, as it is in force.")
@click.argument("name", type=ProviderName())
@pass_common
def show(common: Common, name: str) -> None:
    """Show one contract with the settings of its instance."""
    found = bridge.provider(_settings(common), name)
    if common.json:
        out.document(found)
    else:
        text = found.pop("text", None)
        out.text(present.nested(present.spans(found)))
        if text:
            out.text("\n" + str(text).rstrip("\n"))


@command("check", "pollconsole provider check ./acme.toml", short_help="Is a contract file sound?")
@click.argument("file", type=File())
@pass_common
def check(common: Common, file: str) -> None:
    """Check a contract file: the first error names file, line and key. Nothing is stored or sent."""
    found = bridge.check_contract(_text(file), file)
    if common.json:
        out.document(found)
    else:
        out.text(f"{file}: sound")
        out.text(present.nested(present.spans(found)))


@command(
    "explain",
    "pollconsole provider explain acme --response saved.txt",
    "curl -i https://api.acme.example/jobs/7 | pollconsole provider explain ./acme.toml --response - --job-id 7",
    short_help="How an answer would be read and decided.",
)
@click.argument("contract", type=ProviderName(), metavar="NAME|FILE")
@click.option("--response", type=File(), required=True, metavar="FILE|-", help="A saved answer (curl -i).")
@click.option("--job-id", type=Text(), default="example-job", metavar="ID", help="The job that was asked for.")
@click.option("--param", type=Pair(), multiple=True, metavar="K=V", help="A parameter of the contract; repeat.")
@pass_common
def explain(common: Common, contract: str, response: str, job_id: str, param: tuple[tuple[str, str], ...]) -> None:
    """Explain how a saved answer would be read by a contract, what would be decided, and why. Nothing is sent."""
    saved = files.read_bytes(response, "--response", files.MAX_RESPONSE_BYTES)
    answer = files.parse_response(saved, response, "--response")
    text = _text(contract) if _is_file(contract) else None
    found = bridge.explain(_settings(common), contract, text, answer, job_id, dict(param))
    if common.json:
        out.document(found)
    else:
        out.text(present.nested(found))


def _settings(common: Common) -> bridge.Core:
    """Settings and contracts alone: the store stays closed. A home that was named and is not there is refused."""
    if bridge.home_is_named(common.home):
        calls.refuse_missing(common)
    return bridge.without_store(common.home)


def _is_file(name: str) -> bool:
    return "/" in name or name.endswith(".toml") or name == "-"


def _text(file: str) -> str:
    try:
        return files.read_bytes(file, "FILE", MAX_CONTRACT_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        from pollcore.facts import ContractError

        raise ContractError(f"{file}: not UTF-8 at byte {error.start}") from None


for _command in (list_, show, check, explain):
    provider.add_command(_command)
