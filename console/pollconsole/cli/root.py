"""The tree of commands, without importing any of them.

Job: names and where their code stands; the bare call opens the console. Must not know: what commands do.
"""

from __future__ import annotations

import click

from pollconsole.cli.base import Common, LazyGroup, pass_common

_HERE = "pollconsole.cli"
COMMANDS = {
    "demo": (f"{_HERE}.screen", "demo"),
    "run": (f"{_HERE}.run", "run"),
    "submit": (f"{_HERE}.submit", "submit"),
    "list": (f"{_HERE}.look", "list_operations"),
    "show": (f"{_HERE}.look", "show"),
    "wait": (f"{_HERE}.wait", "wait"),
    "result": (f"{_HERE}.result", "result"),
    "fetch": (f"{_HERE}.result", "fetch"),
    "escalations": (f"{_HERE}.look", "escalations"),
    "request-extension": (f"{_HERE}.lower", "request_extension"),
    "close": (f"{_HERE}.lower", "close"),
    "hold": (f"{_HERE}.lower", "hold"),
    "reject": (f"{_HERE}.lower", "reject"),
    "deny": (f"{_HERE}.lower", "deny"),
    "pause": (f"{_HERE}.pause", "pause"),
    "audit": (f"{_HERE}.audit", "audit"),
    "provider": (f"{_HERE}.provider", "provider"),
    "credential": (f"{_HERE}.credential", "credential"),
    "notice": (f"{_HERE}.notice", "notice"),
    "report": (f"{_HERE}.report", "report"),
    "simulate": (f"{_HERE}.simulate", "simulate"),
    "handover": (f"{_HERE}.takeover", "handover"),
    "service": (f"{_HERE}.service", "service"),
    "backup": (f"{_HERE}.upkeep", "backup"),
    "archive": (f"{_HERE}.archive", "archive"),
    "doctor": (f"{_HERE}.doctor", "doctor"),
    "mcp": ("pollconsole.mcp_server.command", "mcp"),
    "completion": (f"{_HERE}.completion", "completion"),
}


@click.group(
    "pollconsole",
    cls=LazyGroup,
    lazy=COMMANDS,
    invoke_without_command=True,
    examples=(
        "pollconsole demo",
        "pollconsole submit --provider acme --job-id job-7 --deadline 40m --max-requests 12",
        "pollconsole wait op-1f2e3d4c --timeout 10m --json",
        "pollconsole",
    ),
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
)
@click.option("--version", is_flag=True, help="Print the version.")
@click.option("--read-only", is_flag=True, help="The console without a polling core, to look at what others run.")
@click.option("--plain", is_flag=True, help="The console told in lines, for screen readers and logs; decides nothing.")
@click.option("--once", is_flag=True, help="With --plain: what there is now, and no more.")
@click.pass_context
@pass_common
def root(common: Common, ctx: click.Context, version: bool, read_only: bool, plain: bool, once: bool) -> None:
    """Waits for jobs at outside providers as bounded, audited actions; operators decide at the console.

    Without a command: the console; in lines where standard output is no terminal or TERM is 'dumb'. No command grants
    authority; only keypresses in the console do.

    \b
    Exit codes of every command:
      0    done
      1    a fault on our side; doctor: something is wrong; fetch: not fetched;
           notice test: not taken
      2    usage, or refused input
      3    provider check --strict: a warning; provider impact
           --fail-on-difference: a decision would differ
      130  interrupted
      141  the reader of the output went away
    fetch, besides:
      10   an operator was asked
    wait, besides:
      10   a decision is wanted         13  still waiting at the timeout
      11   failed                       14  closed
      12   cancelled or expired         15  no core is running
    (of several the worst: 11, 12, 14, 10, 15, 13, 0; with --any that of the first that ended)
    audit verify, besides:
      20   altered                      24  missing
      21   removed or reordered         25  only an unsigned tail
      22   truncated                    26  of another log
      23   torn last write

    With --json an error is told twice: in words on standard error, and on standard output as the one document
    {"error": {"code": ..., "message": ...}}.
    """
    if version:
        from pollconsole import __version__
        from pollconsole.cli import out

        if common.json:
            out.document({"version": __version__})
        else:
            out.text(f"pollconsole {__version__}")
        ctx.exit()
    if ctx.invoked_subcommand is None:
        from pollconsole.cli.screen import open_console

        if once and not plain:
            ctx.fail("--once belongs to --plain; give both")
        ctx.exit(open_console(common, read_only, plain=plain, once=once))
    for name, given in (("--read-only", read_only), ("--plain", plain), ("--once", once)):
        if given:
            ctx.fail(f"{name} belongs to the console; leave the command out")
