"""`pollconsole submit`: hand a wait over.

Job: flags, `--file` and `--from-response` -> one submission; print the operation. Must not know: what a
contract permits (the core refuses, with the limit's name), secrets.
"""

from __future__ import annotations

from typing import Any

import click

from pollconsole import bridge, words
from pollconsole.bridge.waiting import next_step, silence_of
from pollconsole.cli import bulk, calls, files, handover, liveness, out, present
from pollconsole.cli.base import Common, command, pass_common, raise_missing
from pollconsole.cli.values import MAX_URL, Count, File, OperationId, Pair, ProviderName, Text
from pollcore.facts import Answer, Instant, Refused, StopDetail, StopReason


@command(
    "submit",
    "pollconsole submit --provider acme --job-id job-7 --deadline 40m --max-requests 12",
    "pollconsole submit --provider acme --from-response saved.txt --useful-until 2026-03-02T18:00:00Z",
    'echo \'{"provider": "acme", "job_id": "job-7"}\' | pollconsole submit --file - --json',
    "pollconsole submit --file operations.jsonl --dry-run",
    short_help="Hand a wait over; prints the operation.",
)
@click.option("--provider", type=ProviderName(), metavar="NAME", help="A configured provider or a contract's name.")
@click.option("--job-id", type=Text(), metavar="ID", help="The provider's id of the job.")
@click.option("--param", type=Pair(), multiple=True, metavar="K=V", help="A parameter of the contract; repeat.")
@click.option("--status-url", type=Text(MAX_URL), metavar="URL", help="Where the provider said to ask.")
@click.option(
    "--deadline",
    metavar="SPAN|TIME",
    help="When waiting ends: 40m from the job's start, or an ISO time [default: the contract's].",
)
@click.option(
    "--max-requests", type=Count(), metavar="N", help="At most so many status requests [default: the contract's]."
)
@click.option(
    "--max-transport-failures",
    type=Count(),
    metavar="N",
    help="At most so many without a usable answer [default: the contract's].",
)
@click.option(
    "--max-rate-limited",
    type=Count(),
    metavar="N",
    help="At most so many rate-limit answers (429) [default: the contract's].",
)
@click.option("--useful-until", metavar="TIME", help="After this the result is of no use (ISO time) [default: never].")
@click.option(
    "--id",
    "id_",
    type=OperationId(),
    metavar="OP",
    help="An id of your own; again: the same operation [default: a new one].",
)
@click.option("--label", type=Text(), metavar="TEXT", help="A name for people.")
@click.option("--request-fingerprint", type=Text(), metavar="HEX", help="SHA-256 of the request that started the job.")
@click.option("--idempotency-key", type=Text(), metavar="KEY", help="The key of the job's submission; sealed.")
@click.option(
    "--credential",
    type=Text(),
    metavar="NAME",
    help="Name of a stored credential, never a secret [default: the provider's].",
)
@click.option(
    "--account",
    type=Text(),
    metavar="TEXT",
    help="The provider's account or project [default: the provider's in config.toml].",
)
@click.option("--started-at", metavar="TIME", help="When the job was submitted (ISO time) [default: now].")
@click.option("--caller", type=Text(), metavar="TEXT", help="The name you give yourself, for the audit.")
@click.option("--expected-state", type=Text(), multiple=True, metavar="STATE", help="A final state to expect; repeat.")
@click.option("--from-response", type=File(), metavar="FILE", help="Take job and status URL from a curl -i file.")
@click.option("--response-url", type=Text(MAX_URL), metavar="URL", help="The address that answer came from.")
@click.option("--file", "file_", type=File(), metavar="FILE|-", help="The same as JSON, names in snake_case.")
@click.option("--lines", is_flag=True, help="--file holds one JSON object a line (.jsonl and .ndjson do anyway).")
@click.option("--dry-run", is_flag=True, help="Check it and say what would be stored; store nothing.")
@pass_common
def submit(common: Common, /, **flags: Any) -> None:
    """Hand a wait over to the polling core and print the operation.

    Limits that are left out come from the contract; limits above the contract's are refused, and only an operator can
    grant more. Nothing is sent by this command. A job that was waited for before starts only when an operator grants
    it; the exit code is 0 all the same, and a warning says so.

    Of JSON lines each is handed over by itself: a refused line leaves the others alone and is told by its number, and
    the exit code is then 2. Flags hold for every line. At most 1,000 lines.
    """
    file_name, response_name = flags.pop("file_"), flags.pop("from_response")
    lines, dry_run = flags.pop("lines"), flags.pop("dry_run")
    if lines and file_name is None:
        raise click.UsageError("--lines belongs to --file")
    if bulk.is_lines(file_name, lines):
        _many(common, file_name, fields_of(flags), response_name, dry_run=dry_run)
        return
    if file_name == "-" and response_name == "-":
        raise click.UsageError("--file - and --from-response - both want standard input; save one of them to a file")
    handed = fields_of(flags)
    if file_name is not None:
        read = handover.parse_handover(files.read_bytes(file_name, "--file", handover.MAX_FILE_BYTES), file_name)
        handed = handover.merge(read, handed, file_name)
    no_provider = handed.provider is None
    no_job = handed.job_id is None and response_name is None
    raise_missing(
        [
            *(["--provider NAME ('pollconsole provider list' shows names)"] if no_provider else []),
            *(["--job-id ID, or --from-response FILE with a saved answer"] if no_job else []),
        ]
    )
    if handed.response_url is not None and response_name is None:
        raise click.UsageError("--response-url belongs to --from-response")
    saved = None
    if response_name is not None:
        read_in = files.read_bytes(response_name, "--from-response", files.MAX_RESPONSE_BYTES)
        saved = files.parse_response(read_in, response_name)

    view, card, silence = calls.with_core(
        common, lambda core: _handed_over(core, handed, saved, dry_run=dry_run), makes=not dry_run
    )
    if common.json:
        out.document(view)
    else:
        out.text(present.operation(view, card))
    for line in view["warnings"]:
        out.note(f"warning: {line}")
    if dry_run:
        out.note("a dry run: nothing was stored")
    if view["existed"]:
        out.note("this operation existed already; nothing was added")
    if silence:
        out.note(silence)


def _many(common: Common, name: str, flags: handover.Handover, response: str | None, *, dry_run: bool) -> None:
    """A file of JSON lines; see `bulk`. Ends the command with its exit code."""
    bulk.refuse_flags(flags, response)
    lines = bulk.split(files.read_bytes(name, "--file", bulk.MAX_LINES_BYTES), name)

    async def one(core: bridge.Core, handed: handover.Handover) -> dict[str, Any]:
        return (await _handed_over(core, handed, None, dry_run=dry_run))[0]

    async def body(core: bridge.Core) -> tuple[bulk.Done, str | None]:
        return await bulk.run(core, lines, flags, name, one), await present.core_warning(core)

    done, silence = calls.with_core(common, body, makes=not dry_run)
    bulk.tell(done, as_json=common.json, dry_run=dry_run)
    if silence:
        out.note(silence)
    click.get_current_context().exit(done.exit_code)


async def _handed_over(
    core: bridge.Core, handed: handover.Handover, saved: Answer | None, *, dry_run: bool
) -> tuple[dict[str, Any], list[str], str | None]:
    """The document of the operation, the lines of its card, the sentence about a core that does not run."""
    if handed.credential is not None and handed.provider is not None:
        await bridge.check_credential(core, handed.provider, handed.credential)
    now = core.clock.now().wall
    answer = None if saved is None else bridge.complete_at(saved, now)
    spec = bridge.submit_spec(**specification(handed), response=answer)
    made = await (core.actions.check_submission(spec) if dry_run else core.actions.submit(spec))
    card: list[str] = []
    if dry_run and not made.existed:
        view = bridge.row(made.operation)
    else:
        view, card = await bridge.whole_with_card(core, made.operation.operation_id)
    silent = await silence_of(core)
    view |= {"existed": made.existed, "dry_run": dry_run, "next": next_step(made.operation, silent)}
    doubts = [] if made.existed else await _unstored(core, handed, made.operation.credential)
    view["warnings"] = [*made.warnings, *not_started(view), *doubts, *([] if dry_run else await _lost(core))]
    return view, card, liveness.warning(silent)


async def _unstored(core: bridge.Core, handed: handover.Handover, credential: str | None) -> list[str]:
    """The credential that the settings name may be stored later; until then the wait can only stop and ask."""
    if credential is None or handed.credential is not None or handed.provider is None:
        return []
    try:
        await bridge.check_credential(core, handed.provider, credential, by_settings=True)
    except Refused as error:
        return [f"the credential of the settings cannot be used yet, and the wait will stop for it: {error}"]
    return []


async def _lost(core: bridge.Core) -> list[str]:
    """A private half that is gone: what was just handed over is sealed for a key that nobody has."""
    lost = await bridge.lost_key(core)
    if lost is None or not lost[1]:
        return []
    return [f"what is sealed of this operation cannot be opened again: {lost[0]}; see 'pollconsole doctor'"]


def not_started(view: dict[str, Any]) -> list[str]:
    """What a submitter must be told where the operation waits for an operator and not for the provider."""
    if view["status"] not in {status.value for status in words.NEEDS_A_HUMAN}:
        return []
    if view["stop_detail"] == StopDetail.SECOND_SUBMISSION:
        return [
            "this job was waited for before: nothing is sent for it until an operator grants it in the console "
            "('pollconsole', key E); 'pollconsole wait' ends with 10 meanwhile"
        ]
    asked = (view.get("escalation") or {}).get("reason")
    if asked == StopReason.FIRST_USE:
        return [
            "nothing is sent: an operator decides once in the console ('pollconsole', key A) what the status requests "
            "under this contract are, because it does not prove that asking is read-only, or nobody has tried it; "
            "'pollconsole wait' ends with 10 meanwhile"
        ]
    return [f"nothing is sent: a decision is wanted ({view['stop_reason'] or view['status']}); an operator decides it"]


def fields_of(flags: dict[str, Any]) -> handover.Handover:
    """The flags as the fields of `--file`. Raises Refused or BadParameter for what they do not allow."""
    pairs: tuple[tuple[str, str], ...] = flags.pop("param")
    params = dict(pairs)
    if len(params) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise click.UsageError(f"--param {twice}=... is there twice")
    states = flags.pop("expected_state")
    made = handover.Handover(
        param=params or None, expected_state=list(states) or None, id=flags.pop("id_"), **flags
    )  # fmt: skip
    try:
        handover.check(made)
    except ValueError as error:
        name, _, why = str(error).partition(": ")
        raise Refused(f"--{name.replace('_', '-')}: {why}", code="usage") from None
    return made


def specification(handed: handover.Handover) -> dict[str, Any]:
    """The fields of the core's SubmitSpec; texts of times become spans and instants."""
    from pollconsole.cli.values import check_instant, check_when

    deadline_ms: int | None = None
    deadline_at: Instant | None = None
    if handed.deadline is not None:
        deadline_ms, deadline_at = check_when(handed.deadline)
    return {
        "provider": handed.provider,
        "job_id": handed.job_id,
        "params": handed.param or {},
        "status_url": handed.status_url,
        "deadline_at": deadline_at,
        "deadline_ms": deadline_ms,
        "max_status_requests": handed.max_requests,
        "max_transport_failures": handed.max_transport_failures,
        "max_rate_limited": handed.max_rate_limited,
        "useful_until": None if handed.useful_until is None else check_instant(handed.useful_until),
        "operation_id": handed.id,
        "label": handed.label,
        "request_fingerprint": handed.request_fingerprint,
        "idempotency_key": handed.idempotency_key,
        "credential": handed.credential,
        "account": handed.account,
        "started_at": None if handed.started_at is None else check_instant(handed.started_at),
        "caller": handed.caller,
        "expected_states": tuple(handed.expected_state or ()),
        "response_url": handed.response_url,
    }
