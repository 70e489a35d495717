"""A Secret Service of our own that is locked, then stopped: told apart within the limit, and the exit is free."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
set -eu
start() {
  printf %s "$1" | gnome-keyring-daemon --replace --unlock --components=secrets >"$HOME/env" 2>/dev/null || true
}
start right; "$PYTHON" -c "$CODE" set
start wrong; "$PYTHON" -c "$CODE" get
start right; "$PYTHON" -c "$CODE" get
pid=$("$PYTHON" -c "$CODE" pid)
kill -STOP "$pid"
"$PYTHON" -c "$CODE" get
kill -CONT "$pid"; kill "$pid"
"""
CODE = """
import pathlib, sys, time
from pollcore.adapters.keyring_store import Vault
from pollcore.facts import CredentialUnavailable
if sys.argv[1] == "pid":
    import jeepney, jeepney.io.blocking as b
    bus = b.open_dbus_connection()
    ask = jeepney.DBusAddress("/org/freedesktop/DBus", "org.freedesktop.DBus", "org.freedesktop.DBus")
    made = jeepney.new_method_call(ask, "GetConnectionUnixProcessID", "s", ("org.freedesktop.secrets",))
    print(bus.send_and_get_reply(made).body[0]); sys.exit()
vault = Vault(pathlib.Path.home(), named="keyring.backends.SecretService.Keyring", limit_s=3)
try:
    print(vault.set("one", "value") if sys.argv[1] == "set" else vault.get("one"), flush=True)
except CredentialUnavailable as error:
    print(error.detail, flush=True)
"""


@pytest.mark.slow
@pytest.mark.rule("K2")
@pytest.mark.server("keyring")
def test_a_locked_and_a_stopped_service_are_told_apart_and_nothing_hangs(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    env = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "PYTHON": sys.executable,
        "CODE": CODE,
        "HOME": str(tmp_path),
        "XDG_RUNTIME_DIR": str(tmp_path),
    }
    done = subprocess.run(
        ["dbus-run-session", "--", "sh", "-c", SCRIPT], env=env, capture_output=True, text=True, timeout=90, check=False
    )
    told = done.stdout.split("\n")[:4]
    assert told[0] == "None"
    assert told[1] == "keyring_locked", done
    assert told[2] == "('value',)"
    assert told[3] == "keyring_timeout"
