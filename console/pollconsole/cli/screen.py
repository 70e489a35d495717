"""The console and the demo, from the command line.

Job: a screen where there can be one, lines where there cannot or where they are asked for; import either at the last
moment. Must not know: anything of the screen.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Final

import click

from pollconsole import bridge
from pollconsole.cli.base import Common, command, pass_common

TITLE: Final = "pollconsole"


def open_console(common: Common, read_only: bool, *, plain: bool = False, once: bool = False) -> int:
    """The console on the home, or its lines; the exit code."""
    if in_lines(common, TITLE, plain=plain or once):
        return _in_lines(common, read_only, once=once)
    from pollconsole.app import run_console

    bridge.harden()
    return run_console(common.home, read_only) or 0


def _in_lines(common: Common, read_only: bool, *, once: bool) -> int:
    from pollconsole.cli import calls, plain

    if once:
        calls.with_core(common, plain.read_once).tell()
        return 0

    def runner(job: Any) -> None:
        bridge.with_core(common.home, job, kind="console", ready_later=True)

    bridge.harden()
    return plain.run_plain(runner, title=TITLE, read_only=read_only)


@command(
    "demo",
    "pollconsole demo",
    short_help="The console with a local provider that misbehaves.",
    refuses_common=True,
)
@click.option("--plain", is_flag=True, help="Told in lines, for screen readers and logs.")
@click.pass_context
@pass_common
def demo(common: Common, ctx: click.Context, plain: bool) -> None:
    """The console on a throw-away home, with a local provider that misbehaves in every way and compressed time.

    Needs no account, no keyring and no network. In lines where standard output is no terminal or TERM is 'dumb'.
    """
    if common.home is not None:
        raise click.UsageError("the demo makes a home of its own and throws it away; leave --home out")
    told = in_lines(common, "pollconsole demo", plain=plain)
    bridge.harden()
    if told:
        ctx.exit(_demo_in_lines())
    from pollconsole.app import run_demo

    ctx.exit(run_demo() or 0)


def _demo_in_lines() -> int:
    from pollconsole.cli.plain import run_plain
    from pollconsole.demo import start

    with start() as setup:

        def runner(job: Any) -> None:
            bridge.with_core(setup.home, job, kind="demo", ready_later=True, **setup.overrides)

        return run_plain(runner, title=f"pollconsole demo, time x{setup.clock.factor:g}")


def in_lines(common: Common, what: str, *, plain: bool) -> bool:
    """Whether *what* is told in lines: asked for, or all that standard output can take.

    Raises:
        UsageError: `--json`, which neither has; keys are wanted and standard input is no terminal.
    """
    if common.json:
        raise click.UsageError(f"'{what}' is for people and has no --json; 'pollconsole list --json' has")
    if plain or not sys.stdout.isatty() or os.environ.get("TERM", "") in ("", "dumb"):
        return True
    if not sys.stdin.isatty():
        raise click.UsageError(f"'{what}' needs a terminal for its keys; without one: {what} --plain")
    return False
