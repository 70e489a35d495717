"""`provider list|show|check|explain|schema`: contracts, instances (`new`, `try`, `impact` have files).

Job: read, print. Must not know: the contract language, how answers are judged.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from pollconsole import bridge, words
from pollconsole.cli import calls, files, out, present
from pollconsole.cli.base import Common, LazyGroup, command, pass_common
from pollconsole.cli.errors import DOUBTFUL
from pollconsole.cli.values import MAX_URL, File, Pair, ProviderName, Text
from pollcore.facts import Refused, StoreUnusable

T = TypeVar("T")
MAX_CONTRACT_BYTES: Final = 256 << 10
"""As for a file in `providers/`: what is checked here can be used there."""


@click.group(
    "provider",
    cls=LazyGroup,
    lazy={
        "new": ("pollconsole.cli.provider_new", "new"),
        "try": ("pollconsole.cli.provider_author", "try_"),
        "impact": ("pollconsole.cli.provider_author", "impact"),
    },
    short_help="Contracts and configured providers.",
    examples=("pollconsole provider list", "pollconsole provider check ./acme.toml"),
)
def provider() -> None:
    """How providers are asked and their answers are read."""


@command("list", "pollconsole provider list --json", short_help="All contracts and configured providers.")
@pass_common
def list_(common: Common) -> None:
    """List contracts and configured providers by name."""
    found = _asked(common, bridge.providers)
    if common.json:
        out.document({"providers": found})
        return
    rows = [
        (p["name"], p["contract"], p["source"], *_marks(p["marks"]), p["title"] or f"cannot be used: {p['error']}")
        for p in found
    ]
    head = ("PROVIDER", "CONTRACT", "FROM", "TRIED", "SEEN", "FIRST USE", "TITLE")
    out.text(words.table(head, rows, limits=(64, 64, 80, 0, 0, 0, 200)))


def _marks(marks: dict[str, Any] | None) -> tuple[str, str, str]:
    """Tried, seen, what was decided of its requests; `-` where it is not known."""
    if marks is None:
        return (words.NOTHING,) * 3
    seen = {True: "yes", False: "no: new or changed", None: words.NOTHING}[marks["seen"]]
    if marks["shipped"] and not marks["seen"]:
        seen = "shipped"
    return "yes" if marks["tested_live"] else "no", seen, str(marks["first_use"] or words.NOTHING).replace("_", " ")


def digests_named(view: dict[str, Any]) -> dict[str, Any]:
    """The document for people: each digest under the name of what it is of."""
    names = {
        "digest": "digest, as on operations and cards (text and settings)",
        "text_digest": "digest of the text alone",
    }
    return {names.get(key, key): value for key, value in view.items()}


@command("show", "pollconsole provider show acme", short_help="One contract, as it is in force.")
@click.argument("name", type=ProviderName())
@pass_common
def show(common: Common, name: str) -> None:
    """Show one contract with the settings of its instance."""
    found = _asked(common, lambda core, known: bridge.provider(core, name, known))
    if common.json:
        out.document(found)
    else:
        text = found.pop("text", None)
        out.text(present.nested(present.spans(digests_named(found))))
        if text:
            out.text("\n" + str(text).rstrip("\n"))


@command(
    "check",
    "pollconsole provider check ./acme.toml",
    short_help="Is a contract file sound?",
    exits={0: "sound", 2: "an error in the file, or usage", DOUBTFUL: "with --strict: there is a warning"},
)
@click.argument("file", type=File())
@click.option("--strict", is_flag=True, help=f"Exit {DOUBTFUL} if there is a warning (notes are none).")
@pass_common
def check(common: Common, file: str, strict: bool) -> None:
    """Check a contract file: the first error names file, line and key.

    Nothing is stored or sent. Findings are no errors: warnings name what is doubtful or left open, notes what
    nobody has proved yet.
    """
    found = bridge.check_contract(_text_to_check(common, file), file)
    warnings = found["warnings"]
    if common.json:
        out.document(found)
    else:
        notes = len(found["findings"]) - warnings
        shown = {key: value for key, value in found.items() if key not in ("found", "warnings", "digest")}
        out.text(f"{file}: sound; warnings: {warnings}, notes: {notes}")
        out.text(present.nested(present.spans(digests_named(shown))))
    if strict and warnings:
        raise click.exceptions.Exit(DOUBTFUL)


@command(
    "explain",
    "pollconsole provider explain acme --response saved.txt",
    "curl -i https://api.acme.example/jobs/7 | pollconsole provider explain ./acme.toml --response - --job-id 7",
    "pollconsole provider explain acme --response submitted.txt --step submission",
    short_help="How an answer would be read and decided.",
)
@click.argument("contract", type=ProviderName(), metavar="NAME|FILE")
@click.option("--response", type=File(), required=True, metavar="FILE|-", help="A saved answer (curl -i).")
@click.option("--job-id", type=Text(), metavar="ID", help="The job that was asked for.")
@click.option("--param", type=Pair(), multiple=True, metavar="K=V", help="A parameter of the contract; repeat.")
@click.option(
    "--step",
    type=Text(),
    metavar="NAME",
    help="What was answered: status or a further step of the contract, submission, cancel, cancel.force "
    "[default: status].",
)
@click.option("--response-url", type=Text(MAX_URL), metavar="URL", help="With --step submission: where it was sent.")
@click.option("--seen", type=Text(), metavar="STATE", help="The job was seen in STATE before this answer.")
@click.option(
    "--others", type=click.IntRange(0, 999), default=0, metavar="N", help="N other jobs were asked for with it (batch)."
)
@pass_common
def explain(
    common: Common,
    contract: str,
    response: str,
    job_id: str | None,
    param: tuple[tuple[str, str], ...],
    step: str | None,
    response_url: str | None,
    seen: str | None,
    others: int,
) -> None:
    """Explain how a saved answer would be read by a contract, what would be decided, and why.

    Nothing is sent. It is taken as a live one is: what is too large for a poll stops here as well. With '--step
    submission' it answers what started the job: which id and addresses 'submit --from-response' would read and store.
    With '--step cancel' it answers the documented cancel, with '--step cancel.force' the stronger one that may follow
    it.
    """
    saved = files.read_bytes(response, "--response", files.MAX_RESPONSE_BYTES)
    answer = files.parse_response(saved, response, "--response")
    text = text_of(contract) if is_file(contract) else None
    # a file tells all by itself: no home is asked for
    core = settings(common) if text is None else bridge.without_store(common.home)
    found = bridge.explain(core, contract, text, answer, job_id, dict(param), step, seen, others, response_url)
    if common.json:
        out.document(found)
        return
    show_reading(found)


def show_reading(found: dict[str, Any]) -> None:
    """How an answer reads, spans as words; then what an operator would see: nothing where a wait would go on, or end
    as succeeded."""
    card = found.pop("card")
    seen = found["observation"]
    if seen is not None and seen["guidance"]:
        name, _, span = seen["guidance"].rpartition(": ")
        seen["guidance"] = f"{name}: {words.span(int(span.removesuffix(' ms')))}"
    out.text(present.nested(present.spans({key: value for key, value in found.items() if value is not None})))
    if card is not None:
        out.text("\nAn operator would be asked:\n")
    for line in card or ():
        out.text(f"  {line}")


@command("schema", "pollconsole provider schema > contract.schema.json", short_help="JSON Schema of contract files.")
@pass_common
def schema(common: Common) -> None:  # noqa: ARG001 - every command takes the common options
    """Print the JSON Schema of contract files, for editors.

    A file's first line `#:schema ./FILE` names it to them.
    """
    out.document(bridge.contract_schema())


def _asked(common: Common, look: Callable[[bridge.Core, Any], T]) -> T:
    """*look* with what operators said and saw of contracts; without it where there is no store, or none can be read."""
    if not bridge.store_path(common.home).exists():
        return look(settings(common), {})

    async def body(core: bridge.Core) -> T:
        return look(core, await bridge.contracts_known(core))

    try:
        return calls.with_core(common, body)
    except StoreUnusable as error:
        out.note(f"who has seen and decided what is not known: {error}")
        return look(settings(common), None)


def settings(common: Common) -> bridge.Core:
    """Settings and contracts alone: the store stays closed. A home that was named and is not there is refused."""
    if bridge.home_is_named(common.home):
        calls.refuse_missing(common)
    return bridge.without_store(common.home)


def is_file(name: str) -> bool:
    """Whether an argument NAME|FILE names a file: a path, `*.toml`, or `-`."""
    return "/" in name or name.endswith(".toml") or name == "-"


def _text_to_check(common: Common, file: str) -> str:
    """As `text_of`. Raises Refused: a name of a contract is no file; the home's file of that name is named."""
    own = bridge.store_path(common.home).parent / "providers" / f"{file}.toml"
    if not is_file(file) and not Path(file).exists() and own.exists():
        raise Refused(f"{file}: no such file; the contract of that name: pollconsole provider check {own}", code="file")
    return text_of(file)


def text_of(file: str) -> str:
    """The text of a contract file, or of standard input for `-`. Raises Refused, ContractError."""
    try:
        return files.read_bytes(file, "FILE", MAX_CONTRACT_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        from pollcore.facts import ContractError

        raise ContractError(f"{file}: not UTF-8 at byte {error.start}") from None


for _command in (list_, show, check, explain, schema):
    provider.add_command(_command)
