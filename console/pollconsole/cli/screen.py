"""The console and the demo, from the command line.

Job: refuse what cannot have a screen, import the screen at the last moment. Must not know: anything of the screen.
"""

from __future__ import annotations

import os
import sys

import click

from pollconsole import bridge
from pollconsole.cli.base import Common, command, pass_common


def open_console(common: Common, read_only: bool) -> int:
    """The console on the home; its exit code."""
    _needs_a_terminal(common, "pollconsole")
    from pollconsole.app import run_console

    bridge.harden()
    return run_console(common.home, read_only) or 0


@command("demo", "pollconsole demo", short_help="The console with a local provider that misbehaves.")
@click.pass_context
@pass_common
def demo(common: Common, ctx: click.Context) -> None:
    """The console on a throw-away home, with a local provider that misbehaves in every way and compressed time.

    Needs no account, no keyring and no network.
    """
    if common.home is not None:
        raise click.UsageError("the demo makes a home of its own and throws it away; leave --home out")
    _needs_a_terminal(common, "pollconsole demo")
    from pollconsole.app import run_demo

    bridge.harden()
    ctx.exit(run_demo() or 0)


def _needs_a_terminal(common: Common, what: str) -> None:
    if common.json:
        raise click.UsageError(f"'{what}' is a screen and has no --json; 'pollconsole list --json' has")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError(f"'{what}' needs a terminal; without one: pollconsole run, list, show, escalations")
    if os.environ.get("TERM", "") in ("", "dumb"):
        raise click.UsageError(f"'{what}' needs a terminal that can move its cursor, and TERM is unset or 'dumb'")
