"""`service install|show|remove`: `pollconsole run` as a service of this user.

Job: one file of the user's service manager, written, compared or removed; what to do next in words. Must not know: what
stands in the file. Nothing is started or stopped from here.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Final, NamedTuple

import click

from pollconsole import bridge, home_files
from pollconsole.cli import out
from pollconsole.cli.base import Common, LazyGroup, command, pass_common
from pollconsole.cli.service_text import MARK, agent, service_name, unit
from pollcore.facts import Refused

MAX_BYTES: Final = 64 * 1024
"""Of a file that is looked at; ours is far smaller."""
LABEL: Final = "local.pollconsole.{name}"


class Wanted(NamedTuple):
    """The file that belongs to one home."""

    name: str
    path: Path
    text: str


@click.group(
    "service",
    cls=LazyGroup,
    short_help="Run the core as a service of this user.",
    examples=("pollconsole service install --dry-run", "pollconsole service install"),
)
def service() -> None:
    """`pollconsole run` under systemd (Linux) or launchd (macOS), as a service of this user.

    Never of the system: the keyring is the user's, and a process of the system cannot read it.
    """


def wanted(home: Path | None, platform: str = sys.platform) -> Wanted:
    """The service's name, file and text for *home*. Raises Refused, code `service`: no manager that is known."""
    folder = bridge.home_path(home)
    name = service_name(folder, is_default=not bridge.home_is_named(home))
    if platform == "linux":
        base = os.environ.get("XDG_CONFIG_HOME") or ""
        config = Path(base) if base.startswith("/") else Path.home() / ".config"
        return Wanted(name, config / "systemd" / "user" / f"{name}.service", unit(program(), folder))
    if platform == "darwin":
        label = LABEL.format(name=name)
        return Wanted(
            label, Path.home() / "Library" / "LaunchAgents" / f"{label}.plist", agent(program(), folder, label)
        )
    raise Refused(f"no service manager is known on {platform}; start 'pollconsole run' by other means", code="service")


def program() -> tuple[str, ...]:
    """How this program is started, by whole paths: its own script, else Python with the module."""
    script = Path(sys.argv[0]) if sys.argv and sys.argv[0] else None
    if script is not None and script.name == "pollconsole":
        found = shutil.which(str(script)) or str(script)
        if Path(found).is_file() and os.access(found, os.X_OK):
            return (str(Path(found).absolute()),)
    if not sys.executable:
        raise Refused("this program does not know how it was started", code="service")
    return (sys.executable, "-m", "pollconsole")


@command(
    "install",
    "pollconsole service install --dry-run",
    "pollconsole service install",
    short_help="Write the service's file.",
)
@click.option("--dry-run", is_flag=True, help="Print the file, write nothing.")
@click.option("--force", is_flag=True, help="Replace a file of that name that is another one.")
@click.option("--user", is_flag=True, help="A service of this user; there is no other, so this changes nothing.")
@pass_common
def install(common: Common, dry_run: bool, force: bool, user: bool) -> None:  # noqa: ARG001
    """Write a systemd user unit, or a launchd agent, that runs the core on this home; nothing is started.

    A file of that name that differs is not replaced without --force.
    """
    made = wanted(common.home)
    there = _read(made.path)
    if not dry_run:
        if there is not None and there != made.text and not force:
            raise Refused(f"{made.path} is there and differs; look at it, then give --force", code="service")
        try:
            made.path.parent.mkdir(parents=True, exist_ok=True)
            home_files.replace(made.path, made.text)
        except OSError as error:
            raise Refused(f"{made.path}: cannot be written: {error.strerror}", code="service") from None
    if common.json:
        written = not dry_run
        out.document({"service": {"name": made.name, "path": str(made.path), "written": written, "text": made.text}})
    elif dry_run:
        out.text(made.text.rstrip("\n"))
        out.note(f"not written; without --dry-run it becomes {made.path}")
    else:
        out.text(f"{made.path}: written, for the home {bridge.home_path(common.home)}")
        out.text("\n".join(next_steps(made)))
    for warning in warnings():
        out.note(f"warning: {warning}")


def next_steps(made: Wanted) -> list[str]:
    """What the user does now."""
    if made.path.suffix == ".plist":
        return [
            "start it, now and at each login:",
            f"    launchctl bootstrap gui/$(id -u) '{made.path}'",
            "It runs while you are logged in; the login keychain is open then.",
        ]
    return [
        "start it, now and at each login:",
        "    systemctl --user daemon-reload",
        f"    systemctl --user enable --now {made.name}",
        f"what it says: journalctl --user -u {made.name}",
        "It ends when your last session ends. To keep it running, and to start it at boot:",
        "    loginctl enable-linger",
        "A lingering service runs while nobody is logged in, and after a boot nobody has unlocked the keyring: what",
        "needs a secret stops as keyring_locked until you log in and unlock it; polls without a credential go on, and",
        "no new authority is given until the audit is anchored.",
    ]


def warnings() -> list[str]:
    """What will be otherwise under the service than here."""
    found = []
    if os.environ.get("PYTHONPATH") and program()[1:2] == ("-m",):
        found.append("PYTHONPATH is set here and will not be there: install the program into its Python first")
    return found


@command("show", "pollconsole service show", short_help="The file as it is installed.")
@pass_common
def show(common: Common) -> None:
    """Print the installed file, and whether it is what 'service install' would write now."""
    made = wanted(common.home)
    there = _read(made.path)
    same = there == made.text
    if common.json:
        view = {
            "name": made.name,
            "path": str(made.path),
            "installed": there is not None,
            "current": same,
            "text": there,
        }
        out.document({"service": view})
    elif there is None:
        out.note(f"{made.path} is not there; 'pollconsole service install' writes it")
    else:
        out.text(there.rstrip("\n"))
        out.note(f"{made.path}" + ("" if same else ": differs from what 'service install' would write now"))


@command("remove", "pollconsole service remove", short_help="Remove the file.")
@click.option("--force", is_flag=True, help="Remove it also where this program did not write it.")
@pass_common
def remove(common: Common, force: bool) -> None:
    """Remove the file that 'service install' wrote; a service that runs is not stopped by that."""
    made = wanted(common.home)
    there = _read(made.path)
    if there is not None and MARK not in there and not force:
        raise Refused(
            f"{made.path} was not written by 'service install'; look at it, then give --force", code="service"
        )
    if there is not None:
        try:
            made.path.unlink()
        except OSError as error:
            raise Refused(f"{made.path}: cannot be removed: {error.strerror}", code="service") from None
    if common.json:
        out.document({"service": {"name": made.name, "path": str(made.path), "removed": there is not None}})
    elif there is None:
        out.note(f"{made.path} is not there")
    else:
        stop = f"systemctl --user disable --now {made.name}"
        if made.path.suffix == ".plist":
            stop = f"launchctl bootout gui/$(id -u)/{made.name}"
        out.text(f"{made.path}: removed. Where it still runs: {stop}")


def _read(path: Path) -> str | None:
    """What stands there; None: nothing. Raises Refused: it cannot be read, or is no plain file."""
    if not os.path.lexists(path):
        return None
    if path.is_symlink() or not path.is_file():
        raise Refused(f"{path} is a link or no file; remove it first", code="service")
    try:
        return bridge.read_plain(path, MAX_BYTES, follow=False).decode("utf-8", "replace")
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}", code="service") from None


for _command in (install, show, remove):
    service.add_command(_command)
