"""What every command shares: `--home`, `--json`, help with examples, commands that are imported when they are called.

Job: the classes that commands are made of, and the settings that hold for one call. Must not know: any single command,
the core.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

MAX_PATH: Final = 4_095
MAX_PART: Final = 255
"""Bytes of a path and of each of its parts, as file systems of today take them."""

EXITS: Final[Mapping[int, str]] = {0: "done", 1: "a fault on our side", 2: "usage, or refused input"}
"""What ends every command; a command adds its own codes, or says more of one of these."""
UNITS: Final[Mapping[str, str]] = {
    "SPAN": "days, hours, minutes, seconds: 90s, 40m, 2h, 1d, 1h30m",
    "TIME": "ISO 8601 with a zone: 2026-03-02T10:40:00Z, 2026-03-02T12:40:00+02:00",
}
"""What the value of an option with such a metavar is written as."""
EXITS_OF_ALL: Final = "and 130 interrupted, 141 the reader of the output went away"


@dataclass
class Common:
    """The two settings of every command. *home* None: `POLLCONSOLE_HOME`, else the platform's folder.

    *own_process*: the process is this command's and nothing else's, so that it may be hardened.
    """

    home: Path | None = None
    json: bool = False
    own_process: bool = False


pass_common = click.make_pass_decorator(Common, ensure=True)


def check_path(value: str) -> str:
    """What can be a path: not empty, no NUL, no longer than file systems take. Raises ValueError."""
    if not value or "\0" in value:
        raise ValueError("is not a path")
    try:
        raw = os.fsencode(value)
    except UnicodeEncodeError:
        raise ValueError("is not a path: not valid UTF-8") from None
    if len(raw) > MAX_PATH or any(len(part) > MAX_PART for part in raw.split(b"/")):
        raise ValueError(f"is too long for a path ({len(raw):,} bytes)")
    return value


class HomeType(click.ParamType):  # type: ignore[type-arg]
    """A folder's path; whether it can be a home is the core's to say."""

    name = "folder"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        try:
            return Path(check_path(str(value)))
        except ValueError as error:
            return self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:  # noqa: ARG002
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="dir")]


def _keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Store the setting for the whole call, so that it counts before and after the command's name."""
    common = ctx.find_root().ensure_object(Common)
    if isinstance(value, Path) and common.home not in (None, value):
        raise click.UsageError(f"--home is there twice, as {common.home} and as {value}; give it once", ctx)
    if value and param.name:
        setattr(common, param.name, value)


def common_options(*, hidden: bool = False) -> list[click.Parameter]:
    """Fresh `--home` and `--json`; click parameters are not shared between commands."""
    return [
        click.Option(
            ["--home"],
            type=HomeType(),
            is_eager=True,
            expose_value=False,
            callback=_keep,
            hidden=hidden,
            metavar="DIR",
            help="The folder with store, contracts and settings [default: POLLCONSOLE_HOME, else the platform's].",
        ),
        click.Option(
            ["--json"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_keep,
            hidden=hidden,
            help="One JSON document on standard output; all else goes to standard error.",
        ),
    ]


def refuse_twice(command: click.Command, ctx: click.Context, args: Sequence[str]) -> None:
    """Raises UsageError for an option that holds one value and is there twice: click would keep the last one alone."""
    if ctx.resilient_parsing:
        return
    _, _, order = command.make_parser(ctx).parse_args(args=list(args))
    for param in order:
        if isinstance(param, click.Option) and not (param.multiple or param.is_flag) and order.count(param) > 1:
            raise click.UsageError(f"{param.opts[0]} is there twice; give it once", ctx)


def refuse_missing(command: click.Command, ctx: click.Context, args: Sequence[str]) -> None:
    """Raises UsageError that names every required argument and option that is not there: click tells one at a time."""
    if ctx.resilient_parsing:
        return
    values, _, order = command.make_parser(ctx).parse_args(args=list(args))
    if command.get_help_option(ctx) in order:
        return
    raise_missing(
        [
            param.make_metavar(ctx)
            if isinstance(param, click.Argument)
            else f"{param.opts[0]} {param.make_metavar(ctx)}"
            for param in command.get_params(ctx)
            if param.required and param.value_is_missing(param.consume_value(ctx, values)[0])
        ],
        ctx,
    )


def raise_missing(missing: Sequence[str], ctx: click.Context | None = None) -> None:
    """Raises UsageError unless *missing*, each with its value's name, is empty."""
    if missing:
        raise click.UsageError(f"missing: {', '.join(missing)}", ctx)


class Command(click.Command):
    """A command that takes the common options and shows examples and exit codes after its help.

    *exits*: codes beside those of every command, or more about one of them. *refuses_common*: it takes none of the
    common options and says why where one is given; its help does not offer them.
    """

    def __init__(
        self,
        *args: Any,
        examples: Sequence[str] = (),
        exits: Mapping[int, str] | None = None,
        refuses_common: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend(common_options(hidden=refuses_common))
        self.examples = tuple(examples)
        self.exits = {**EXITS, **(exits or {})}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            refuse_twice(self, ctx, args)
            refuse_missing(self, ctx, args)
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # an option without its value: click forgets whose it is
            raise

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        _write_units(self.get_params(ctx), formatter)
        _write_examples(self.examples, formatter)
        _write_exits(self.exits, formatter)


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called: `{name: ("module", "attribute")}`."""

    command_class = Command

    def __init__(
        self, *args: Any, lazy: Mapping[str, tuple[str, str]] | None = None, examples: Sequence[str] = (), **kwargs: Any
    ) -> None:
        super().__init__(*args, **{"no_args_is_help": False, **kwargs})
        self.params.extend(common_options())
        self.lazy = dict(lazy or {})
        self.examples = tuple(examples)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        refuse_twice(self, ctx, args)
        self._refuse_no_command(ctx, args)
        return super().parse_args(ctx, args)

    def _refuse_no_command(self, ctx: click.Context, args: Sequence[str]) -> None:
        """Raises UsageError that names the commands: click answers with its help, as if it were an error's text."""
        if ctx.resilient_parsing or self.invoke_without_command:
            return
        _, rest, order = self.make_parser(ctx).parse_args(args=list(args))
        if not rest and self.get_help_option(ctx) not in order:
            raise click.UsageError(f"missing: a command; known are: {', '.join(self.list_commands(ctx))}", ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.lazy, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        module, attribute = self.lazy[cmd_name]
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if args and not name.startswith("-") and self.get_command(ctx, name) is None and not ctx.resilient_parsing:
            known = self.list_commands(ctx)
            near = get_close_matches(name, known, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Known are: {', '.join(known)}."
            ctx.fail(f"No such command {name!r}. {hint}")
        return super().resolve_command(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        _write_examples(self.examples, formatter)


def _write_examples(examples: Sequence[str], formatter: click.HelpFormatter) -> None:
    if examples:
        with formatter.section("Examples"):
            for line in examples:
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


def _write_units(params: Sequence[click.Parameter], formatter: click.HelpFormatter) -> None:
    metavars = " ".join(param.metavar or "" for param in params)
    told = [(name, said) for name, said in UNITS.items() if name in metavars]
    if told:
        with formatter.section("Values"):
            formatter.write_dl(told)


def _write_exits(exits: Mapping[int, str], formatter: click.HelpFormatter) -> None:
    with formatter.section("Exit codes"):
        formatter.write_dl([(str(code), said) for code, said in sorted(exits.items())])
        formatter.write_text(EXITS_OF_ALL)


def command(name: str, *examples: str, **kwargs: Any) -> Callable[[Callable[..., Any]], Command]:
    """Decorate a function as a command called *name*; *examples* are whole command lines."""
    return click.command(name, cls=Command, examples=examples, **kwargs)
