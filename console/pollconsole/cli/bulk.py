"""`submit --file operations.jsonl`: many waits handed over, one JSON object a line.

Job: lines -> submissions, each a transaction of its own; what was accepted and what was refused, by line. Must not
know: how one submission is checked or stored.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import click
import msgspec

from pollconsole import bridge
from pollconsole.cli import errors, handover, out, present
from pollcore.facts import PollconsoleError, Refused

MAX_LINES: Final = 1_000
"""Submissions of one file; more go into another file."""
MAX_LINES_BYTES: Final = 8 << 20
SUFFIXES: Final = (".jsonl", ".ndjson")
ONE_JOB: Final = ("job_id", "id", "status_url", "request_fingerprint", "idempotency_key", "response_url")
"""Flags that name one job: beside many lines they would name it for all of them."""
KEPT: Final = ("operation_id", "provider", "account", "provider_job_id", "status", "existed", "warnings", "next")
"""Fields of an accepted line."""

Submit = Callable[["bridge.Core", handover.Handover], Awaitable[dict[str, Any]]]
"""Hands one wait over, or only checks it; the document with `existed`, `warnings`, `next`. Raises Refused."""


class Refusal(msgspec.Struct, frozen=True):
    """A line that was not accepted."""

    line: int
    document: dict[str, Any]
    """`code`, `message` and the refusal's details."""
    exit_code: int


class Done(msgspec.Struct):
    """What became of a file."""

    accepted: list[dict[str, Any]] = msgspec.field(default_factory=list)
    refused: list[Refusal] = msgspec.field(default_factory=list)
    not_tried: int = 0
    """Lines after a fault of ours, which ended the run."""

    @property
    def exit_code(self) -> int:
        """1: a fault of ours ended it; 2: a line was refused; 0: all were accepted."""
        return min((one.exit_code for one in self.refused), default=0)


def is_lines(name: str | None, flag: bool) -> bool:
    """Whether `--file NAME` holds JSON lines: by its suffix, or because `--lines` says so."""
    return name is not None and (flag or name.lower().endswith(SUFFIXES))


def split(data: bytes, name: str) -> list[tuple[int, bytes]]:
    """(line number from 1, line) of every line that is not empty. Raises Refused: none, or more than MAX_LINES."""
    lines = [(number, line) for number, line in enumerate(data.split(b"\n"), 1) if line.strip()]
    if not lines:
        raise Refused(f"--file {name}: holds no line", code="file")
    if len(lines) > MAX_LINES:
        raise Refused(
            f"--file {name}: {len(lines)} lines; at most {MAX_LINES} in one file: split it", code="limit",
            limit="MAX_LINES", asked=len(lines), allowed=MAX_LINES,
        )  # fmt: skip
    return lines


def refuse_flags(flags: handover.Handover, response: str | None) -> None:
    """Raises UsageError for flags that name one job."""
    for name in ONE_JOB:
        if getattr(flags, name) is not None:
            raise click.UsageError(f"--{name.replace('_', '-')} names one job; with JSON lines it stands in each line")
    if response is not None:
        raise click.UsageError("--from-response names one job; submit it by itself")


async def run(
    core: bridge.Core, lines: list[tuple[int, bytes]], flags: handover.Handover, name: str, submit: Submit
) -> Done:
    """Submit line after line. A refused line leaves the others alone; a fault of ours (a full disk) ends the run."""
    done = Done()
    jobs: dict[Any, int] = {}
    ids: dict[str, int] = {}
    for index, (number, line) in enumerate(lines):
        try:
            handed = handover.merge(_parsed(line, name, number), flags, f"{name}:{number}")
            if handed.provider is None or handed.job_id is None:
                raise Refused("provider and job_id are both needed", code="usage")
            _refuse_again(handed, jobs, ids)
            view = await submit(core, handed)
        except PollconsoleError as error:
            code, exit_code, details = errors.ours(error)
            document = {**details, "code": code, "message": errors.message(error)}
            done.refused.append(Refusal(number, document, exit_code))
            if exit_code == errors.OUR_FAULT:
                done.not_tried = len(lines) - index - 1
                break
            continue
        jobs[handed.provider, handed.account, handed.job_id] = number
        if handed.id is not None:
            ids[handed.id] = number
        done.accepted.append({"line": number, **{key: view[key] for key in KEPT}})
    return done


def _parsed(line: bytes, name: str, number: int) -> handover.Handover:
    if len(line) > handover.MAX_FILE_BYTES:
        raise Refused(f"more than {handover.MAX_FILE_BYTES} bytes in one line", code="file")
    return handover.parse_handover(line, f"{name}:{number}")


def _refuse_again(handed: handover.Handover, jobs: dict[Any, int], ids: dict[str, int]) -> None:
    """A line that repeats an earlier one would be told that it existed, which hides a mistake in the file."""
    if (first := jobs.get((handed.provider, handed.account, handed.job_id))) is not None:
        raise Refused(f"the same job as line {first}", code="duplicate_job", first_line=first)
    if handed.id is not None and (first := ids.get(handed.id)) is not None:
        raise Refused(f"the same id as line {first}", code="id_taken", first_line=first)


def tell(done: Done, *, as_json: bool, dry_run: bool) -> None:
    """One document, or a line for each line of the file; refusals also on standard error."""
    if as_json:
        refused = [{**one.document, "line": one.line} for one in done.refused]
        out.document(
            {
                "dry_run": dry_run,
                "accepted": len(done.accepted),
                "not_tried": done.not_tried,
                "operations": done.accepted,
                "refused": refused,
            }
        )
    else:
        for view in done.accepted:
            text = present.one_line({**view, "last_known_state": None})
            out.text(f"line {view['line']}: {text}" + (", existed already" if view["existed"] else ""))
    for view in done.accepted:
        for warning in view["warnings"]:
            out.note(f"line {view['line']}: warning: {warning}")
    for one in done.refused:
        out.note(f"line {one.line}: refused: {one.document['message']}")
    said = "would be accepted" if dry_run else "accepted"
    out.note(f"{len(done.accepted)} {said}, {len(done.refused)} refused, {done.not_tried} not tried")
