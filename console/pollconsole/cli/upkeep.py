"""`backup`: a consistent copy of the store; and how far back a span reaches, for every command that takes one.

Job: call and print. Must not know: SQL.
"""

from __future__ import annotations

from typing import Any

import click

from pollconsole import bridge, words
from pollconsole.cli import calls, files, out
from pollconsole.cli.base import Common, command, pass_common
from pollconsole.cli.values import File
from pollcore.facts import DAY, Instant

DEFAULT_SINCE_MS = 7 * DAY


def since_instant(since: tuple[int | None, Instant | None], now: Instant) -> Instant:
    """A span back from *now*, or the instant itself."""
    span, at = since
    return at if at is not None else Instant(max(0, now - (span or 0)))


@command("backup", "pollconsole backup pollconsole-backup.db", short_help="A consistent copy of the store.")
@click.argument("file", type=File())
@pass_common
def backup(common: Common, file: str) -> None:
    """Copy the store through SQLite's own interface, also while a core is running.

    Nothing is overwritten. The copy alone does not open what is sealed in it (links of results, status addresses,
    idempotency keys): the files that are named afterwards must be kept with it. Secrets of credentials are not in
    it, they stay in the keyring.
    """
    target = files.writable(file)

    async def body(core: bridge.Core) -> dict[str, Any]:
        await core.store.backup(str(target.absolute()))
        return await bridge.kept_with(core)

    kept = calls.with_core(common, body)
    count = target.stat().st_size
    if common.json:
        out.document({"backup": {"path": str(target), "bytes": count, "keep_with_it": kept}})
    else:
        out.text(f"{target}: {words.size(count)}; secrets of credentials are not in it, they stay in the keyring")
        if kept["files"]:
            out.text("keep with it, in a safe place:")
        for one in kept["files"]:
            out.text(f"  {one['path']}: {one['why']}")
        if kept["keyring"]:
            out.text(
                "the key that opens what is sealed is in this machine's keyring, under the path of this home: without "
                "it, or in a home of another path, the copy opens nothing that is sealed"
            )
    if kept["missing"]:
        out.note(f"warning: what is sealed in the copy cannot be opened: {kept['missing']}")
