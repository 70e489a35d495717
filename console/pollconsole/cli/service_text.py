"""What a service manager is told of `pollconsole run`: a systemd user unit, a launchd agent.

Job: program, home and limits -> text. Must not know: files, commands.
A core needs the keyring of its user. So it is a service of the user, and nothing in here takes the session bus, the
home folder or the user's own id away from it: no PrivateUsers, no ProtectHome, no PrivateTmp, no DynamicUser.
Source: spec K2, V3 (a clean end), O6.
"""

from __future__ import annotations

import hashlib
import plistlib
from pathlib import Path
from typing import Final

from pollcore.facts import Refused

MARK: Final = "written by 'pollconsole service install'"
STOP_S: Final = 60
"""An answer in flight may take 30 s, then it is recorded, anchored, and the store is closed (15 s)."""
RESTART_S: Final = 10
_UNIT: Final = """\
# {mark}; 'pollconsole service remove' takes it away
[Unit]
Description=pollconsole: polling core on {about}
StartLimitIntervalSec=600
StartLimitBurst=10

[Service]
Type=exec
ExecStart={command}
Restart=on-failure
RestartSec={restart}
# refused settings: starting again mends nothing
RestartPreventExitStatus=2
# SIGTERM ends it cleanly: no new request, answers in flight are recorded
KillSignal=SIGTERM
KillMode=mixed
TimeoutStopSec={stop}
UMask=0077
LimitCORE=0
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictNamespaces=yes
SystemCallArchitectures=native
# the network, the session bus of the keyring, and what looks up the network's addresses
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK

[Install]
WantedBy=default.target
"""


def service_name(home: Path, *, is_default: bool) -> str:
    """`pollconsole`, or with six hex digits of the home's path where it is not the default one."""
    digits = hashlib.sha256(str(home).encode("utf-8", "surrogateescape")).hexdigest()[:6]
    return "pollconsole" if is_default else f"pollconsole-{digits}"


def unit(program: tuple[str, ...], home: Path) -> str:
    """The text of a systemd user unit. Raises Refused, code `service`: a path with control characters."""
    command = " ".join(_quoted(word) for word in (*program, "run", "--home", str(home)))
    about = _checked(str(home)).replace("%", "%%")
    return _UNIT.format(mark=MARK, about=about, command=command, restart=RESTART_S, stop=STOP_S)


def agent(program: tuple[str, ...], home: Path, label: str) -> str:
    """The text of a launchd agent's property list. Raises Refused as `unit`."""
    words = [_checked(word) for word in (*program, "run", "--home", str(home))]
    made = {
        "Label": label,
        "ProgramArguments": words,
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": RESTART_S,
        "ExitTimeOut": STOP_S,
        "ProcessType": "Background",
        "Umask": 0o077,
        "HardResourceLimits": {"Core": 0},
        "SoftResourceLimits": {"Core": 0},
    }
    text = plistlib.dumps(made, sort_keys=False).decode("utf-8")
    head, _, rest = text.partition("\n")
    return f"{head}\n<!-- {MARK.replace('--', '- -')} -->\n{rest}"


def _quoted(word: str) -> str:
    """One word of ExecStart: quoted, its `%` and `$` taken literally (systemd.service, "Command lines")."""
    escaped = _checked(word).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'


def _checked(word: str) -> str:
    if not word.isprintable():
        raise Refused(
            "a path with control characters or broken UTF-8 cannot be named to a service manager", code="service"
        )
    return word
