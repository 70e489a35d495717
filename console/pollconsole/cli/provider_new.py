"""`provider new`: a contract file begun, by a few questions or by flags.

Job: ask what was not given (on a terminal alone), hand it on, print what was written. Must not know: the contract
language, what a file holds. Nothing is sent; no state is ever put into a list that its author did not name.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from pollconsole import bridge
from pollconsole.cli import files, out
from pollconsole.cli.base import Common, command, pass_common
from pollconsole.cli.values import MAX_URL, File, Text
from pollconsole.safe import safe
from pollcore.facts import Refused

KINDS: Final = ("bearer", "basic", "header", "query", "none")
METHODS: Final = ("GET", "POST", "HEAD")
LISTS: Final = ("waiting", "succeeded", "failed", "cancelled", "cancelling", "expired", "needs_human")
_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
Asks = TypeVar("Asks", bound=Callable[..., Any])
MAX_SAVED: Final = 20
"""Saved answers that are looked at."""


def _states(name: str) -> Callable[[Asks], Asks]:
    return click.option(
        f"--{name.replace('_', '-')}", name, type=Text(), multiple=True, metavar="STATE",
        help=f"A state that means {name.replace('_', ' ')}; repeat.",
    )  # fmt: skip


@command(
    "new",
    "pollconsole provider new acme",
    "pollconsole provider new acme --base-url https://api.acme.example --path /v1/exports/{job_id} --waiting queued",
    "curl -i https://api.acme.example/v1/exports/7 | pollconsole provider new acme --from-response -",
    short_help="Begin a contract file.",
)
@click.argument("name", type=Text(), required=False)
@click.option(
    "--file", "file_", type=File(), metavar="FILE", help="Where to [default: providers/NAME.toml of the home]."
)
@click.option("--from-response", type=File(), multiple=True, metavar="FILE|-", help="A saved answer (curl -i); repeat.")
@click.option("--job-id", type=Text(), metavar="ID", help="The job that the saved answers are about.")
@click.option("--base-url", type=Text(MAX_URL), metavar="URL", help="The provider's server.")
@click.option("--path", type=Text(MAX_URL), metavar="PATH", help="Of the status request [default: /v1/jobs/{job_id}].")
@click.option("--method", type=click.Choice(METHODS), help="Of the status request [default: GET].")
@click.option("--credential", type=click.Choice(KINDS), help="How it is sent [default: bearer].")
@click.option("--credential-name", type=Text(), multiple=True, metavar="NAME", help="Its header or query parameter.")
@click.option("--state", type=Text(), metavar="EXPR", help="Where an answer says the state [default: body.status].")
@click.option("--source", type=Text(), metavar="TEXT", help="Where the facts come from, and when you read it.")
@_states("waiting")
@_states("succeeded")
@_states("failed")
@_states("cancelled")
@_states("cancelling")
@_states("expired")
@_states("needs_human")
@pass_common
def new(
    common: Common,
    /,
    name: str | None,
    file_: str | None,
    from_response: tuple[str, ...],
    job_id: str | None,
    **flags: Any,
) -> None:
    """Write a commented contract file that 'provider check' accepts, to be read beside the provider's documentation.

    On a terminal it asks what the flags leave open; without one it takes defaults, marked TODO:. From saved answers it
    proposes where state and job id are, and names the states that it saw; what a state means, only you say. A state in
    no list stops the wait and asks an operator. An existing file is never overwritten.
    """
    asks = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty() and not common.json
    name = _name(name or (Path(file_).stem if file_ else None), asks)
    if from_response.count("-") > 1 or len(from_response) > MAX_SAVED:
        raise click.UsageError(f"--from-response: standard input once, and at most {MAX_SAVED} files")
    saved = [
        files.parse_response(files.read_bytes(one, "--from-response", files.MAX_RESPONSE_BYTES), one)
        for one in from_response
    ]
    found = bridge.proposed(saved, job_id, flags["state"]) if saved else None
    states = {kind: flags.pop(kind) for kind in LISTS}
    fields = {"name": name, "credential_names": flags.pop("credential_name"), **flags, "states": states}
    if asks:
        fields = _asked(fields, found)
        if saved and fields["state"] != flags["state"]:
            found = bridge.proposed(saved, job_id, fields["state"])
    text = bridge.text_of_new(fields, found)
    path = bridge.begin(common.home, name, text, file_)
    checked = bridge.check_contract(text, path)
    if common.json:
        out.document({"file": path, "name": name, "proposed": found, "findings": checked["findings"]})
        return
    out.text(f"{path}: written; it reads, and leaves open:")
    for finding in checked["findings"]:
        out.text(f"  {finding.removeprefix(path + ':').lstrip()}")
    for line in _told(found, fields):
        out.text(line)
    out.text(f"next: edit it beside the documentation, then 'pollconsole provider check {path}'")


def _name(name: str | None, asks: bool) -> str:
    if name is None and asks:
        name = click.prompt("Name of the contract (a-z, 0-9, hyphens)", type=str)
    if name is None:
        raise click.UsageError("missing: NAME, as in pollconsole provider new NAME")
    if not _NAME.fullmatch(name):
        raise Refused(f"{name!r} is no name of a contract: lower-case letters, digits and hyphens", code="usage")
    return name


def _asked(fields: dict[str, Any], found: dict[str, Any] | None) -> dict[str, Any]:
    """What flags left open, asked with a default; an empty answer takes it."""
    given = dict(fields)
    state = found["state"][0] if found and found["state"] else None
    for key, question, default in (
        ("base_url", "The provider's server", f"https://api.{given['name']}.invalid"),
        ("path", "Path of the status request", "/v1/jobs/{job_id}"),
        ("credential", "Credential", "bearer"),
        ("state", "Where an answer says the state", state["path"] if state else "body.status"),
        ("source", "Documentation (address, when read)", ""),
    ):
        if given.get(key):
            continue
        kind: Any = click.Choice(KINDS) if key == "credential" else str
        told = f" ({safe(str(state['value']))} in the saved answer)" if key == "state" and state else ""
        answer = click.prompt(f"{question}{told}", default=default, type=kind, show_default=bool(default))
        given[key] = answer if answer != default or key in ("path", "credential", "state") else given.get(key)
    seen = ", ".join(safe(str(one)) for one in found["states"]) if found else ""
    if not any(given["states"].values()):
        click.echo("Which states does the documentation name? Commas between them; empty: none yet.")
        if seen:
            click.echo(f"(seen in the saved answers: {seen})")
        given["states"] = {kind: _listed(kind) for kind in LISTS[:4]}
    return given


def _listed(kind: str) -> tuple[str, ...]:
    answer = click.prompt(f"  {kind}", default="", show_default=False)
    return tuple(part.strip() for part in str(answer).split(",") if part.strip())


def _told(found: dict[str, Any] | None, fields: dict[str, Any]) -> list[str]:
    """What was proposed, and that it is no more than that."""
    if found is None:
        return []
    lines = []
    for key, what in (("state", "the state"), ("job_id", "the job's id")):
        places = [f"{one['path']} ({one['value']})" for one in found[key]]
        if places and not (key == "state" and fields.get("state")):
            lines.append(f"proposed for {what}: {places[0]}" + (f"; or {', '.join(places[1:])}" if places[1:] else ""))
    listed = {state for states in fields["states"].values() for state in states}
    if found["states"]:
        lines.append(f"states seen: {', '.join(safe(str(one)) for one in found['states'])}")
        left = [safe(str(state)) for state in found["states"] if str(state) not in listed]
        if left:
            lines.append(f"in no list yet, so they would stop as unknown: {', '.join(left)}")
    if fields.get("state") == "http.status":
        lines.append(
            "http.status is looked up for 200, 201 and 202 alone: for others write [[rules]] with status and category"
        )
    elif not found["state"] and not found["states"]:
        codes = ", ".join(map(str, found["statuses"]))
        lines.append(
            f"no field looks like a state (HTTP {codes}): --state names it; where the HTTP status is the state, write "
            "[[rules]] with status and category"
        )
    if found["unreadable"]:
        lines.append(f"{found['unreadable']} of the saved answers are no JSON: nothing is proposed from them")
    return lines
