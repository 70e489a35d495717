"""Shell completion: the script for a shell, and names from the store.

Job: names that begin like what was typed; silence on any fault (a completion must never print an error).
Must not know: commands.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

import click

from pollconsole.cli import out
from pollconsole.cli.base import Common, command, pass_common
from pollconsole.safe import safe

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from pollconsole import bridge

MAX_OFFERED: Final = 50
VARIABLE: Final = "_POLLCONSOLE_COMPLETE"


@command(
    "completion",
    'eval "$(pollconsole completion bash)"          # in ~/.bashrc',
    "pollconsole completion fish > ~/.config/fish/completions/pollconsole.fish",
    short_help="The completion script of a shell.",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@pass_common
def completion(common: Common, shell: str) -> None:
    """Print the completion script for a shell; commands, flags, operations and providers are completed."""
    from click.shell_completion import get_completion_class

    from pollconsole.cli.root import root

    kind = get_completion_class(shell)
    assert kind is not None
    if shell == "bash":  # click asks the bash for its version and may fail; the script itself is the same
        kind._check_version = staticmethod(lambda: None)  # type: ignore[attr-defined]
    script = kind(root, {}, "pollconsole", VARIABLE).source()
    if common.json:
        out.document({"completion": {"shell": shell, "script": script}})
    else:
        click.echo(script)


def operation_ids(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """The newest operations whose ids begin with *incomplete*."""

    async def names(core: bridge.Core) -> list[str]:
        from pollconsole import bridge

        return [op.operation_id for op in await bridge.operations(core)]

    return _offer(ctx, incomplete, names)


def provider_names(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """Configured instances and contracts whose names begin with *incomplete*."""

    async def names(core: bridge.Core) -> list[str]:
        from pollconsole import bridge

        return [provider["name"] for provider in bridge.providers(core)]

    return _offer(ctx, incomplete, names)


def _offer(ctx: click.Context, incomplete: str, job: Callable[[Any], Awaitable[list[str]]]) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    from pollconsole import bridge

    common = ctx.find_root().ensure_object(Common)
    try:
        if not bridge.home_path(common.home).exists():
            return []
        found = bridge.with_core(common.home, job)
    except Exception:  # never an error between two keys of a shell
        return []
    # a name that a shell would have to quote is not offered
    offered = [name for name in found if name.startswith(incomplete) and safe(name) == name and " " not in name]
    return [CompletionItem(name) for name in offered[:MAX_OFFERED]]
